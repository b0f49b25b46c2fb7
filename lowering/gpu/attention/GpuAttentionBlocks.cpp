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

GpuAttentionBlocks::QueryBlock GpuAttentionBlocks::queryBlock(int64_t rows) {
  // The blocks with most keys come first.
  int64_t blocks = llvm::divideCeil(shape.sequence, rows);
  int64_t heads = shape.batch * shape.heads;
  Value block = k.block(), number = k.rem(block, heads);
  Value place = k.sub(k.i32(blocks - 1), k.div(block, heads));
  return {k.div(number, shape.heads), k.rem(number, shape.heads),
          k.mul(place, rows)};
}

GpuAttentionBlocks::KeyBlock GpuAttentionBlocks::keyBlock(int64_t rows,
                                                          int64_t parts) {
  // The blocks with most queries, those with the first keys, come first.
  int64_t heads = shape.batch * shape.keyHeads;
  Value block = k.block(), number = k.rem(block, heads);
  Value place = k.div(block, heads);
  return {k.div(number, shape.keyHeads), k.rem(number, shape.keyHeads),
          k.mul(k.div(place, parts), rows), k.rem(place, parts)};
}

FailureOr<std::string>
emitAttentionKernel(KernelLibrary &library, Location loc, StringRef name,
                    const AttentionShape &shape, const AttentionLaunch &launch,
                    llvm::function_ref<void(GpuBuilder &k)> body) {
  int64_t blocks = shape.batch * launch.heads *
                   llvm::divideCeil(shape.sequence, launch.rows);
  return emitGpuKernel(library, loc, name, toString(shape), launch.arguments,
                       blocks, launch.threads, body);
}

SmallVector<Value> GpuAttentionBlocks::walkQueries(const KeyBlock &block,
                                                   int64_t own, int64_t rows,
                                                   ValueRange initial,
                                                   TileBody body) {
  auto [start, first] = firstTile(block, rows);
  Value end = queryWalk.end(block.first, own);
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
  // A causal mask hides them from every query in the sequence.
  if (shape.mask.after == 0 || shape.sequence % rows == 0)
    return {};
  return k.isLess(k.i32(shape.sequence), k.add(first, rows));
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

HeadRows GpuAttentionBlocks::rowsOf(Memory memory, Value batch, Value head,
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

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

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

void leaveRegistersFor(GpuBuilder &k, int64_t blocks) {
  k.ops().getBlock()->getParentOp()->setAttr(
      NVVM::NVVMDialect::getMinctasmAttrName(),
      k.ops().getI32IntegerAttr(blocks));
}

Value fastExp2(GpuBuilder &k, Value value) {
  return LLVM::CallIntrinsicOp::create(
             k.ops(), value.getType(),
             k.ops().getStringAttr("llvm.nvvm.ex2.approx.ftz"), value)
      .getResults();
}

} // namespace rota::lowering
