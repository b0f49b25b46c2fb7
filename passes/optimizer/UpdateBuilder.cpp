// SPDX-License-Identifier: Apache-2.0
//
// Adds arguments and results to update functions.
#include "passes/optimizer/UpdateBuilder.h"

using namespace mlir;
using namespace mlir::rota;

UpdateBuilder::UpdateBuilder(Location loc, func::FuncOp function,
                             RankedTensorType type, bool decays)
    : ImplicitLocOpBuilder(loc, function.getContext()), function(function),
      body(&function.getBody().emplaceBlock()), type(type), isDecaying(decays) {
  body->addArguments({type, type}, {loc, loc});
  function.setFunctionType(getFunctionType({type, type}, {}));
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
  return mul(scalar(ScalarKind::GradientScale),
             body->getArgument(UpdateFunction::gradient));
}

Value UpdateBuilder::state(StringRef name, double initial) {
  return argument(type, RotaDialect::StateAttrHelper::getNameStr(),
                  StateAttr::get(getContext(), name, APFloat(initial)));
}

Value UpdateBuilder::scalar(ScalarKind kind, StringRef option) {
  auto attribute =
      ScalarAttr::get(getContext(), kind,
                      option.empty() ? StringAttr() : getStringAttr(option));
  Value value =
      argument(RankedTensorType::get({}, type.getElementType()),
               RotaDialect::ScalarAttrHelper::getNameStr(), attribute);
  if (type.getRank() == 0)
    return value;
  return create<BroadcastOp>(type, value, ArrayRef<int64_t>{});
}

void UpdateBuilder::finish(Value updated, Type compute) {
  SmallVector<Value> results{updated};
  for (auto [attribute, value] : arguments)
    if (isa<StateAttr>(attribute))
      results.push_back(updates.lookup(value));
  results.push_back(create<arith::ConstantOp>(
      DenseElementsAttr::get(type, getFloatAttr(type.getElementType(), 0.0))));
  if (compute.getIntOrFloatBitWidth() < type.getElementTypeBitWidth())
    results.push_back(create<arith::TruncFOp>(type.clone(compute), updated));
  func::ReturnOp::create(*this, results);
  function.setFunctionType(getFunctionType(body->getArgumentTypes(),
                                           ValueRange(results).getTypes()));
}
