// SPDX-License-Identifier: Apache-2.0
//
// Gives stages and chunks policies of their own: a kind of layer for each
// policy, and a stack and chunks that use these kinds.
#include "ir/pipe/Pipe.h"
#include "ir/rota/model/Model.h"
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
    if (!isRematList(remat))
      return;
    auto programs = getOperation().getOps<pipe::ProgramOp>();
    if (programs.empty()) {
      getOperation().emitError()
          << "expected a 'pipe.program', which says the stages of layers, "
             "got none";
      return signalPassFailure();
    }
    pipe::ProgramOp program = *programs.begin();
    policyOfStage.assign(program.getStages(), "");
    policyOfChunk.assign(program.getChunks().getChunks().size(), "");
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
  FailureOr<StringRef *> findPlace(StringRef entry, StringRef place);
  void assign(pipe::ProgramOp program);
  std::pair<StringRef, std::string> policyOf(int64_t chunk, int64_t stage);
  FlatSymbolRefAttr variantOf(StackOp stack, FlatSymbolRefAttr kind,
                              int64_t chunk, int64_t stage);

  // Policies of the stages and chunks that an entry names; empty: none does.
  SmallVector<StringRef> policyOfStage, policyOfChunk;
  StringRef others; // policy of the stages that no entry names
  std::map<std::pair<StringRef, StringRef>, FlatSymbolRefAttr> variants;
};
} // namespace

/// The policy of the place that an entry names: a stage, or `chunkN`.
FailureOr<StringRef *> AssignRemat::findPlace(StringRef entry,
                                              StringRef place) {
  StringRef number = place;
  bool isChunk = number.consume_front("chunk");
  number = number.trim();
  SmallVector<StringRef> &places = isChunk ? policyOfChunk : policyOfStage;
  uint64_t found;
  if (!number.getAsInteger(10, found) && found < places.size())
    return &places[found];
  return error() << "expected a " << (isChunk ? "chunk" : "stage")
                 << " from 0 to " << places.size() - 1
                 << (isChunk ? "" : ", or 'chunk' with its number,") << " in '"
                 << entry << "', got '" << number << "'";
}

/// Reads `STAGE:POLICY` or `chunkN:POLICY`, or the `POLICY` of the stages that
/// no entry names.
LogicalResult AssignRemat::readEntry(StringRef entry) {
  bool hasPlace = entry.contains(':');
  StringRef place = hasPlace ? entry.split(':').first.trim() : "";
  StringRef policy = hasPlace ? entry.split(':').second.trim() : entry.trim();
  if (failed(RematPolicy::parse(policy, [&] { return error(); })))
    return failure();
  FailureOr<StringRef *> found = &others;
  if (hasPlace)
    found = findPlace(entry, place);
  if (failed(found))
    return failure();
  StringRef &said = **found;
  if (!said.empty())
    return error() << "expected one policy for "
                   << (!hasPlace                    ? "the other stages"
                       : place.starts_with("chunk") ? place.str()
                                                    : "stage " + place.str())
                   << ", got '" << said << "' and '" << policy << "'";
  said = policy;
  return success();
}

LogicalResult AssignRemat::readPolicies() {
  others = "";
  for (StringRef entry : llvm::split(StringRef(remat), ';'))
    if (failed(readEntry(entry)))
      return failure();
  if (others.empty())
    others = "none";
  return success();
}

/// The policy of a chunk, and the suffix of kinds that it is the first to need.
/// Unpipelined layers, which all stages run, have the policy of the stages that
/// no entry names.
std::pair<StringRef, std::string> AssignRemat::policyOf(int64_t chunk,
                                                        int64_t stage) {
  if (StringRef own = policyOfChunk[chunk]; !own.empty())
    return {own, "_chunk" + std::to_string(chunk)};
  if (stage == pipe::ChunkAttr::kAllRanks)
    return {others, "_unpipelined"};
  StringRef said = policyOfStage[stage];
  return {said.empty() ? others : said, "_stage" + std::to_string(stage)};
}

/// The kind like `kind` with the policy of the chunk: the kind itself for the
/// first policy that it meets, a copy for each other.
FlatSymbolRefAttr AssignRemat::variantOf(StackOp stack, FlatSymbolRefAttr kind,
                                         int64_t chunk, int64_t stage) {
  auto [policy, suffix] = policyOf(chunk, stage);
  auto found = variants.find({kind.getValue(), policy});
  if (found != variants.end())
    return found->second;
  SymbolTable symbols(stack);
  auto layer = symbols.lookup<LayerOp>(kind.getValue());
  auto attribute = RotaDialect::RematAttrHelper(&getContext());
  if (attribute.isAttrPresent(layer)) {
    LayerOp copy = layer.clone();
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

void AssignRemat::assign(pipe::ProgramOp program) {
  variants.clear();
  StackOp stack = program.getStackOp();
  pipe::ChunksOp table = program.getChunks();
  // The keys of `variants` refer to strings of the old table and of `remat`.
  ArrayAttr before = table.getChunks();
  SmallVector<Attribute> chunks, kindsOfLayers;
  for (auto [number, chunk] :
       llvm::enumerate(before.getAsRange<pipe::ChunkAttr>())) {
    SmallVector<FlatSymbolRefAttr> kinds;
    for (FlatSymbolRefAttr kind : chunk.getKinds())
      kinds.push_back(variantOf(stack, kind, number, chunk.getRank()));
    llvm::append_range(kindsOfLayers, kinds);
    chunks.push_back(
        pipe::ChunkAttr::get(&getContext(), chunk.getRank(), chunk.getEmbeds(),
                             kinds, chunk.getLayers(), chunk.getHasLoss()));
  }
  table.setChunksAttr(ArrayAttr::get(&getContext(), chunks));
  setKinds(stack, kindsOfLayers);
}
