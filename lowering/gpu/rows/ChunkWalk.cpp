// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/rows/ChunkWalk.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {

/// A maximum to begin with. It is no infinity, whose difference from itself is
/// not a number.
static constexpr float kLeastLogit = -1e30f;

SmallVector<Value> ChunkWalk::run(GpuBuilder &k, ValueRange initial,
                                  Body body) const {
  int64_t stride = threads * group, whole = chunks / stride * stride;
  auto over = [&](int64_t from, int64_t to, int64_t count, ValueRange carried) {
    return k.loop(k.add(k.thread(), from), k.i32(to), threads * count, carried,
                  [&](Value first, ValueRange before) {
                    SmallVector<Value> firsts;
                    for (int64_t i = 0; i < count; ++i)
                      firsts.push_back(k.mul(k.add(first, i * threads), width));
                    return body(firsts, width, before);
                  });
  };
  SmallVector<Value> carried(initial);
  if (whole > 0)
    carried = over(0, whole, group, carried);
  if (whole < chunks)
    carried = over(whole, chunks, 1, carried);
  if (tail > 0)
    carried = k.choose(
        k.isEqual(k.thread(), k.i32(chunks % threads)),
        [&] { return body({k.i32(chunks * width)}, tail, carried); },
        [&] { return carried; });
  return carried;
}

Value ChunkWalk::ownerOf(GpuBuilder &k, Value column) const {
  return k.rem(k.div(column, width), threads);
}

/// A part of a row: its maximum and the sum of exponentials relative to it.
static SmallVector<Value> joinParts(GpuBuilder &k, ValueRange left,
                                    ValueRange right) {
  Value top = k.largest(left[0], right[0]);
  auto scaled = [&](ValueRange part) {
    return k.mulf(part[1], k.exp(k.subf(part[0], top)));
  };
  return {top, k.addf(scaled(left), scaled(right))};
}

Value emitLogSumExp(GpuBuilder &k, const ChunkWalk &walk, Memory line,
                    Value end) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  auto addChunks = [&](ArrayRef<Value> firsts, int64_t count,
                       ValueRange carried) {
    SmallVector<Value> chunks;
    for (Value first : firsts) {
      Value x = k.loadPart(line, first, count, walk.width, -infinity);
      chunks.push_back(end ? k.before(end, first, x, -infinity) : x);
    }
    Value tops = chunks[0];
    for (Value x : ArrayRef(chunks).drop_front())
      tops = k.largest(tops, x);
    Value top =
        k.largest(carried[0], k.combineElements(tops, [&](Value x, Value y) {
          return k.largest(x, y);
        }));
    Value sums;
    for (Value x : chunks) {
      Value weights = k.exp(k.subf(x, k.splat(top, walk.width)));
      sums = sums ? k.addf(sums, weights) : weights;
    }
    Value sum =
        k.combineElements(sums, [&](Value x, Value y) { return k.addf(x, y); });
    Value before = k.mulf(carried[1], k.exp(k.subf(carried[0], top)));
    return SmallVector<Value>{top, k.addf(before, sum)};
  };
  SmallVector<Value> part =
      walk.run(k, {k.f32(kLeastLogit), k.f32(0.0f)}, addChunks);
  part = k.combineThreads(part, walk.threads,
                          [&](ValueRange left, ValueRange right) {
                            return joinParts(k, left, right);
                          });
  Value total = k.addf(part[0], k.log(part[1]));
  constexpr float least = std::numeric_limits<float>::lowest();
  return end ? k.largest(total, k.f32(least)) : total;
}

} // namespace rota::lowering
