// SPDX-License-Identifier: Apache-2.0
//
// Gives stages policies of their own: a kind of layer per policy, and a pattern
// that follows the stages.
#include "ir/rota/Model.h"
#include "passes/differentiate/Passes.h"
#include "passes/differentiate/Remat.h"

#include <map>
#include <numeric>

namespace mlir::rota {
#define GEN_PASS_DEF_ASSIGNREMAT
#include "passes/differentiate/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
struct AssignRemat : rota::impl::AssignRematBase<AssignRemat> {
  using AssignRematBase::AssignRematBase;

  void runOnOperation() override {
    auto stacks = getOperation().getOps<StackOp>();
    if (stacks.empty()) {
      getOperation().emitError("expected a 'rota.stack' in the model");
      return signalPassFailure();
    }
    if (failed(checkSizes()) || failed(readPolicies()))
      return signalPassFailure();
    assign(*stacks.begin());
  }

private:
  InFlightDiagnostic error() { return getOperation().emitError(); }
  LogicalResult checkSizes();
  LogicalResult readPolicies();
  LogicalResult readEntry(StringRef entry, StringRef &others);
  void assign(StackOp stack);
  FlatSymbolRefAttr variantOf(StackOp stack, FlatSymbolRefAttr kind,
                              int64_t stage);

  SmallVector<StringRef> policyOf; // per stage; empty: not said yet
  std::map<std::pair<StringRef, StringRef>, FlatSymbolRefAttr> variants;
};
} // namespace

LogicalResult AssignRemat::checkSizes() {
  if (stages < 1 || layersPerChunk < 1)
    return error() << "expected at least 1 stage and 1 layer per chunk, got "
                   << int64_t(stages) << " and " << int64_t(layersPerChunk);
  return success();
}

/// Reads `N:POLICY`, or the `POLICY` of the stages that no entry names.
LogicalResult AssignRemat::readEntry(StringRef entry, StringRef &others) {
  auto [number, policy] = entry.split(':');
  bool isNumbered = entry.contains(':');
  policy = isNumbered ? policy.trim() : entry.trim();
  if (failed(RematPolicy::parse(policy, [&] { return error(); })))
    return failure();
  if (!isNumbered) {
    if (!others.empty())
      return error() << "expected one remat policy for the other stages, got '"
                     << others << "' and '" << policy << "'";
    others = policy;
    return success();
  }
  int64_t stage;
  if (number.trim().getAsInteger(10, stage) || stage < 0 || stage >= stages)
    return error() << "expected a stage from 0 to " << stages - 1
                   << " in the remat policy '" << entry << "', got '"
                   << number.trim() << "'";
  if (!policyOf[stage].empty())
    return error() << "expected one remat policy for stage " << stage
                   << ", got '" << policyOf[stage] << "' and '" << policy
                   << "'";
  policyOf[stage] = policy;
  return success();
}

LogicalResult AssignRemat::readPolicies() {
  policyOf.assign(stages, "");
  StringRef others;
  for (StringRef entry : llvm::split(StringRef(policies), ';'))
    if (failed(readEntry(entry, others)))
      return failure();
  for (StringRef &policy : policyOf)
    if (policy.empty())
      policy = others.empty() ? "none" : others;
  return success();
}

/// The kind like `kind` with the policy of `stage`: the kind itself for the
/// first policy that it meets, a copy for each other.
FlatSymbolRefAttr AssignRemat::variantOf(StackOp stack, FlatSymbolRefAttr kind,
                                         int64_t stage) {
  StringRef policy = policyOf[stage];
  auto found = variants.find({kind.getValue(), policy});
  if (found != variants.end())
    return found->second;
  SymbolTable symbols(stack);
  auto layer = symbols.lookup<LayerOp>(kind.getValue());
  auto attribute = RotaDialect::RematAttrHelper(&getContext());
  if (attribute.isAttrPresent(layer)) {
    LayerOp copy = layer.clone();
    copy.setSymName((kind.getValue() + "_stage" + std::to_string(stage)).str());
    symbols.insert(copy); // another name where that one is taken
    layer = copy;
    ++copies;
  }
  attribute.setAttr(layer, StringAttr::get(&getContext(), policy));
  auto symbol = FlatSymbolRefAttr::get(layer.getSymNameAttr());
  variants[{kind.getValue(), policy}] = symbol;
  return symbol;
}

void AssignRemat::assign(StackOp stack) {
  variants.clear();
  ArrayAttr before = stack.getPattern();
  int64_t kinds = before.size();
  int64_t period = std::lcm(kinds, stages * layersPerChunk);
  period = std::min(period, int64_t(stack.getLayers()));
  SmallVector<Attribute> pattern;
  // The keys of `variants` refer to strings of `before` and `policies`.
  for (int64_t layer = 0; layer < period; ++layer)
    pattern.push_back(variantOf(stack,
                                cast<FlatSymbolRefAttr>(before[layer % kinds]),
                                layer / layersPerChunk % stages));
  stack.setPatternAttr(ArrayAttr::get(&getContext(), pattern));
}
