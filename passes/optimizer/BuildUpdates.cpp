// SPDX-License-Identifier: Apache-2.0
//
// One update function and one function of squares for each form of parameter.
#include "ir/rota/experts/Experts.h"
#include "ir/rota/model/Model.h"
#include "ir/rota/sharding/Sharding.h"
#include "passes/optimizer/Groups.h"
#include "passes/optimizer/Optimizers.h"

namespace mlir::rota {
#define GEN_PASS_DEF_BUILDUPDATES
#include "passes/optimizer/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/optimizer/Passes.h.inc"

struct BuildUpdates : mlir::rota::impl::BuildUpdatesBase<BuildUpdates> {
  using BuildUpdatesBase::BuildUpdatesBase;
  void runOnOperation() override;

private:
  const OptimizerSpec *readSettings();
  FailureOr<UpdateForm> formOf(ParamOp param, const OptimizerSpec &optimizer);
  LogicalResult setHeads(ParamOp param, UpdateForm &form);
  void setGroup(ParamOp param, UpdateForm &form);
  LogicalResult setBiasRate(ParamOp param, UpdateForm &form);
  void setGradientType(ParamOp param, UpdateForm &form);
  func::FuncOp addFunction(StringRef name, size_t number);
  void shard(func::FuncOp function, ShardingAttr sharding);
  FlatSymbolRefAttr buildUpdate(const OptimizerSpec &optimizer,
                                const UpdateForm &form, size_t number);
  FlatSymbolRefAttr buildSquares(const UpdateForm &form, size_t number);

  UpdateSettings settings;
  ParameterGroups read; // as the option `groups` says
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

FailureOr<UpdateForm> BuildUpdates::formOf(ParamOp param,
                                           const OptimizerSpec &optimizer) {
  FailureOr<Type> compute = readType(param);
  if (failed(compute))
    return failure();
  UpdateForm form{param.getTensorType(),
                  {},
                  *compute,
                  param.getTensorType().getElementType()};
  ArrayRef<int64_t> whole = form.type.getShape();
  PlacementAttr placement = param.getPlacementAttr();
  if (placement)
    whole = placement.getWhole();
  // Checkpoints hold a tensor for each index of the named dimensions.
  int64_t dimensions = form.type.getRank() - param.getNamedDimensions();
  form.decay = dimensions >= 2 ? 1.0 : 0.0;
  if (optimizer.knowsMatrices && dimensions == 2 &&
      isa<LayerOp>(param->getParentOp())) {
    form.rows = whole[whole.size() - 2];
    form.columns = whole.back();
  }
  if (placement) {
    form.sharding = placement.getOptimizer();
    form.type =
        padded(form.type.clone(whole), form.sharding, meshOf(getOperation()));
  }
  if (muonPerHead && form.isMatrix() && failed(setHeads(param, form)))
    return failure();
  setGroup(param, form);
  if (failed(setBiasRate(param, form)))
    return failure();
  setGradientType(param, form);
  return form;
}

/// The heads of all attention ops of the module, by the logical axis that has
/// them in parameters.
static FailureOr<llvm::StringMap<int64_t>> headsByAxis(ModuleOp module) {
  llvm::StringMap<int64_t> heads;
  WalkResult result = module.walk([&](AttentionOp attention) -> WalkResult {
    for (auto [axis, value] : {std::pair("heads", attention.getQuery()),
                               std::pair("kv_heads", attention.getKey())}) {
      int64_t count = cast<RankedTensorType>(value.getType()).getDimSize(2);
      int64_t known = heads.try_emplace(axis, count).first->second;
      if (known != count)
        return attention.emitError("'muon-per-head': expected one number of '")
               << axis << "' in all layers, got " << known << " and " << count;
    }
    return success();
  });
  if (result.wasInterrupted())
    return failure();
  return heads;
}

/// Sets the heads of a matrix with a dimension of all heads.
LogicalResult BuildUpdates::setHeads(ParamOp param, UpdateForm &form) {
  auto heads = headsByAxis(getOperation());
  if (failed(heads))
    return failure();
  if (form.type.getRank() != 2)
    return success();
  auto axes = param.getAxes().getAsValueRange<StringAttr>();
  for (auto [dimension, axis] : llvm::enumerate(axes)) {
    int64_t count = heads->lookup(axis);
    if (count <= 1)
      continue;
    int64_t size = dimension == 0 ? form.rows : form.columns;
    int64_t paddedSize = form.type.getDimSize(dimension);
    if (size % count != 0)
      return param.emitError("'muon-per-head': expected dimension ")
             << dimension << " of parameter '" << param.getSymName()
             << "' to be a multiple of " << count << " heads, got " << size;
    if (paddedSize != size)
      return param.emitError("'muon-per-head': expected ranks to divide the ")
             << size << " elements of dimension " << dimension
             << " of parameter '" << param.getSymName()
             << "' evenly, got parts of " << paddedSize << " in all";
    (dimension == 0 ? form.rowHeads : form.columnHeads) = count;
    return success();
  }
  return success();
}

void BuildUpdates::setGroup(ParamOp param, UpdateForm &form) {
  const ParameterGroup *group = read.find(Model::checkpointName(param));
  if (!group)
    return;
  form.rate = group->rate.value_or(form.rate);
  form.decay = group->decay.value_or(form.decay);
}

/// Sets the rate of a parameter that is the bias of a `rota.route` with a rate.
/// Padding would not stay zero.
LogicalResult BuildUpdates::setBiasRate(ParamOp param, UpdateForm &form) {
  getOperation().walk([&](RouteOp route) {
    auto read = route.getBiasRate() ? route.getBias().getDefiningOp<ReadOp>()
                                    : ReadOp();
    if (!read || lookupParam(read, read.getParamAttr().getAttr()) != param)
      return;
    form.biasRate = route.getBiasRate()->convertToDouble();
    form.rate = form.decay = 0.0;
  });
  if (form.biasRate == 0)
    return success();
  PlacementAttr placement = param.getPlacementAttr();
  int64_t experts =
      placement ? placement.getWhole()[0] : param.getTensorType().getDimSize(0);
  if (form.type.getDimSize(0) == experts)
    return success();
  return param.emitError("expected ranks to divide the ")
         << experts << " biases of '" << param.getSymName()
         << "' evenly, got parts of " << form.type.getDimSize(0) << " in all";
}

/// Whether matrix products alone make the gradients of `param`.
static bool isMadeByProducts(ParamOp param) {
  bool areProducts = true, areSome = false;
  param->getParentOp()->walk([&](AccumulateOp accumulate) {
    if (lookupParam(accumulate, accumulate.getParamAttr().getAttr()) != param)
      return;
    auto product =
        viewedValue(accumulate.getValue()).getDefiningOp<TaskOpInterface>();
    areProducts &= product && product.getTaskForm() == TaskForm::Product;
    areSome = true;
  });
  return areProducts && areSome;
}

/// Sets the narrow type of gradients where the accumulators may have it. No GPU
/// has products of f32 matrices with a result of bf16.
void BuildUpdates::setGradientType(ParamOp param, UpdateForm &form) {
  RotaDialect::GradientAttrHelper helper(&getContext());
  if (gradientDtype == UpdateType::BF16 && form.biasRate == 0 &&
      form.compute.isBF16() && isMadeByProducts(param))
    helper.setAttr(param, TypeAttr::get(BFloat16Type::get(&getContext())));
  form.gradient = gradientType(param);
}

/// Adds `<name>_<number>`, without arguments.
func::FuncOp BuildUpdates::addFunction(StringRef name, size_t number) {
  auto function = func::FuncOp::create(
      getOperation().getLoc(), (name + "_" + Twine(number)).str(),
      FunctionType::get(&getContext(), {}, {}));
  SymbolTable(getOperation()).insert(function);
  return function;
}

/// Sets the shardings with which tensors of the parameter enter and leave.
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
                                            const UpdateForm &form,
                                            size_t number) {
  func::FuncOp function = addFunction("update", number);
  Location loc = NameLoc::get(StringAttr::get(&getContext(), optimizer.name));
  UpdateBuilder builder(loc, function, form, settings);
  builder.finish(form.biasRate > 0 ? buildRouterBias(builder)
                                   : optimizer.build(builder));
  shard(function, form.sharding);
  ++updates;
  return FlatSymbolRefAttr::get(function);
}

/// Rows are summed apart; along axes that divide them each rank has a part of
/// the sum.
FlatSymbolRefAttr BuildUpdates::buildSquares(const UpdateForm &form,
                                             size_t number) {
  func::FuncOp function = addFunction("squares", number);
  Location loc = NameLoc::get(StringAttr::get(&getContext(), "squares"));
  ImplicitLocOpBuilder b(loc, &getContext());
  Block *body = &function.getBody().emplaceBlock();
  b.setInsertionPointToEnd(body);
  RankedTensorType stored = form.accumulated();
  Value gradient = body->addArgument(stored, loc);
  if (stored != form.type)
    gradient = arith::ExtFOp::create(b, form.type, gradient);
  // The choices that balance experts count for no norm.
  Value sums = form.biasRate > 0
                   ? arith::SubFOp::create(b, gradient, gradient).getResult()
                   : arith::MulFOp::create(b, gradient, gradient).getResult();
  ArrayRef<int64_t> shape = form.type.getShape();
  if (!shape.empty())
    sums =
        ReduceOp::create(b, form.type.clone(shape.drop_back()), ReduceKind::Sum,
                         sums, ArrayRef<int64_t>{int64_t(shape.size()) - 1});
  func::ReturnOp::create(b, sums);
  function.setFunctionType(b.getFunctionType(stored, sums.getType()));
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
                           const UpdateSettings &settings,
                           MLIRContext *context) {
  SmallVector<Attribute> options;
  for (const OptimizerSpec::Option &option : optimizer.options) {
    double value = settings.values.lookup(option.name);
    double most = option.isFixedAtZero && value == 0.0 ? 0.0 : option.most;
    options.push_back(OptionAttr::get(context, option.name, APFloat(value),
                                      APFloat(option.least), APFloat(most),
                                      option.help));
  }
  return ArrayAttr::get(context, options);
}

/// Reads the pass's options; null, with an error, where one is wrong.
const OptimizerSpec *BuildUpdates::readSettings() {
  const OptimizerSpec *found = findOptimizer(optimizer);
  if (!found) {
    getOperation().emitError("expected an optimizer out of ")
        << optimizerNames() << ", got '" << optimizer << "'";
    return nullptr;
  }
  std::string error;
  auto values = readOptionValues(*found, this->values, error);
  auto known = ParameterGroups::read(groups, error);
  if (!values || !known) {
    getOperation().emitError(error);
    return nullptr;
  }
  read = *known;
  settings = {{optimizer, stateDtype, gradientDtype, nesterov, muonDtype,
               muonScale, muonPerHead, groups, this->values},
              *values};
  return found;
}

void BuildUpdates::runOnOperation() {
  ModuleOp module = getOperation();
  if (optimizer.empty())
    return markAllAnalysesPreserved();
  const OptimizerSpec *found = readSettings();
  if (!found)
    return signalPassFailure();
  RotaDialect::OptionsAttrHelper(&getContext())
      .setAttr(module, optionsOf(*found, settings, &getContext()));
  RotaDialect::UpdateAttrHelper update(&getContext());
  RotaDialect::SquaresAttrHelper squares(&getContext());
  SmallVector<
      std::pair<UpdateForm, std::pair<FlatSymbolRefAttr, FlatSymbolRefAttr>>>
      known;
  WalkResult result = module.walk([&](ParamOp param) -> WalkResult {
    if (update.isAttrPresent(param) || param.getFrozen())
      return success();
    FailureOr<UpdateForm> form = formOf(param, *found);
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
  if (result.wasInterrupted() || failed(read.verifyMatches(module)))
    return signalPassFailure();
  auto isNarrow = [](auto &entry) { return entry.first.gradient.isBF16(); };
  if (gradientDtype == UpdateType::BF16 && llvm::none_of(known, isNarrow)) {
    module.emitError("'gradient-dtype': expected a parameter that products "
                     "read in bf16, as with 'dtype' bf16, got none");
    signalPassFailure();
  }
}

void mlir::rota::registerOptimizerPasses() { registerRotaOptimizerPasses(); }
