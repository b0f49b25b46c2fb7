// SPDX-License-Identifier: Apache-2.0
//
// Adds arguments and results to update functions.
#include "passes/optimizer/Optimizers.h"

using namespace mlir;
using namespace mlir::rota;

UpdateBuilder::UpdateBuilder(Location loc, func::FuncOp function,
                             const UpdateForm &form,
                             const UpdateSettings &settings)
    : ImplicitLocOpBuilder(loc, function.getContext()), function(function),
      body(&function.getBody().emplaceBlock()), described(form),
      chosen(settings) {
  SmallVector<Type> types = {form.type, form.accumulated()};
  body->addArguments(types, {loc, loc});
  function.setFunctionType(getFunctionType(types, {}));
  setInsertionPointToEnd(body);
}

Value UpdateBuilder::argument(Type type, StringRef name, Attribute value) {
  Value &known = arguments[value];
  if (!known) {
    unsigned number = body->getNumArguments();
    auto attributes =
        DictionaryAttr::get(getContext(), getNamedAttr(name, value));
    if (failed(function.insertArgument(number, type, attributes, getLoc())))
      return nullptr;
    known = body->getArgument(number);
  }
  return known;
}

Value UpdateBuilder::gradient() {
  Value sum = total();
  return mul(scalar(ScalarKind::GradientScale), sum);
}

Value UpdateBuilder::state(StringRef name, double initial) {
  Type element = chosen.stateDtype == UpdateType::BF16 ? Type(getBF16Type())
                                                       : getF32Type();
  auto type = RankedTensorType::get(described.type.getShape(), element);
  Value stored = argument(type, RotaDialect::StateAttrHelper::getNameStr(),
                          StateAttr::get(getContext(), name, APFloat(initial)));
  return convert(stored, getF32Type());
}

Value UpdateBuilder::scalar(ScalarKind kind, StringRef option, double factor) {
  auto attribute = ScalarAttr::get(
      getContext(), kind, option.empty() ? StringAttr() : getStringAttr(option),
      factor == 1.0 ? FloatAttr() : getF64FloatAttr(factor));
  Value value =
      argument(RankedTensorType::get({}, getF32Type()),
               RotaDialect::ScalarAttrHelper::getNameStr(), attribute);
  if (described.type.getRank() == 0)
    return value;
  return create<BroadcastOp>(described.type, value, ArrayRef<int64_t>{});
}

Value UpdateBuilder::constant(Type like, double value) {
  auto type = cast<RankedTensorType>(like);
  return create<arith::ConstantOp>(
      DenseElementsAttr::get(type, getFloatAttr(type.getElementType(), value)));
}

Value UpdateBuilder::convert(Value value, Type element) {
  auto from = cast<RankedTensorType>(value.getType());
  auto to = from.clone(element);
  if (from == to)
    return value;
  return to.getElementTypeBitWidth() < from.getElementTypeBitWidth()
             ? create<arith::TruncFOp>(to, value)
             : create<arith::ExtFOp>(to, value);
}

Value UpdateBuilder::runningMean(StringRef state, Value value,
                                 StringRef option) {
  Value mean = this->state(state), rest = complement(option);
  Value updated = add(sub(mean, mul(rest, mean)), mul(rest, value));
  setState(state, updated);
  return updated;
}

Value UpdateBuilder::descend(Value direction) {
  Value p = parameter();
  if (described.decay != 0.0)
    direction =
        add(direction,
            mul(scalar(ScalarKind::Option, kWeightDecay, described.decay), p));
  Value rate = scalar(ScalarKind::LearningRate, "", described.rate);
  return sub(p, mul(rate, direction));
}

void UpdateBuilder::finish(Value updated) {
  Value isSkipped =
      create<arith::CmpFOp>(arith::CmpFPredicate::OGT, scalar(ScalarKind::Skip),
                            constant(described.type, 0.0));
  updated = select(isSkipped, parameter(), updated);
  SmallVector<Value> results{updated};
  for (auto [attribute, value] : arguments)
    if (auto state = dyn_cast<StateAttr>(attribute))
      results.push_back(convert(select(isSkipped, convert(value, getF32Type()),
                                       updates.lookup(state.getName())),
                                getElementTypeOrSelf(value)));
  results.push_back(constant(described.accumulated(), 0.0));
  if (described.compute.getIntOrFloatBitWidth() <
      described.type.getElementTypeBitWidth())
    results.push_back(convert(updated, described.compute));
  func::ReturnOp::create(*this, results);
  function.setFunctionType(getFunctionType(body->getArgumentTypes(),
                                           ValueRange(results).getTypes()));
}
