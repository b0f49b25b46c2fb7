// SPDX-License-Identifier: Apache-2.0
//
// Gives parameters their placements and functions the shardings of their
// activations, from logical axis rules.
#include "passes/shard/AxisRules.h"
#include "passes/shard/Passes.h"
#include "passes/shard/propagation/FactorAxes.h"
#include "passes/shard/propagation/PartLimit.h"

#include "ir/rota/model/Model.h"
#include "mlir/IR/Remarks.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

namespace mlir::rota {
#define GEN_PASS_DEF_ASSIGNSHARDINGS
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

static constexpr StringLiteral kStorage = "storage/";
static constexpr StringLiteral kActivation = "activation/";
/// Rules of activations, by dimension.
static constexpr StringLiteral kBorders[] = {
    "activation/batch", "activation/length", "activation/embed"};

/// An error that names the flag and the parameter.
static InFlightDiagnostic errorAt(ParamOp param, StringRef flag) {
  return std::move(param.emitError() << "'" << flag << "': parameter '"
                                     << param.getSymName() << "': ");
}

/// "'sequence' and 'tensor'": for messages.
static std::string spell(ArrayRef<AxisRefAttr> axes) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      axes, stream,
      [&](AxisRefAttr ref) {
        stream << "'" << stringifyMeshAxis(ref.getAxis()) << "'";
      },
      " and ");
  return text;
}

namespace {
struct AssignShardings
    : mlir::rota::impl::AssignShardingsBase<AssignShardings> {
  using AssignShardingsBase::AssignShardingsBase;
  void runOnOperation() override;

private:
  LogicalResult readMesh();
  LogicalResult checkNames();
  LogicalResult place(ParamOp param);
  FailureOr<DimensionAxes> computeAxes(ParamOp param);
  FailureOr<AxisList> limitedAxes(ParamOp param, unsigned dim,
                                  ArrayRef<AxisRefAttr> axes);
  FailureOr<DimensionAxes> storageAxes(ParamOp param, DimensionAxes axes);
  DimensionAxes optimizerAxes(ParamOp param, DimensionAxes axes);
  LogicalResult assignBorders(func::FuncOp function);
  FailureOr<ShardingAttr> borderSharding(const FunctionPort &port, Role role);
  void remarkOn(ParamOp param, StringRef name, std::string text);

  MeshAttr mesh;
  AxisRules table;
  PartLimit limit;
};
} // namespace

void AssignShardings::runOnOperation() {
  ModuleOp module = getOperation();
  auto emitError = [&] {
    return std::move(module.emitError() << "'sharding-rules': ");
  };
  std::string all = rules;
  if (divisionMode == ShardingMode::Explicit)
    all += ",joined=";
  auto parsed = AxisRules::parse(emitError, &getContext(), all);
  if (failed(parsed) || failed(readMesh()))
    return signalPassFailure();
  table = *parsed;
  if (failed(checkNames()))
    return signalPassFailure();
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    if (auto param = dyn_cast<ParamOp>(op))
      return place(param);
    if (auto function = dyn_cast<func::FuncOp>(op))
      return assignBorders(function);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
  limit = {};
}

/// The mesh of the option, or the module's; without either that of one rank.
/// The module says it from here on.
LogicalResult AssignShardings::readMesh() {
  ModuleOp module = getOperation();
  auto meshes = module.getOps<MeshOp>();
  mesh = meshOf(module);
  if (!meshText.empty()) {
    auto emitError = [&] {
      return std::move(module.emitError() << "'mesh': ");
    };
    auto parsed = parseMesh(emitError, &getContext(), meshText, ranks);
    if (failed(parsed))
      return failure();
    mesh = *parsed;
  }
  if (!meshes.empty()) {
    if ((*meshes.begin()).getMesh() == mesh)
      return success();
    auto diagnostic = module.emitError("'mesh': expected one mesh, got ")
                      << mesh << " as option";
    diagnostic.attachNote((*meshes.begin()).getLoc()) << "and this one";
    return diagnostic;
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  MeshOp::create(builder, module.getLoc(), mesh);
  return success();
}

/// Rejects misspelled names: a user's rule names a logical axis of the model or
/// of a default rule.
LogicalResult AssignShardings::checkNames() {
  llvm::SmallSetVector<StringRef, 16> axes;
  getOperation().walk([&](ParamOp param) {
    axes.insert_range(param.getAxes().getAsValueRange<StringAttr>());
  });
  for (StringRef name : table.defaultNames()) {
    name.consume_front(kStorage);
    if (!name.starts_with(kActivation) &&
        !llvm::is_contained(explicitRules, name))
      axes.insert(name);
  }
  for (StringRef rule : table.userNames()) {
    StringRef name = rule;
    if (llvm::is_contained(kBorders, name) ||
        llvm::is_contained(explicitRules, name))
      continue;
    name.consume_front(kStorage);
    if (axes.contains(name))
      continue;
    auto diagnostic =
        getOperation().emitError("'sharding-rules': expected rule '")
        << rule << "' to name a logical axis";
    auto &note = diagnostic.attachNote();
    note << "there are ";
    llvm::interleaveComma(axes, note,
                          [&](StringRef axis) { note << "'" << axis << "'"; });
    note << ", each also after '" << kStorage << "', and ";
    for (StringRef border : kBorders)
      note << "'" << border << "', ";
    llvm::interleaveComma(explicitRules, note,
                          [&](StringRef name) { note << "'" << name << "'"; });
    return diagnostic;
  }
  return success();
}

void AssignShardings::remarkOn(ParamOp param, StringRef name,
                               std::string text) {
  remark::passed(param.getLoc(),
                 remark::RemarkOpts::name(name).category("shard").function(
                     param.getSymName()))
      << remark::reason("{0}", text);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

LogicalResult AssignShardings::place(ParamOp param) {
  if (param.getPlacement())
    return success();
  auto compute = computeAxes(param);
  if (failed(compute))
    return failure();
  auto storage = storageAxes(param, *compute);
  if (failed(storage))
    return failure();
  DimensionAxes optimizer = optimizerAxes(param, *storage);
  // What is appended is not merged with an axis before it: it says which
  // exchanges a step has.
  auto sharding = [&](const DimensionAxes &dimensions) {
    auto divided = llvm::map_to_vector(dimensions, [&](const AxisList &axes) {
      return DimensionShardingAttr::get(&getContext(), axes, /*open=*/false);
    });
    return ShardingAttr::get(&getContext(), divided, ArrayRef<AxisRefAttr>(),
                             ArrayRef<AxisRefAttr>());
  };
  param.setPlacementAttr(PlacementAttr::get(
      &getContext(), param.getTensorType().getShape(), sharding(*compute),
      sharding(*storage), sharding(optimizer)));
  return success();
}

FailureOr<DimensionAxes> AssignShardings::computeAxes(ParamOp param) {
  DimensionAxes dimensions;
  AxisList taken;
  for (auto [dim, name] :
       llvm::enumerate(param.getAxes().getAsValueRange<StringAttr>())) {
    AxisList axes =
        normalized(table.find(name).value_or(ArrayRef<AxisRefAttr>()), mesh);
    for (AxisRefAttr ref : axes)
      if (overlapsAny(ref, taken, mesh))
        return errorAt(param, "sharding-rules")
               << "expected each mesh axis at most once, got '"
               << stringifyMeshAxis(ref.getAxis()) << "' twice, the last for "
               << "dimension " << dim << " ('" << name << "')";
    auto limited = limitedAxes(param, dim, axes);
    if (failed(limited))
      return failure();
    llvm::append_range(taken, *limited);
    dimensions.push_back(*limited);
  }
  return dimensions;
}

/// The axes, or their major parts, into whose ranks the uses of the parameter
/// let the dimension be divided.
FailureOr<AxisList> AssignShardings::limitedAxes(ParamOp param, unsigned dim,
                                                 ArrayRef<AxisRefAttr> axes) {
  int64_t size = param.getTensorType().getDimSize(dim), left = size;
  StringRef name = cast<StringAttr>(param.getAxes()[dim]).getValue();
  if (axes.empty())
    return AxisList();
  bool mayPad = true;
  param->getParentOp()->walk([&](ReadOp read) {
    if (lookupParam(read, read.getParamAttr().getAttr()) != param)
      return;
    left = std::gcd(left, limit.parts(read.getResult(), dim));
    mayPad &= limit.mayPad(read.getResult(), dim);
  });
  int64_t parts = left, inside = size; // elements of a part of a single unit
  bool isPadded = false;
  AxisList result;
  for (AxisRefAttr ref : axes) {
    int64_t ranks = mesh.getSize(ref);
    if (divisionMode == ShardingMode::Auto && parts == 1 && size > 1 &&
        ranks > 1 && inside % ranks == 0) {
      result.push_back(ref);
      inside /= ranks;
      continue;
    }
    if (left % ranks == 0) {
      result.push_back(ref);
      left /= ranks;
      continue;
    }
    if (mayPad && ranks < left) {
      result.push_back(ref);
      left = llvm::divideCeil(left, ranks);
      isPadded = true;
      continue;
    }
    // Fewer parts than ranks are an error, except for whole units (heads) that
    // several ranks then share.
    if (ranks % left != 0 || parts == size) {
      auto diagnostic = errorAt(param, "mesh");
      if (name.ends_with("heads") && parts != size) {
        diagnostic << parts << " " << name;
        // The key of the configuration, from ModelBuilder::setAxisKey.
        if (auto key = dyn_cast<NameLoc>(param.getLoc()))
          diagnostic << " (" << key.getName().getValue() << ")";
      } else if (parts != size) {
        diagnostic << parts << " whole parts of '" << name << "' of size "
                   << size;
      } else {
        diagnostic << "'" << name << "' of size " << size;
      }
      diagnostic << (parts != size ? " are" : " is") << " not divisible by ";
      llvm::interleaveComma(axes, diagnostic, [&](AxisRefAttr axis) {
        diagnostic << stringifyMeshAxis(axis.getAxis()) << "="
                   << mesh.getSize(axis);
      });
      return diagnostic << "; the rule '" << name << "=' leaves it whole";
    }
    if (left > 1)
      result.push_back(AxisRefAttr::get(&getContext(), ref.getAxis(),
                                        ref.getBefore(), left));
    left = 1;
  }
  if (isPadded)
    remarkOn(param, "padded-parts",
             "dimension " + std::to_string(dim) + " of size " +
                 std::to_string(size) + " is divided into " +
                 std::to_string(mesh.getSize(result)) +
                 " parts, the last padded with zeros");
  else if (inside < size)
    remarkOn(param, "parts-of-units",
             "dimension " + std::to_string(dim) + " is divided into " +
                 std::to_string(mesh.getSize(result)) +
                 " parts, although its uses need the whole: they gather it");
  else if (mesh.getSize(result) != mesh.getSize(axes))
    remarkOn(param, "fewer-parts",
             "dimension " + std::to_string(dim) + " is divided into " +
                 std::to_string(mesh.getSize(result)) + " parts, not " +
                 std::to_string(mesh.getSize(axes)) +
                 ": its uses need whole parts");
  return normalized(result, mesh);
}

FailureOr<DimensionAxes> AssignShardings::storageAxes(ParamOp param,
                                                      DimensionAxes axes) {
  ArrayRef<int64_t> shape = param.getTensorType().getShape();
  auto names = llvm::to_vector(param.getAxes().getAsValueRange<StringAttr>());
  AxisList taken;
  for (const AxisList &list : axes)
    llvm::append_range(taken, list);
  // Dividing parts further gives equal parts of the whole if the parts are
  // equal or the whole is divided once.
  auto fits = [&](int64_t dim, ArrayRef<AxisRefAttr> more) {
    return more.empty() || axes[dim].empty() ||
           shape[dim] % (mesh.getSize(axes[dim]) * mesh.getSize(more)) == 0;
  };
  auto extend = [&](int64_t dim, ArrayRef<AxisRefAttr> more) {
    llvm::append_range(axes[dim], more);
    return axes;
  };
  AxisRefAttr fsdp = AxisRefAttr::get(&getContext(), MeshAxis::Fsdp);
  if (auto match = table.match(kStorage, names)) {
    AxisList more = normalized(match->axes, mesh);
    for (AxisRefAttr ref : more)
      if (overlapsAny(ref, taken, mesh))
        return errorAt(param, "sharding-rules")
               << "expected each mesh axis at most once, got '"
               << stringifyMeshAxis(ref.getAxis())
               << "' in the compute and the storage sharding";
    if (!fits(match->dimension, more))
      return errorAt(param, "mesh")
             << "expected the "
             << mesh.getSize(axes[match->dimension]) * mesh.getSize(more)
             << " ranks along " << spell(axes[match->dimension]) << " and "
             << spell(more) << " to divide dimension " << match->dimension
             << " ('" << names[match->dimension] << "') of size "
             << shape[match->dimension]
             << ", since the compute sharding divides it too";
    return extend(match->dimension, more);
  }
  if (mesh.getSize(fsdp) == 1 || overlapsAny(fsdp, taken, mesh))
    return axes;
  int64_t best = -1;
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim)
    if (fits(dim, fsdp) && (best < 0 || shape[dim] > shape[best]))
      best = dim;
  if (best >= 0)
    return extend(best, fsdp);
  remarkOn(param, "storage-not-divided",
           "no dimension that 'fsdp' could divide further");
  return axes;
}

/// The axes along which a tensor with these dimensions is replicated, in the
/// order of the mesh.
static AxisList replicatingAxes(MLIRContext *context,
                                const DimensionAxes &dimensions,
                                MeshAttr mesh) {
  AxisList all, taken;
  for (uint32_t axis = 0; axis <= getMaxEnumValForMeshAxis(); ++axis)
    if (static_cast<MeshAxis>(axis) != MeshAxis::Stage)
      all.push_back(AxisRefAttr::get(context, static_cast<MeshAxis>(axis)));
  for (const AxisList &list : dimensions)
    llvm::append_range(taken, list);
  return difference(normalizedSet(all, mesh), normalizedSet(taken, mesh), mesh);
}

/// Those of `axes` that together divide `size` into the most equal parts; of
/// equal choices the one with the first axes.
static AxisList mostDividing(ArrayRef<AxisRefAttr> axes, int64_t size,
                             MeshAttr mesh) {
  AxisList best;
  for (uint32_t choice = 1; choice < (1u << axes.size()); ++choice) {
    AxisList list;
    for (auto [number, axis] : llvm::enumerate(axes))
      if (choice >> number & 1)
        list.push_back(axis);
    if (size % mesh.getSize(list) == 0 &&
        mesh.getSize(list) > mesh.getSize(best))
      best = list;
  }
  return best;
}

/// Divides the dimension that replicas of what is stored divide the furthest,
/// the first of equal ones: its parts are contiguous.
DimensionAxes AssignShardings::optimizerAxes(ParamOp param,
                                             DimensionAxes axes) {
  if (!shardOptimizer)
    return axes;
  AxisList replicas = replicatingAxes(&getContext(), axes, mesh), best;
  size_t dimension = 0;
  for (auto [dim, size] : llvm::enumerate(param.getTensorType().getShape())) {
    int64_t parts = mesh.getSize(axes[dim]);
    if (size % parts != 0)
      continue;
    AxisList more = mostDividing(replicas, size / parts, mesh);
    if (mesh.getSize(more) <= mesh.getSize(best))
      continue;
    dimension = dim;
    best = more;
  }
  if (mesh.getSize(best) != mesh.getSize(replicas))
    remarkOn(param, "optimizer-replicas",
             "replicas along " + spell(difference(replicas, best, mesh)) +
                 " stay: one dimension is divided, into equal parts");
  llvm::append_range(axes[dimension], best);
  return axes;
}

//===----------------------------------------------------------------------===//
// Activations and data
//===----------------------------------------------------------------------===//

/// True for targets of which each call of the loss reads a part: a rank then
/// has the rows that it has of the activation.
static bool arePart(const FunctionPort &port, Role role) {
  if (role != Role::Targets)
    return false;
  func::FuncOp function = port.function;
  func::FuncOp embed = functionIn(function->getParentOp(), ModelPart::Embed,
                                  FunctionKind::Forward);
  if (!embed || embed.getNumArguments() == 0)
    return false;
  auto input = dyn_cast<RankedTensorType>(
      FunctionRoles(embed).argument(Role::Tokens).type());
  auto targets = dyn_cast<RankedTensorType>(port.type());
  return input && targets && input.getRank() > 1 && targets.getRank() > 1 &&
         input.getDimSize(1) != targets.getDimSize(1);
}

/// Batch, length and embed for an activation or a named value. Data has a
/// batch; what else divides it follows from its uses. Null for other roles.
FailureOr<ShardingAttr>
AssignShardings::borderSharding(const FunctionPort &port, Role role) {
  func::FuncOp function = port.function;
  auto tensor = dyn_cast<RankedTensorType>(port.type());
  bool isKnown = isActivation(role) || isData(role) || role == Role::NamedValue;
  if (!isKnown || !tensor || tensor.getRank() == 0)
    return ShardingAttr();
  SmallVector<DimensionShardingAttr> dimensions;
  for (int64_t dim = 0; dim < tensor.getRank(); ++dim) {
    AxisList axes;
    bool isOpen = isData(role) && dim == 1 && !arePart(port, role);
    if (dim < 3 && !isOpen)
      axes = normalized(
          table.find(kBorders[dim]).value_or(ArrayRef<AxisRefAttr>()), mesh);
    int64_t size = tensor.getDimSize(dim), ranks = mesh.getSize(axes);
    if (size % ranks != 0)
      return function.emitError("'mesh': expected the ")
             << ranks << " ranks along " << spell(axes) << " to divide the "
             << kBorders[dim].drop_front(kActivation.size())
             << (signatureOf(function).part == ModelPart::Loss
                     ? " of a call of the loss, "
                     : " of a microbatch, ")
             << size;
    dimensions.push_back(
        DimensionShardingAttr::get(&getContext(), axes, isOpen));
  }
  auto emitError = [&] {
    return std::move(function.emitError() << "'sharding-rules': ");
  };
  ShardingAttr sharding = ShardingAttr::getChecked(
      EmitErrorFn(emitError), &getContext(),
      ArrayRef<DimensionShardingAttr>(dimensions), ArrayRef<AxisRefAttr>(),
      ArrayRef<AxisRefAttr>());
  if (!sharding)
    return failure();
  return sharding;
}

/// The input half of the loss's backward pass returns terms of the loss and
/// residuals, any number of both; the loss has the number of the former.
static LogicalResult checkLossTerms(func::FuncOp function) {
  Operation *scope = function->getParentOp();
  using enum FunctionKind;
  if (functionIn(scope, ModelPart::Loss, BackwardInput) != function ||
      functionIn(scope, ModelPart::Loss, Forward))
    return success();
  return function.emitOpError("expected 'loss' beside it, which tells how many "
                              "terms of the loss it returns");
}

LogicalResult AssignShardings::assignBorders(func::FuncOp function) {
  if (failed(checkLossTerms(function)))
    return failure();
  FunctionRoles roles(function);
  auto assign = [&](bool isResult, ArrayRef<Role> list) -> LogicalResult {
    for (auto [index, role] : llvm::enumerate(list)) {
      FunctionPort port{function, isResult, unsigned(index)};
      auto sharding = borderSharding(port, role);
      if (failed(sharding))
        return failure();
      if (*sharding && !port.sharding())
        port.setSharding(*sharding);
    }
    return success();
  };
  if (failed(assign(/*isResult=*/false, roles.arguments())))
    return failure();
  return assign(/*isResult=*/true, roles.results());
}
