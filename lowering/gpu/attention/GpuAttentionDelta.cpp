// SPDX-License-Identifier: Apache-2.0
//
// Delta and the cotangents of sinks. Cotangents and outputs are [batch,
// position, head], logsumexp and delta [batch, head, position].
#include "lowering/gpu/attention/GpuAttentionDelta.h"

#include "llvm/Support/MathExtras.h"

#include <numbers>

using namespace mlir;

namespace rota::lowering {

using Kind = KernelArgument::Kind;
using Values = SmallVector<Value>;

namespace {

/// Threads of one row, and the elements of one access.
struct DeltaGeometry {
  static constexpr int64_t kThreads = 256;

  explicit DeltaGeometry(const AttentionShape &shape)
      : width(chunkWidth(shape.valueSize, shape.element)),
        chunks(shape.valueSize / width),
        threads(std::min<int64_t>(llvm::PowerOf2Ceil(chunks), kWarp)),
        rows(shape.batch * shape.sequence * shape.heads),
        blocks(llvm::divideCeil(rows, kThreads / threads)) {}

  int64_t width, chunks, threads, rows, blocks;
};

/// Arguments: cotangent, output, delta.
void emitDelta(GpuBuilder &k, const AttentionShape &shape) {
  DeltaGeometry geometry(shape);
  int64_t rowsPerBlock = DeltaGeometry::kThreads / geometry.threads;
  Value local = k.rem(k.thread(), geometry.threads);
  Value row = k.add(k.mul(k.widen(k.block()), rowsPerBlock),
                    k.widen(k.div(k.thread(), geometry.threads)));
  Value inRange = k.isWithin(row, geometry.rows);
  row = k.select(inRange, row, k.i64(geometry.rows - 1));
  Memory cotangents = k.argument(0, shape.element);
  Memory outputs = k.argument(1, shape.element);
  Value start = k.mul(row, shape.valueSize);
  Value products = k.loop(
      local, k.i32(geometry.chunks), geometry.threads,
      {k.splat(0.0f, geometry.width)}, [&](Value chunk, ValueRange before) {
        Value at = k.add(start, k.mul(k.widen(chunk), geometry.width));
        return Values{k.fma(k.loadVector(cotangents, at, geometry.width),
                            k.loadVector(outputs, at, geometry.width),
                            before[0])};
      })[0];
  Value sum = k.extract(products, 0);
  for (int64_t i = 1; i < geometry.width; ++i)
    sum = k.addf(sum, k.extract(products, i));
  sum =
      k.combineThreads(sum, geometry.threads, [&](ValueRange x, ValueRange y) {
        return Values{k.addf(x[0], y[0])};
      })[0];
  // Rows are [batch, position, head], results [batch, head, position].
  Value position = k.rem(k.div(row, shape.heads), shape.sequence);
  Value head =
      k.add(k.mul(k.div(row, shape.heads * shape.sequence), shape.heads),
            k.rem(row, shape.heads));
  k.when(k.both(inRange, k.isEqual(local, k.i32(0))), [&] {
    k.store(sum, k.argument(2, k.ops().getF32Type()),
            k.add(k.mul(head, shape.sequence), position));
  });
}

constexpr int64_t kSinkThreads = 256;

/// Arguments: sinks, logsumexp, delta, result.
void emitSinkGrad(GpuBuilder &k, const AttentionShape &shape) {
  Type f32 = k.ops().getF32Type();
  Value head = k.block(), log2e = k.f32(std::numbers::log2e_v<float>);
  Value sink = k.mulf(k.load(k.argument(0, f32), k.widen(head)), log2e);
  Memory lines = k.argument(1, f32), deltas = k.argument(2, f32);
  auto add = [&](Value number, ValueRange before) {
    Value batch = k.div(number, shape.sequence);
    Value row = k.add(k.mul(k.widen(batch), shape.heads), k.widen(head));
    Value at = k.add(k.mul(row, shape.sequence),
                     k.widen(k.rem(number, shape.sequence)));
    Value score = k.subf(sink, k.mulf(k.load(lines, at), log2e));
    Value part = k.mulf(fastExp2(k, score), k.load(deltas, at));
    return Values{k.subf(before[0], part)};
  };
  Value sum = k.loop(k.thread(), k.i32(shape.batch * shape.sequence),
                     kSinkThreads, {k.f32(0.0f)}, add)[0];
  sum = k.combineThreads(sum, kSinkThreads, [&](ValueRange x, ValueRange y) {
    return Values{k.addf(x[0], y[0])};
  })[0];
  k.when(k.isEqual(k.thread(), k.i32(0)),
         [&] { k.store(sum, k.argument(3, f32), k.widen(head)); });
}

} // namespace

int64_t attentionDeltaBytes(const AttentionShape &shape) {
  return DeltaGeometry(shape).rows * int64_t(sizeof(float));
}

FailureOr<KernelCall> planAttentionDelta(KernelLibrary &library, Location loc,
                                         const AttentionShape &shape,
                                         KernelArgument delta) {
  DeltaGeometry geometry(shape);
  auto symbol =
      emitGpuKernel(library, loc, "attention_delta", toString(shape),
                    /*arguments=*/3, geometry.blocks, DeltaGeometry::kThreads,
                    [&](GpuBuilder &k) { emitDelta(k, shape); });
  if (failed(symbol))
    return failure();
  return KernelCall{*symbol,
                    geometry.rows,
                    1,
                    {{Kind::Operand, 0}, {Kind::Operand, 4}, delta}};
}

FailureOr<KernelCall> planSinkGrad(KernelLibrary &library, Location loc,
                                   const AttentionShape &shape,
                                   KernelArgument delta) {
  auto symbol =
      emitGpuKernel(library, loc, "attention_sink_grad", toString(shape),
                    /*arguments=*/4, shape.heads, kSinkThreads,
                    [&](GpuBuilder &k) { emitSinkGrad(k, shape); });
  if (failed(symbol))
    return failure();
  return KernelCall{
      *symbol,
      shape.heads,
      1,
      {{Kind::Operand, 6}, {Kind::Operand, 5}, delta, {Kind::Result, 3}}};
}

} // namespace rota::lowering
