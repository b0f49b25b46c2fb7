// SPDX-License-Identifier: Apache-2.0
//
// Update functions by the parameters that name them.
#include "ir/rota/model/Update.h"

using namespace mlir;
using namespace mlir::rota;

static func::FuncOp lookupFunction(ParamOp param, FlatSymbolRefAttr name) {
  return name ? param->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(
                    name.getAttr())
              : func::FuncOp();
}

UpdateFunction UpdateFunction::of(ParamOp param) {
  return UpdateFunction(lookupFunction(
      param, RotaDialect::UpdateAttrHelper(param.getContext()).getAttr(param)));
}

func::FuncOp mlir::rota::squaresOf(ParamOp param) {
  return lookupFunction(
      param, RotaDialect::SquaresAttrHelper(param.getContext()).getAttr(param));
}

Type mlir::rota::gradientType(ParamOp param) {
  TypeAttr type =
      RotaDialect::GradientAttrHelper(param.getContext()).getAttr(param);
  return type ? type.getValue() : param.getTensorType().getElementType();
}

StateAttr UpdateFunction::stateOf(unsigned argument) const {
  return function.getArgAttrOfType<StateAttr>(
      argument, RotaDialect::StateAttrHelper::getNameStr());
}

ScalarAttr UpdateFunction::scalarOf(unsigned argument) const {
  return function.getArgAttrOfType<ScalarAttr>(
      argument, RotaDialect::ScalarAttrHelper::getNameStr());
}

SmallVector<unsigned> UpdateFunction::states() const {
  SmallVector<unsigned> numbers;
  for (unsigned i = 0, end = function.getNumArguments(); i < end; ++i)
    if (stateOf(i))
      numbers.push_back(i);
  return numbers;
}

LogicalResult ScalarAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ScalarKind kind, StringAttr option,
                                 FloatAttr factor) {
  bool isOfOption = kind == ScalarKind::Option ||
                    kind == ScalarKind::Complement ||
                    kind == ScalarKind::Correction;
  if (isOfOption != bool(option))
    return emitError() << "expected " << stringifyScalarKind(kind)
                       << (isOfOption ? " of an option" : " without an option");
  bool isScaled =
      kind == ScalarKind::LearningRate || kind == ScalarKind::Option;
  if (factor && (!isScaled || !factor.getType().isF64()))
    return emitError() << "expected "
                       << (isScaled
                               ? "a factor of type f64"
                               : "no factor of " + stringifyScalarKind(kind))
                       << ", got " << factor;
  return success();
}
