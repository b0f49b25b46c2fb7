// SPDX-License-Identifier: Apache-2.0
//
// Queries are [batch, position, head], the softmax's rows [batch, head,
// position].
#include "lowering/gpu/attention/GpuAttentionBlocks.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

#include <numbers>

using namespace mlir;

namespace rota::lowering {

//===----------------------------------------------------------------------===//
// Blocks of threads
//===----------------------------------------------------------------------===//

void GpuAttentionBlocks::readLastArguments(unsigned first) {
  Type i32 = k.ops().getI32Type();
  if (shape.hasDocuments)
    documents = k.argument(first++, i32);
  if (!shape.dependsOnPosition)
    return;
  Value blocks = k.load(k.argument(first, i32), k.i64(0));
  Memory other = k.argument(first + 1, i32);
  // A distance stands in place of a pointer.
  Value distance =
      shape.hasKeyPosition
          ? k.load(other, k.i64(0))
          : Value(LLVM::PtrToIntOp::create(k.ops(), i32, other.base));
  seesAny = k.isLess(distance, k.add(blocks, 1));
}

GpuAttentionBlocks::QueryBlock GpuAttentionBlocks::queryBlock(int64_t rows) {
  // The blocks with most keys come first.
  int64_t blocks = llvm::divideCeil(shape.sequence, rows);
  int64_t heads = shape.batch * shape.heads;
  Value block = k.block(), number = k.rem(block, heads);
  Value place = k.sub(k.i32(blocks - 1), k.div(block, heads));
  return {selectSequence(k.div(number, shape.heads)),
          k.rem(number, shape.heads), k.mul(place, rows)};
}

Value GpuAttentionBlocks::selectSequence(Value batch) {
  if (shape.hasDocuments)
    documents = k.offset(documents, k.mul(k.widen(batch), shape.sequence));
  return batch;
}

GpuAttentionBlocks::KeyBlock GpuAttentionBlocks::keyBlock(int64_t rows,
                                                          int64_t parts) {
  // The blocks with most queries, those with the first keys, come first.
  int64_t heads = shape.batch * shape.keyHeads;
  Value block = k.block(), number = k.rem(block, heads);
  Value place = k.div(block, heads);
  return {selectSequence(k.div(number, shape.keyHeads)),
          k.rem(number, shape.keyHeads), k.mul(k.div(place, parts), rows),
          k.rem(place, parts)};
}

//===----------------------------------------------------------------------===//
// Documents
//===----------------------------------------------------------------------===//

Value GpuAttentionBlocks::documentStart(Value position) {
  Value query = k.min(position, k.i32(shape.sequence - 1));
  return k.sub(k.add(query, shape.mask.offset), k.load(documents, query));
}

Value GpuAttentionBlocks::keyBegin(Value first, int64_t rows) {
  Value begin = walk.begin(first, rows);
  if (!shape.hasDocuments)
    return begin;
  // Starts ascend: that of the first query is the least.
  Value start = k.max(documentStart(first), k.i32(0));
  return k.max(begin, k.sub(start, k.rem(start, rows)));
}

/// Starts ascend, so that a tile has such a query if its first one is one.
/// Finds their number bit by bit.
Value GpuAttentionBlocks::documentsEnd(Value begin, Value end, Value keyEnd,
                                       int64_t rows) {
  int64_t most = llvm::divideCeil(shape.sequence, rows);
  Value tiles = k.i32(0);
  for (int64_t bit = llvm::Log2_64(most); bit >= 0; --bit) {
    Value more = k.add(tiles, int64_t(1) << bit);
    Value last = k.add(begin, k.mul(k.add(more, -1), rows));
    Value isSeen = k.both(k.isLess(last, k.i32(shape.sequence)),
                          k.isLess(documentStart(last), keyEnd));
    tiles = k.select(isSeen, more, tiles);
  }
  return k.min(end, k.add(begin, k.mul(tiles, rows)));
}

FailureOr<std::string>
emitAttentionKernel(KernelLibrary &library, Location loc, StringRef name,
                    const AttentionShape &shape, const AttentionLaunch &launch,
                    llvm::function_ref<void(GpuBuilder &k)> body,
                    llvm::function_ref<void(GpuBuilder &k)> grouped) {
  int64_t blocks = shape.batch * launch.heads *
                   llvm::divideCeil(shape.sequence, launch.rows);
  return emitGpuKernel(library, loc, name, toString(shape), launch.arguments,
                       blocks, launch.threads, body, grouped);
}

SmallVector<Value> GpuAttentionBlocks::walkQueries(const KeyBlock &block,
                                                   int64_t own, int64_t rows,
                                                   ValueRange initial,
                                                   TileBody body) {
  auto [start, first] = firstTile(block, rows);
  Value end = queryEnd(block, own, rows, {start, first});
  return k.loop(start, k.add(start, shape.group()), 1, initial,
                [&, first = first](Value head, ValueRange carried) {
                  return k.loop(first, end, rows, carried,
                                [&](Value query, ValueRange inner) {
                                  Value after = k.add(query, rows);
                                  Value inHead = k.isLess(after, end);
                                  QueryTile next{
                                      k.select(inHead, head, k.add(head, 1)),
                                      k.select(inHead, after, first)};
                                  return body({head, query}, next, inner);
                                });
                });
}

Value GpuAttentionBlocks::isBeyond(Value first, int64_t rows) {
  if (hidesBeyond() || shape.sequence % rows == 0)
    return {};
  return k.isLess(k.i32(shape.sequence), k.add(first, rows));
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

StridedRows GpuAttentionBlocks::rowsOf(Memory memory, Value batch, Value head,
                                       int64_t heads, int64_t size) {
  int64_t stride = heads * size;
  Value start = k.add(k.mul(k.widen(batch), shape.sequence * stride),
                      k.mul(k.widen(head), size));
  return {k.offset(memory, start), stride, size};
}

Memory GpuAttentionBlocks::lineOf(Memory memory, Value batch, Value head) {
  Value row = k.add(k.mul(k.widen(batch), shape.heads), k.widen(head));
  return k.offset(memory, k.mul(row, shape.sequence));
}

GpuAttentionBlocks::QueryLines GpuAttentionBlocks::queryLines(Value batch,
                                                              Value head) {
  using Argument = AttentionGradArgument;
  Type f32 = k.ops().getF32Type();
  return {lineOf(k.argument(Argument::Logsumexp, f32), batch, head),
          lineOf(k.argument(Argument::Delta, f32), batch, head)};
}

std::pair<Value, Value> GpuAttentionBlocks::loadLines(const QueryLines &lines,
                                                      Value position) {
  Value read = k.min(position, k.i32(shape.sequence - 1));
  return {toBaseTwo(k.load(lines.logsumexp, read)), k.load(lines.delta, read)};
}

Value GpuAttentionBlocks::toBaseTwo(Value logsumexp) {
  return k.mulf(logsumexp, k.f32(-std::numbers::log2e));
}

Value GpuAttentionBlocks::previousLogsumexp(Value batch, Value head,
                                            Value position) {
  Memory line =
      lineOf(k.argument(AttentionArgument::Previous + 1, k.ops().getF32Type()),
             batch, head);
  return k.load(line, k.min(position, k.i32(shape.sequence - 1)));
}

void GpuAttentionBlocks::storeLogsumexp(Value logsumexp, Value batch,
                                        Value head, Value position) {
  Memory line =
      lineOf(k.argument(AttentionArgument::Logsumexp, k.ops().getF32Type()),
             batch, head);
  if (shape.hasPrevious && seesAny)
    logsumexp =
        k.select(seesAny, logsumexp, previousLogsumexp(batch, head, position));
  k.when(k.isWithin(position, shape.sequence),
         [&] { k.store(logsumexp, line, position); });
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

RunningSoftmax RunningSoftmax::resume(GpuBuilder &k, Values logsumexp,
                                      Values sums, int64_t threads) {
  Values total(logsumexp.size(), k.f32(1.0f / float(threads)));
  return {std::move(logsumexp), std::move(total), std::move(sums)};
}

RunningSoftmax RunningSoftmax::start(GpuBuilder &k, int64_t rows, Values zeros,
                                     Value sink, int64_t threads) {
  // Below every score, and finite when it is scaled.
  constexpr float kLowest = -0x1p100f;
  Value highest = sink ? sink : k.f32(kLowest);
  Value total = k.f32(sink ? 1.0f / float(threads) : 0.0f);
  return {Values(rows, highest), Values(rows, total), std::move(zeros)};
}

RunningSoftmax::Values RunningSoftmax::all() const {
  Values values(highest);
  values.append(total);
  values.append(sums);
  return values;
}

RunningSoftmax RunningSoftmax::of(ValueRange all, int64_t rows) {
  return {Values(all.take_front(rows)), Values(all.slice(rows, rows)),
          Values(all.drop_front(2 * rows))};
}

SmallVector<Value> combineEach(GpuBuilder &k, ValueRange values,
                               int64_t threads,
                               llvm::function_ref<Value(Value, Value)> join) {
  return k.combineThreads(values, threads, [&](ValueRange x, ValueRange y) {
    SmallVector<Value> joined;
    for (auto [left, right] : llvm::zip(x, y))
      joined.push_back(join(left, right));
    return joined;
  });
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

Value fastExp2(GpuBuilder &k, Value value) {
  return LLVM::CallIntrinsicOp::create(
             k.ops(), value.getType(),
             k.ops().getStringAttr("llvm.nvvm.ex2.approx.ftz"), value)
      .getResults();
}

} // namespace rota::lowering
