// SPDX-License-Identifier: Apache-2.0
//
// Marks the parameters that patterns name, and gives layers in which other
// parameters are frozen kinds of their own.
#include "ir/rota/model/Model.h"
#include "ir/rota/model/ParameterNames.h"
#include "passes/differentiate/Passes.h"
#include "runtime/program/TensorNames.h"

#include <map>

namespace mlir::rota {
#define GEN_PASS_DEF_FREEZEPARAMETERS
#include "passes/differentiate/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
struct FreezeParameters
    : mlir::rota::impl::FreezeParametersBase<FreezeParameters> {
  using FreezeParametersBase::FreezeParametersBase;

  void runOnOperation() override;

private:
  /// Whether each parameter of a layer is frozen, in order, and then whether
  /// its input is.
  using Choice = std::vector<bool>;

  LogicalResult readPatterns();
  bool isPicked(ParamOp param, std::optional<int64_t> layer = std::nullopt);
  SmallVector<Choice> choicesOf(const Model &model);
  void freeze(ParamOp param);
  void freezeLayers(const Model &model);
  LayerOp variantOf(LayerOp kind, const Choice &choice, int64_t layer);

  SmallVector<StringRef> read; // the patterns
  SmallVector<bool> isUsed;    // by pattern: whether a name has it
  std::map<std::pair<Operation *, Choice>, LayerOp> variants;
};
} // namespace

LogicalResult FreezeParameters::readPatterns() {
  read.clear();
  StringRef(patterns).split(read, ',');
  for (StringRef &pattern : read) {
    pattern = pattern.trim();
    if (pattern.empty())
      return getOperation().emitError("'freeze': expected PATTERN,..., got '")
             << patterns << "'";
  }
  isUsed.assign(read.size(), false);
  return success();
}

/// Whether a pattern names `param`, in a stack that of this layer.
bool FreezeParameters::isPicked(ParamOp param, std::optional<int64_t> layer) {
  std::string name = Model::checkpointName(param);
  std::string numbered =
      layer ? ::rota::withLayer(name, *layer) : std::string(name);
  bool isAny = false;
  for (auto [pattern, used] : llvm::zip(read, isUsed))
    if (isInName(pattern, name) || isInName(pattern, numbered))
      used = isAny = true;
  return isAny;
}

/// The choices of all layers. What enters a layer is frozen where all is that
/// comes before it.
SmallVector<FreezeParameters::Choice>
FreezeParameters::choicesOf(const Model &model) {
  SmallVector<Choice> choices;
  bool isFrozen = llvm::all_of(Model::usedParams(model.embed),
                               [](ParamOp param) { return param.getFrozen(); });
  StackOp stack = model.stack;
  for (int64_t layer = 0, end = stack.getLayers(); layer < end; ++layer) {
    Choice &choice = choices.emplace_back();
    LayerOp kind = model.kindOf(layer);
    for (ParamOp param : Model::params(kind))
      choice.push_back(param.getFrozen() || isPicked(param, layer));
    bool isLayerFrozen = llvm::all_of(choice, [](bool each) { return each; });
    for (ParamOp param :
         Model::usedParams(Model::function(kind, FunctionKind::Forward)))
      isLayerFrozen &= param->getParentOp() == kind || param.getFrozen();
    choice.push_back(isFrozen);
    isFrozen &= isLayerFrozen;
  }
  return choices;
}

void FreezeParameters::freeze(ParamOp param) {
  frozen += !param.getFrozen();
  param.setFrozen(true);
}

/// The kind like `kind` with what is frozen in that layer: the kind itself for
/// the first choice that is asked for, a copy for each other.
LayerOp FreezeParameters::variantOf(LayerOp kind, const Choice &choice,
                                    int64_t layer) {
  auto found = variants.find({kind, choice});
  if (found != variants.end())
    return found->second;
  bool isFirst = llvm::none_of(
      variants, [&](auto &entry) { return entry.first.first == kind; });
  LayerOp variant = kind;
  if (!isFirst) {
    variant = kind.clone();
    variant.setSymName((kind.getSymName() + "_layer" + Twine(layer)).str());
    SymbolTable(kind->getParentOp()).insert(variant);
    ++copies;
  }
  variants[{kind, choice}] = variant;
  return variant;
}

/// Marks come last: each copy is one of the kind as it was.
void FreezeParameters::freezeLayers(const Model &model) {
  variants.clear();
  StackOp stack = model.stack;
  SmallVector<LayerOp> kinds;
  for (int64_t i = 0, end = stack.getLayers(); i < end; ++i)
    kinds.push_back(model.kindOf(i));
  SmallVector<Attribute> symbols;
  SmallVector<Choice> choices = choicesOf(model);
  for (auto [layer, kind] : llvm::enumerate(kinds))
    symbols.push_back(FlatSymbolRefAttr::get(
        variantOf(kind, choices[layer], layer).getSymNameAttr()));
  for (auto &[key, variant] : variants) {
    variant.setFrozenInput(key.second.back());
    for (auto [param, isFrozen] :
         llvm::zip_first(Model::params(variant), key.second))
      if (isFrozen)
        freeze(param);
  }
  setKinds(stack, symbols);
}

void FreezeParameters::runOnOperation() {
  ModuleOp module = getOperation();
  if (patterns.empty())
    return markAllAnalysesPreserved();
  FailureOr<Model> model = Model::get(module);
  if (failed(model) || failed(readPatterns()))
    return signalPassFailure();
  for (ParamOp param : model->globalParams())
    if (isPicked(param))
      freeze(param);
  freezeLayers(*model);
  for (auto [pattern, used] : llvm::zip(read, isUsed))
    if (!used) {
      (void)LogicalResult(emitNoMatch(module, "freeze", pattern));
      return signalPassFailure();
    }
  WalkResult trainable = module.walk([](ParamOp param) {
    return param.getFrozen() ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (trainable.wasInterrupted())
    return;
  module.emitError("'freeze': expected patterns that leave a parameter to "
                   "train, got '")
      << patterns << "', which are in the names of all";
  signalPassFailure();
}
