// SPDX-License-Identifier: Apache-2.0
#include "passes/differentiate/Residuals.h"

#include "ir/rota/model/Model.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::rota;

static int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static void addLayer(LayerOp layer, ResidualSummary &summary) {
  auto names = layer->getAttrOfType<ArrayAttr>(
      RotaDialect::ResidualNamesAttrHelper::getNameStr());
  if (!names)
    return;
  FunctionRoles roles(Model::function(layer, FunctionKind::Forward));
  for (auto [port, residual] : llvm::zip(roles.results(Role::Residual),
                                         names.getAsRange<ArrayAttr>())) {
    auto &known = port.isOffloaded() ? summary.offloaded : summary.kept;
    for (StringRef name : residual.getAsValueRange<StringAttr>())
      if (!llvm::is_contained(known, name))
        known.push_back(name.str());
    summary.unnamed += residual.empty();
    auto type = cast<RankedTensorType>(port.type());
    summary.values.push_back(
        {layer.getSymName().str(),
         residual.empty()
             ? textOf(type)
             : llvm::join(residual.getAsValueRange<StringAttr>(), "/"),
         bytesOf(type), port.isOffloaded()});
  }
}

ResidualSummary mlir::rota::summarizeResiduals(ModuleOp module) {
  ResidualSummary summary;
  module.walk([&](LayerOp layer) { addLayer(layer, summary); });
  return summary;
}
