// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of the pipe dialect. Labels C1..Cn are those of the ops'
// descriptions.
#include "ir/pipe/Pipe.h"

using namespace mlir;
using namespace mlir::pipe;

LogicalResult ProgramOp::verifyRegions() {
  // C1: positive sizes. They are 64-bit here and 32-bit in a shape.
  for (auto [name, value] :
       {std::pair<StringRef, int64_t>("stages", getStages()),
        {"repeats", getRepeats()},
        {"parts", getParts().value_or(1)},
        {"microbatches", getMicrobatches()}})
    if (value < 1 || value > ::rota::pipe::kMaxActions)
      return emitOpError("expected '")
             << name << "' between 1 and " << ::rota::pipe::kMaxActions
             << ", got " << value;
  std::string error = ::rota::pipe::checkShape(getShape());
  if (!error.empty())
    return emitOpError(error);
  // C2: chunks and at most one timeline.
  int64_t chunkTables = 0, timelines = 0;
  for (Operation &op : getBody().front()) {
    chunkTables += isa<ChunksOp>(op);
    timelines += isa<TimelineOp>(op);
    if (!isa<ChunksOp, TimelineOp>(op))
      return op.emitOpError("expected 'pipe.chunks' or 'pipe.timeline' in a "
                            "program");
  }
  if (chunkTables != 1)
    return emitOpError("expected one 'pipe.chunks', got ") << chunkTables;
  if (timelines > 1)
    return emitOpError("expected at most one 'pipe.timeline', got ")
           << timelines;
  return success();
}

/// Checks C4, C5 and C8 of one chunk.
static LogicalResult verifyChunk(ProgramOp program, int64_t number,
                                 ChunkAttr chunk) {
  ChunksOp op = program.getChunks();
  ::rota::pipe::Shape shape = program.getShape();
  int64_t last = shape.chunks() - 1;
  // C4: the rank is the placement's, or all.
  auto nameOf = [](int64_t rank) {
    return rank == ChunkAttr::kAllRanks ? std::string("all ranks")
                                        : "rank " + std::to_string(rank);
  };
  int64_t rank = shape.isUnpipelined(number) ? int64_t(ChunkAttr::kAllRanks)
                                             : int64_t(shape.rankOf(number));
  if (chunk.getRank() != rank)
    return op.emitOpError("expected chunk ")
           << number << " on " << nameOf(rank) << ", got "
           << nameOf(chunk.getRank());
  // C5: the embedding and the loss may be alone.
  if (chunk.getLayers().empty() && !chunk.getEmbeds() && !chunk.getHasLoss())
    return op.emitOpError("expected a layer at least in chunk ")
           << number
           << ", which has neither the embedding nor the loss, got none";
  // C8: embedding first, loss last.
  if (chunk.getEmbeds() != (number == 0))
    return op.emitOpError("expected the embedding in chunk 0 alone, chunk ")
           << number << (number ? " has it" : " has not");
  if (chunk.getHasLoss() != (number == last))
    return op.emitOpError("expected the loss in the last chunk alone, chunk ")
           << number << (number == last ? " has not" : " has it");
  return success();
}

LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  // C3: the symbol names a stack.
  auto stack = symbolTables.lookupNearestSymbolFrom<::mlir::rota::StackOp>(
      (*this)->getParentOp(), getStackAttr());
  if (!stack)
    return emitOpError("expected a 'rota.stack', '")
           << getStack() << "' is none";
  ArrayAttr pattern = stack.getPattern();
  // The stack is verified after this op when it stands later.
  if (pattern.empty())
    return success();
  ChunksOp table = getChunks();
  // C4: a chunk for each stage and repeat.
  if (int64_t(table.getChunks().size()) != getShape().chunks())
    return table.emitOpError("expected ")
           << getShape().chunks() << " chunks (" << getStages()
           << " stages, each " << getShape().rows()
           << (getUnpipelined() ? ", and the unpipelined one" : "") << "), got "
           << table.getChunks().size();
  int64_t next = 0;
  for (auto [number, attribute] : llvm::enumerate(table.getChunks())) {
    auto chunk = cast<ChunkAttr>(attribute);
    if (failed(verifyChunk(*this, number, chunk)))
      return failure();
    for (auto [kind, layer] : llvm::zip(chunk.getKinds(), chunk.getLayers())) {
      // C6: the stack's layers in order.
      if (layer != next)
        return table.emitOpError("expected layer ")
               << next << " next in chunk " << number << ", got " << layer;
      // C7: the pattern's kinds.
      Attribute expected = pattern[layer % pattern.size()];
      if (kind != expected)
        return table.emitOpError("expected layer ")
               << layer << " to be of kind " << expected << ", got " << kind;
      ++next;
    }
  }
  // C6: all of them.
  if (next != int64_t(stack.getLayers()))
    return table.emitOpError("expected the ")
           << stack.getLayers() << " layers of the stack, got " << next;
  return success();
}

LogicalResult TimelineOp::verify() {
  // C1: a row for each stage.
  auto program = cast<ProgramOp>((*this)->getParentOp());
  if (int64_t(getRows().size()) != int64_t(program.getStages()))
    return emitOpError("expected ")
           << program.getStages() << " rows, one for each stage, got "
           << getRows().size();
  // C3: the delay.
  int64_t delay = getDelay();
  if (delay < 1 || delay > ::rota::pipe::kOutgoingBuffers)
    return emitOpError("expected a delay of 1 or 2, got ") << delay;
  // C4: the bound of windows.
  std::optional<int64_t> window = getWindow();
  if (window && (*window < 1 || *window > ::rota::pipe::kMaxActions))
    return emitOpError("expected 'window' between 1 and ")
           << ::rota::pipe::kMaxActions << ", got " << *window;
  return success();
}
