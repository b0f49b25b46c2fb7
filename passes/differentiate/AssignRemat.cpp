// SPDX-License-Identifier: Apache-2.0
//
// Gives stages policies of their own: a kind of layer for each policy, and a
// stack and chunks that use these kinds.
#include "ir/pipe/Pipe.h"
#include "ir/rota/Model.h"
#include "passes/differentiate/Passes.h"
#include "passes/differentiate/Remat.h"

#include <map>

namespace mlir::rota {
#define GEN_PASS_DEF_ASSIGNREMAT
#include "passes/differentiate/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
struct AssignRemat : mlir::rota::impl::AssignRematBase<AssignRemat> {
  using AssignRematBase::AssignRematBase;

  void runOnOperation() override {
    auto programs = getOperation().getOps<pipe::ProgramOp>();
    if (programs.empty()) {
      getOperation().emitError()
          << "expected a 'pipe.program', which says the stages of layers, "
             "got none";
      return signalPassFailure();
    }
    pipe::ProgramOp program = *programs.begin();
    stages = program.getStages();
    if (failed(readPolicies()))
      return signalPassFailure();
    assign(program);
  }

private:
  InFlightDiagnostic error() {
    return std::move(getOperation().emitError() << "'remat': ");
  }
  LogicalResult readPolicies();
  LogicalResult readEntry(StringRef entry);
  void assign(pipe::ProgramOp program);
  FlatSymbolRefAttr variantOf(StackOp stack, FlatSymbolRefAttr kind,
                              int64_t stage);

  int64_t stages = 0;
  SmallVector<StringRef> policyOf; // per stage; empty: not said yet
  StringRef others;                // of stages that no entry names
  std::map<std::pair<StringRef, StringRef>, FlatSymbolRefAttr> variants;
};
} // namespace

/// Reads `N:POLICY`, or the `POLICY` of the stages that no entry names.
LogicalResult AssignRemat::readEntry(StringRef entry) {
  auto [number, policy] = entry.split(':');
  bool isNumbered = entry.contains(':');
  policy = isNumbered ? policy.trim() : entry.trim();
  if (failed(RematPolicy::parse(policy, [&] { return error(); })))
    return failure();
  if (!isNumbered) {
    if (!others.empty())
      return error() << "expected one policy for the other stages, got '"
                     << others << "' and '" << policy << "'";
    others = policy;
    return success();
  }
  int64_t stage;
  if (number.trim().getAsInteger(10, stage) || stage < 0 || stage >= stages)
    return error() << "expected a stage from 0 to " << stages - 1 << " in '"
                   << entry << "', got '" << number.trim() << "'";
  if (!policyOf[stage].empty())
    return error() << "expected one policy for stage " << stage << ", got '"
                   << policyOf[stage] << "' and '" << policy << "'";
  policyOf[stage] = policy;
  return success();
}

LogicalResult AssignRemat::readPolicies() {
  policyOf.assign(stages, "");
  others = "";
  for (StringRef entry : llvm::split(StringRef(policies), ';'))
    if (failed(readEntry(entry)))
      return failure();
  if (others.empty())
    others = "none";
  for (StringRef &policy : policyOf)
    if (policy.empty())
      policy = others;
  return success();
}

/// The kind like `kind` with the policy of `stage`: the kind itself for the
/// first policy that it meets, a copy for each other. Unpipelined layers, which
/// all stages run, have the policy of the stages that no entry names.
FlatSymbolRefAttr AssignRemat::variantOf(StackOp stack, FlatSymbolRefAttr kind,
                                         int64_t stage) {
  bool isUnpipelined = stage == pipe::ChunkAttr::kAllRanks;
  StringRef policy = isUnpipelined ? others : policyOf[stage];
  auto found = variants.find({kind.getValue(), policy});
  if (found != variants.end())
    return found->second;
  SymbolTable symbols(stack);
  auto layer = symbols.lookup<LayerOp>(kind.getValue());
  auto attribute = RotaDialect::RematAttrHelper(&getContext());
  if (attribute.isAttrPresent(layer)) {
    LayerOp copy = layer.clone();
    std::string suffix =
        isUnpipelined ? "_unpipelined" : "_stage" + std::to_string(stage);
    copy.setSymName((kind.getValue() + suffix).str());
    symbols.insert(copy); // another name where that one is taken
    layer = copy;
    ++copies;
  }
  attribute.setAttr(layer, StringAttr::get(&getContext(), policy));
  auto symbol = FlatSymbolRefAttr::get(layer.getSymNameAttr());
  variants[{kind.getValue(), policy}] = symbol;
  return symbol;
}

/// The shortest pattern that gives each layer its kind.
static ArrayRef<Attribute> shortestPattern(ArrayRef<Attribute> kinds) {
  size_t period = 1;
  while (kinds.drop_front(period) != kinds.drop_back(period))
    ++period;
  return kinds.take_front(period);
}

void AssignRemat::assign(pipe::ProgramOp program) {
  variants.clear();
  StackOp stack = program.getStackOp();
  pipe::ChunksOp table = program.getChunks();
  // The keys of `variants` refer to strings of the old table and of `policies`.
  ArrayAttr before = table.getChunks();
  SmallVector<Attribute> chunks, kindsOfLayers;
  for (auto chunk : before.getAsRange<pipe::ChunkAttr>()) {
    SmallVector<FlatSymbolRefAttr> kinds;
    for (FlatSymbolRefAttr kind : chunk.getKinds())
      kinds.push_back(variantOf(stack, kind, chunk.getRank()));
    llvm::append_range(kindsOfLayers, kinds);
    chunks.push_back(
        pipe::ChunkAttr::get(&getContext(), chunk.getRank(), chunk.getEmbeds(),
                             kinds, chunk.getLayers(), chunk.getHasLoss()));
  }
  table.setChunksAttr(ArrayAttr::get(&getContext(), chunks));
  stack.setPatternAttr(
      ArrayAttr::get(&getContext(), shortestPattern(kindsOfLayers)));
}
