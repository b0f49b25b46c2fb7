// SPDX-License-Identifier: Apache-2.0
//
// Reads meshes and logical axis rules.
#include "passes/shard/AxisRules.h"
#include "ir/rota/sharding/MeshText.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::rota;

/// Kept in step with the table in the description of `assign-shardings`.
static constexpr StringLiteral kDefaultRules =
    "vocab=sequence+tensor,positions=sequence+tensor,heads=sequence+tensor,"
    "kv_heads=sequence+tensor,mlp=sequence+tensor,joined=tensor,experts=expert,"
    "storage/embed=fsdp,storage/norm=fsdp,storage/in=fsdp,storage/choice=,"
    "activation/batch=data+fsdp+expert,activation/length=context+sequence,"
    "gather/length=context+sequence,move/experts=expert";

static FailureOr<MeshAxis> axisNamed(EmitErrorFn emitError, StringRef name,
                                     StringRef rule) {
  if (std::optional<MeshAxis> axis = symbolizeMeshAxis(name))
    return *axis;
  return emitError() << "expected a mesh axis (data, stage, fsdp, expert, "
                        "context, sequence or tensor) in "
                     << rule << ", got '" << name << "'";
}

FailureOr<MeshAttr> mlir::rota::parseMesh(EmitErrorFn emitError,
                                          MLIRContext *context, StringRef text,
                                          int64_t ranks) {
  std::string error;
  std::optional<MeshSizes> sizes = parseMeshSizes(text, error);
  if (!sizes || (ranks != 0 && !fitMeshSizes(*sizes, ranks, error)))
    return emitError() << error;
  if (llvm::is_contained(*sizes, kInferredSize))
    return emitError() << "expected a number of ranks for the axis of size -1 "
                          "in the mesh '"
                       << text << "', got none";
  MeshAttr mesh =
      MeshAttr::getChecked(emitError, context, ArrayRef<int64_t>(*sizes));
  if (!mesh)
    return failure();
  return mesh;
}

LogicalResult AxisRules::append(EmitErrorFn emitError, MLIRContext *context,
                                StringRef text) {
  for (StringRef entry : llvm::split(text, ',')) {
    entry = entry.trim();
    if (entry.empty())
      continue;
    auto [name, axes] = entry.split('=');
    if (name.size() == entry.size() || name.trim().empty())
      return emitError() << "expected a rule 'name=axis+axis', got '" << entry
                         << "'";
    Rule rule{name.trim().str(), {}};
    std::string what = "rule '" + entry.str() + "'";
    for (StringRef axisName : llvm::split(axes, '+')) {
      if (axisName.trim().empty() && axes.trim().empty())
        continue; // `name=`: whole
      auto axis = axisNamed(emitError, axisName.trim(), what);
      if (failed(axis))
        return failure();
      if (*axis == MeshAxis::Stage)
        return emitError() << "expected an axis that divides tensors in "
                           << what << ", got 'stage', which divides layers";
      AxisRefAttr ref = AxisRefAttr::get(context, *axis);
      if (llvm::is_contained(rule.axes, ref))
        return emitError() << "expected each axis at most once in " << what
                           << ", got '" << stringifyMeshAxis(*axis)
                           << "' twice";
      rule.axes.push_back(ref);
    }
    rules.push_back(std::move(rule));
  }
  return success();
}

FailureOr<AxisRules> AxisRules::parse(EmitErrorFn emitError,
                                      MLIRContext *context, StringRef text) {
  AxisRules result;
  if (failed(result.append(emitError, context, text)))
    return failure();
  result.users = result.rules.size();
  if (failed(result.append(emitError, context, kDefaultRules)))
    return failure();
  return result;
}

SmallVector<StringRef> AxisRules::names(size_t begin, size_t end) const {
  return llvm::map_to_vector(
      ArrayRef(rules).slice(begin, end - begin),
      [](const Rule &rule) { return StringRef(rule.name); });
}

std::optional<ArrayRef<AxisRefAttr>> AxisRules::find(StringRef name) const {
  for (const Rule &rule : rules)
    if (rule.name == name)
      return ArrayRef<AxisRefAttr>(rule.axes);
  return std::nullopt;
}

std::optional<AxisRules::Match>
AxisRules::match(StringRef prefix, ArrayRef<StringRef> axes) const {
  for (const Rule &rule : rules) {
    StringRef name = rule.name;
    if (!name.consume_front(prefix))
      continue;
    for (auto [dimension, axis] : llvm::enumerate(axes))
      if (axis == name)
        return Match{int64_t(dimension), rule.axes};
  }
  return std::nullopt;
}
