// SPDX-License-Identifier: Apache-2.0
//
// Reads meshes and logical axis rules.
#include "passes/shard/AxisRules.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::rota;

/// Kept in step with the table in the description of `assign-shardings`.
static constexpr StringLiteral kDefaultRules =
    "vocab=sequence+tensor,heads=sequence+tensor,kv_heads=sequence+tensor,"
    "mlp=sequence+tensor,storage/embed=fsdp,storage/norm=fsdp,storage/in=fsdp,"
    "activation/batch=data+fsdp+expert,activation/length=context+sequence";

static FailureOr<MeshAxis> axisNamed(EmitErrorFn emitError, StringRef name,
                                     StringRef what) {
  if (std::optional<MeshAxis> axis = symbolizeMeshAxis(name))
    return *axis;
  return emitError() << "expected a mesh axis (data, stage, fsdp, expert, "
                        "context, sequence or tensor) in "
                     << what << ", got '" << name << "'";
}

/// The size that the other axes leave of `ranks`.
static FailureOr<int64_t> inferSize(EmitErrorFn emitError, MeshAxis axis,
                                    int64_t others,
                                    std::optional<int64_t> ranks) {
  if (!ranks)
    return emitError()
           << "expected a number of ranks to infer the size of axis "
           << "'" << stringifyMeshAxis(axis) << "' from, got none";
  if (*ranks % others != 0)
    return emitError() << "expected the sizes of the other axes, " << others
                       << " together, to divide the number of ranks, " << *ranks
                       << ", to infer the size of axis '"
                       << stringifyMeshAxis(axis) << "'";
  return *ranks / others;
}

FailureOr<MeshAttr> rota::parseMesh(EmitErrorFn emitError, MLIRContext *context,
                                    StringRef text,
                                    std::optional<int64_t> ranks) {
  SmallVector<int64_t> sizes(getMaxEnumValForMeshAxis() + 1, 0);
  std::optional<MeshAxis> inferred;
  int64_t product = 1;
  for (StringRef entry : llvm::split(text, ',')) {
    auto [name, value] = entry.trim().split('=');
    auto axis = axisNamed(emitError, name.trim(), "the mesh");
    if (failed(axis))
      return failure();
    int64_t size;
    if (value.trim().getAsInteger(10, size) || size == 0 || size < -1 ||
        size > (int64_t(1) << 24))
      return emitError() << "expected a size between 1 and " << (1 << 24)
                         << ", or -1, for mesh axis '" << name.trim()
                         << "', got '" << value.trim() << "'";
    int64_t &place = sizes[static_cast<size_t>(*axis)];
    if (place != 0)
      return emitError() << "expected one size for mesh axis '" << name.trim()
                         << "', got " << place << " and " << size;
    place = size;
    if (size == -1) {
      if (inferred)
        return emitError() << "expected at most one inferred size in the mesh, "
                              "got those of axes '"
                           << stringifyMeshAxis(*inferred) << "' and '"
                           << stringifyMeshAxis(*axis) << "'";
      inferred = *axis;
    } else if (llvm::MulOverflow(product, size, product)) {
      return emitError() << "expected at most " << (1 << 24)
                         << " ranks in a mesh";
    }
  }
  if (inferred) {
    auto size = inferSize(emitError, *inferred, product, ranks);
    if (failed(size))
      return failure();
    sizes[static_cast<size_t>(*inferred)] = *size;
  } else if (ranks && *ranks != product) {
    return emitError() << "expected a mesh of " << *ranks << " ranks, got "
                       << product;
  }
  for (int64_t &size : sizes)
    size = std::max<int64_t>(size, 1);
  MeshAttr mesh =
      MeshAttr::getChecked(emitError, context, ArrayRef<int64_t>(sizes));
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
