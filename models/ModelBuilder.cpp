// SPDX-License-Identifier: Apache-2.0
//
// Builds the ops that all families need.
#include "models/ModelBuilder.h"

#include "ir/rota/Rules.h"
#include "runtime/program/AdapterNames.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

ModelBuilder::ModelBuilder(ModuleOp module, const Microbatch &microbatch)
    : ImplicitLocOpBuilder(module.getLoc(), module.getContext()),
      microbatch(microbatch), adapted(microbatch.adapters),
      moduleBody(module.getBody()), sequenceLength(microbatch.sequenceLength) {
  setInsertionPointToEnd(moduleBody);
}

FloatType ModelBuilder::computeType() {
  return microbatch.compute == ComputeType::BF16 ? FloatType(getBF16Type())
                                                 : FloatType(getF32Type());
}

RankedTensorType ModelBuilder::tensor(ArrayRef<int64_t> shape, Type element) {
  return RankedTensorType::get(shape, element);
}

RankedTensorType ModelBuilder::activation(ArrayRef<int64_t> inner) {
  SmallVector<int64_t> shape{microbatch.sequences, length()};
  shape.append(inner.begin(), inner.end());
  return tensor(shape, computeType());
}

void ModelBuilder::beginLoss() {
  sequenceLength = microbatch.sequenceLength / microbatch.lossBlocks;
}

Attribute ModelBuilder::normal(double deviation) {
  return NormalAttr::get(getContext(), APFloat(0.0), APFloat(deviation));
}

Attribute ModelBuilder::constant(double value) {
  return ConstantAttr::get(getContext(), APFloat(value));
}

void ModelBuilder::param(StringRef name, ArrayRef<int64_t> shape,
                         ArrayRef<StringRef> axes, Attribute init,
                         JoinedAttr joined) {
  adapted.addOther(prefix + name.str());
  declare(name, shape, axes, init, joined, adapted.any());
}

/// PEFT begins with A drawn as the weights of linear layers are
/// (kaiming_uniform with a = sqrt(5)) and B of zeros. Layers of a prediction,
/// which no other program has, get no adapters.
void ModelBuilder::linear(StringRef name, ArrayRef<int64_t> shape,
                          ArrayRef<StringRef> axes, Attribute init) {
  declare(name, shape, axes, init, {}, adapted.any());
  if (!prefix.empty() || !adapted.addLinear(name))
    return;
  double bound = 1.0 / std::sqrt(double(shape[1]));
  declare(::rota::adapterName(name, ::rota::kAdapterA),
          {adapted.rank(), shape[1]}, {"lora_rank", axes[1]},
          UniformAttr::get(getContext(), APFloat(-bound), APFloat(bound)), {},
          /*isFrozen=*/false);
  declare(::rota::adapterName(name, ::rota::kAdapterB),
          {shape[0], adapted.rank()}, {axes[0], "lora_rank"}, constant(0.0), {},
          /*isFrozen=*/false);
}

void ModelBuilder::declare(StringRef name, ArrayRef<int64_t> shape,
                           ArrayRef<StringRef> axes, Attribute init,
                           JoinedAttr joined, bool isFrozen) {
  auto param = ParamOp::create(*this, getStringAttr(prefix + name),
                               TypeAttr::get(tensor(shape, getF32Type())),
                               getStrArrayAttr(axes), init, joined,
                               /*placement=*/nullptr,
                               isFrozen ? getUnitAttr() : UnitAttr());
  for (StringRef axis : axes)
    if (StringRef key = axisKeys.lookup(axis); !key.empty())
      param->setLoc(NameLoc::get(getStringAttr(key), getLoc()));
}

void ModelBuilder::joinedParams(StringRef tensor, int64_t dimension,
                                ArrayRef<JoinedPart> parts, Attribute init) {
  int64_t begin = 0, size = 0;
  for (const JoinedPart &part : parts)
    size += part.shape[dimension];
  for (const JoinedPart &part : parts) {
    param(part.name, part.shape, part.axes, init,
          JoinedAttr::get(getContext(), prefix + tensor.str(), dimension, begin,
                          size));
    begin += part.shape[dimension];
  }
}

void ModelBuilder::beginLayers(StringRef stackName, ArrayRef<StringRef> kinds) {
  auto symbols = llvm::map_to_vector(kinds, [&](StringRef kind) -> Attribute {
    return FlatSymbolRefAttr::get(getContext(), kind);
  });
  auto stack =
      StackOp::create(*this, getStringAttr(stackName),
                      getI64IntegerAttr(kinds.size()), getArrayAttr({}));
  setKinds(stack, symbols);
  stackBody = createBlock(&stack.getBody());
}

void ModelBuilder::beginKind(StringRef kind) {
  setInsertionPointToEnd(stackBody);
  auto layer = LayerOp::create(*this, getStringAttr(kind));
  createBlock(&layer.getBody());
}

void ModelBuilder::endLayers() { setInsertionPointToEnd(moduleBody); }

RoleValues<Value> ModelBuilder::beginFunction(ModelPart part,
                                              const RoleValues<Type> &types) {
  const Signature &row = signatureOf(part, FunctionKind::Forward);
  auto function =
      func::FuncOp::create(*this, row.name,
                           getFunctionType(types.inOrder(row.arguments),
                                           types.inOrder(row.results)));
  outer = function->getBlock();
  Block *body = function.addEntryBlock();
  setInsertionPointToEnd(body);
  RoleValues<Value> arguments;
  arguments.assign(FunctionRoles(function).arguments(), body->getArguments());
  return arguments;
}

void ModelBuilder::markLossTerm(size_t index, StringRef name,
                                double coefficient) {
  auto function = cast<func::FuncOp>(getInsertionBlock()->getParentOp());
  FunctionRoles(function).results(Role::LossTerm)[index].setLossTerm(
      LossTermAttr::get(getContext(), name, APFloat(coefficient)));
}

void ModelBuilder::finish(const RoleValues<Value> &results) {
  auto function = cast<func::FuncOp>(getInsertionBlock()->getParentOp());
  func::ReturnOp::create(*this, results.inOrder(signatureOf(function).results));
  setInsertionPointToEnd(outer);
  sequenceLength = microbatch.sequenceLength;
}

bool ModelBuilder::isInLayer() { return isa<LayerOp>(outer->getParentOp()); }

bool ModelBuilder::hasAuxiliaryLoss() {
  return stackBody->getParentOp()
      ->walk([](AuxiliaryLossOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

Value ModelBuilder::read(StringRef name, ArrayRef<int64_t> shape) {
  return ReadOp::create(*this, tensor(shape, computeType()),
                        prefix + name.str());
}

Value ModelBuilder::readF32(StringRef name, ArrayRef<int64_t> shape) {
  return ReadOp::create(*this, tensor(shape, getF32Type()),
                        prefix + name.str());
}

Value ModelBuilder::project(Value x, StringRef name, int64_t out, int64_t in) {
  Value y = product(x, name, out, in);
  if (!prefix.empty() || !adapted.has(name))
    return y;
  int64_t rank = adapted.rank();
  Value inner =
      product(x, ::rota::adapterName(name, ::rota::kAdapterA), rank, in);
  inner = arith::MulFOp::create(*this, inner,
                                splat(inner.getType(), adapted.scale()));
  return arith::AddFOp::create(
      *this, y,
      product(inner, ::rota::adapterName(name, ::rota::kAdapterB), out, rank));
}

Value ModelBuilder::product(Value x, StringRef name, int64_t out, int64_t in) {
  return EinsumOp::create(*this, activation({out}), "bsk,nk->bsn", x,
                          read(name, {out, in}));
}

Value ModelBuilder::addBias(Value x, StringRef name) {
  auto type = cast<RankedTensorType>(x.getType());
  int64_t last = type.getRank() - 1;
  Value bias = BroadcastOp::create(*this, type,
                                   read(name, {type.getDimSize(last)}), last);
  return arith::AddFOp::create(*this, x, bias);
}

Value ModelBuilder::documentPositions() {
  if (!microbatch.documentEnd)
    return {};
  for (auto positions : getInsertionBlock()->getOps<DocumentPositionsOp>())
    return positions;
  return DocumentPositionsOp::create(
      *this,
      tensor({microbatch.sequences, microbatch.sequenceLength}, getI32Type()),
      getI64IntegerAttr(*microbatch.documentEnd));
}

Value ModelBuilder::splat(Type type, double value) {
  return splatConstant(*this, getLoc(), type, value);
}

Value ModelBuilder::named(StringRef name, Value value) {
  return NameOp::create(*this, value.getType(), name, value);
}

LogicalResult mlir::rota::checkElements(Config &config, StringRef key,
                                        StringRef what,
                                        ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  bool fits = true;
  for (int64_t size : sizes)
    fits = fits && !llvm::MulOverflow(product, size, product) &&
           product <= maxElements;
  if (fits)
    return success();
  auto diagnostic = config.error(key);
  diagnostic << "expected " << what << " to be at most " << maxElements
             << ", got ";
  llvm::interleave(sizes, diagnostic, " x ");
  return diagnostic;
}
