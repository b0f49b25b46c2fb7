// SPDX-License-Identifier: Apache-2.0
//
// One update function and one function of squares for each form of parameter.
#include "ir/rota/Model.h"
#include "ir/rota/Sharding.h"
#include "passes/optimizer/Optimizers.h"
#include "passes/optimizer/Passes.h"

namespace mlir::rota {
#define GEN_PASS_DEF_BUILDUPDATES
#include "passes/optimizer/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/optimizer/Passes.h.inc"

/// The properties on which a parameter's functions depend.
struct Form {
  RankedTensorType type; // f32, padded
  ShardingAttr sharding; // null: there is no mesh
  Type compute;
  bool decays;

  auto key() const { return std::tuple(type, sharding, compute, decays); }
  bool operator==(const Form &other) const { return key() == other.key(); }
};

struct BuildUpdates : rota::impl::BuildUpdatesBase<BuildUpdates> {
  using BuildUpdatesBase::BuildUpdatesBase;
  void runOnOperation() override;

private:
  FailureOr<Form> formOf(ParamOp param);
  func::FuncOp addFunction(StringRef name, size_t number);
  void shard(func::FuncOp function, ShardingAttr sharding);
  FlatSymbolRefAttr buildUpdate(const OptimizerSpec &optimizer,
                                const Form &form, size_t number);
  FlatSymbolRefAttr buildSquares(const Form &form, size_t number);
};
} // namespace

static constexpr StringLiteral kSharding =
    RotaDialect::ShardingAttrHelper::getNameStr();

/// `type` with each dimension as large as all parts of it together.
static RankedTensorType padded(RankedTensorType type, ShardingAttr sharding,
                               MeshAttr mesh) {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, dimension] : llvm::zip(shape, sharding.getDimensions())) {
    int64_t parts = mesh.getSize(dimension.getAxes());
    size = llvm::divideCeil(size, parts) * parts;
  }
  return type.clone(shape);
}

FailureOr<Form> BuildUpdates::formOf(ParamOp param) {
  FailureOr<Type> compute = readType(param);
  if (failed(compute))
    return failure();
  Form form{param.getTensorType(), {}, *compute, false};
  // Checkpoints hold a tensor for each index of the named dimensions.
  form.decays = form.type.getRank() >= 2 + param.getNamedDimensions();
  if (PlacementAttr placement = param.getPlacementAttr()) {
    form.sharding = placement.getOptimizer();
    form.type = padded(form.type.clone(placement.getWhole()), form.sharding,
                       meshOf(getOperation()));
  }
  return form;
}

/// Adds `<name>_<number>`, without arguments.
func::FuncOp BuildUpdates::addFunction(StringRef name, size_t number) {
  auto function = func::FuncOp::create(
      getOperation().getLoc(), (name + "_" + Twine(number)).str(),
      FunctionType::get(&getContext(), {}, {}));
  SymbolTable(getOperation()).insert(function);
  return function;
}

/// Says how tensors of the parameter's shape enter and leave.
void BuildUpdates::shard(func::FuncOp function, ShardingAttr sharding) {
  if (!sharding)
    return;
  auto isShaped = [&](Type type) {
    return cast<RankedTensorType>(type).getRank() ==
           int64_t(sharding.getDimensions().size());
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (isShaped(function.getArgumentTypes()[i]))
      function.setArgAttr(i, kSharding, sharding);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (isShaped(function.getResultTypes()[i]))
      function.setResultAttr(i, kSharding, sharding);
}

FlatSymbolRefAttr BuildUpdates::buildUpdate(const OptimizerSpec &optimizer,
                                            const Form &form, size_t number) {
  func::FuncOp function = addFunction("update", number);
  Location loc = NameLoc::get(StringAttr::get(&getContext(), optimizer.name));
  UpdateBuilder builder(loc, function, form.type, form.decays);
  builder.finish(optimizer.build(builder), form.compute);
  shard(function, form.sharding);
  ++updates;
  return FlatSymbolRefAttr::get(function);
}

/// Rows are summed apart; along axes that divide them each rank has a part of
/// the sum.
FlatSymbolRefAttr BuildUpdates::buildSquares(const Form &form, size_t number) {
  func::FuncOp function = addFunction("squares", number);
  Location loc = NameLoc::get(StringAttr::get(&getContext(), "squares"));
  ImplicitLocOpBuilder b(loc, &getContext());
  Block *body = &function.getBody().emplaceBlock();
  b.setInsertionPointToEnd(body);
  Value gradient = body->addArgument(form.type, loc);
  Value sums = arith::MulFOp::create(b, gradient, gradient);
  ArrayRef<int64_t> shape = form.type.getShape();
  if (!shape.empty())
    sums =
        ReduceOp::create(b, form.type.clone(shape.drop_back()), ReduceKind::Sum,
                         sums, ArrayRef<int64_t>{int64_t(shape.size()) - 1});
  func::ReturnOp::create(b, sums);
  function.setFunctionType(b.getFunctionType(form.type, sums.getType()));
  if (form.sharding) {
    function.setArgAttr(UpdateFunction::parameter, kSharding, form.sharding);
    auto dimensions = form.sharding.getDimensions();
    ArrayRef<AxisRefAttr> summed;
    if (!shape.empty())
      summed = dimensions.back().getAxes();
    function.setResultAttr(
        0, kSharding,
        ShardingAttr::get(&getContext(), dimensions.drop_back(!shape.empty()),
                          summed, {}));
  }
  return FlatSymbolRefAttr::get(function);
}

static ArrayAttr optionsOf(const OptimizerSpec &optimizer,
                           MLIRContext *context) {
  SmallVector<Attribute> options;
  for (const OptimizerSpec::Option &option : optimizer.options)
    options.push_back(OptionAttr::get(
        context, option.name, APFloat(option.value), APFloat(option.least),
        APFloat(option.most), option.help));
  return ArrayAttr::get(context, options);
}

void BuildUpdates::runOnOperation() {
  ModuleOp module = getOperation();
  if (optimizer.empty())
    return markAllAnalysesPreserved();
  const OptimizerSpec *found = findOptimizer(optimizer);
  if (!found) {
    module.emitError("expected an optimizer out of ")
        << optimizerNames() << ", got '" << optimizer << "'";
    return signalPassFailure();
  }
  RotaDialect::OptionsAttrHelper(&getContext())
      .setAttr(module, optionsOf(*found, &getContext()));
  RotaDialect::UpdateAttrHelper update(&getContext());
  RotaDialect::SquaresAttrHelper squares(&getContext());
  SmallVector<std::pair<Form, std::pair<FlatSymbolRefAttr, FlatSymbolRefAttr>>>
      known;
  WalkResult result = module.walk([&](ParamOp param) -> WalkResult {
    if (update.isAttrPresent(param))
      return success();
    FailureOr<Form> form = formOf(param);
    if (failed(form))
      return failure();
    auto *place =
        llvm::find_if(known, [&](auto &entry) { return entry.first == *form; });
    if (place == known.end()) {
      size_t number = known.size();
      known.push_back(
          {*form,
           {buildUpdate(*found, *form, number), buildSquares(*form, number)}});
      place = &known.back();
    }
    update.setAttr(param, place->second.first);
    squares.setAttr(param, place->second.second);
    return success();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}

void rota::registerOptimizerPasses() { registerRotaOptimizerPasses(); }
