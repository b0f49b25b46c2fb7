// SPDX-License-Identifier: Apache-2.0
//
// The logarithm of the sum of exponentials of a row, in vector code: the row is
// read twice, for its maximum and for the sum.
#include "lowering/kernels/KernelBuilder.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {

static constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Independent sums and maxima of a row: they hide the latency of an addition.
static constexpr int64_t kChains = 4;

/// Calls body(start, count, carried) for the vectors of a row in turn. The last
/// one may have fewer elements. Vector i carries the value of chain i modulo
/// kChains; returns the chains' last values.
static SmallVector<Value> carryChains(
    KernelBuilder &k, int64_t columns, Value initial,
    llvm::function_ref<Value(Value start, int64_t count, Value carried)> body) {
  int64_t lanes = k.lanes(), step = kChains * lanes;
  int64_t whole = columns / step * step;
  SmallVector<Value> chains(kChains, initial);
  chains = k.loop(k.i64(0), k.i64(whole), step, chains,
                  [&](Value start, ValueRange carried) {
                    SmallVector<Value> next;
                    for (int64_t c = 0; c < kChains; ++c)
                      next.push_back(
                          body(k.add(start, c * lanes), lanes, carried[c]));
                    return next;
                  });
  for (int64_t start = whole, c = 0; start < columns; start += lanes, ++c)
    chains[c] = body(k.i64(start), std::min(lanes, columns - start), chains[c]);
  return chains;
}

Value KernelBuilder::logSumExp(Memory line, int64_t width, Value end) {
  // No infinities: all columns of a part may be padding.
  constexpr float least = std::numeric_limits<float>::lowest();
  auto load = [&](Value start, int64_t count) {
    Value x = loadVector(line, start, count, -kInfinity);
    return end ? before(end, start, x, -kInfinity) : x;
  };
  SmallVector<Value> highest =
      carryChains(*this, width, splat(end ? least : -kInfinity),
                  [&](Value start, int64_t count, Value before) {
                    return maxf(before, load(start, count));
                  });
  Value top = maxLanes(
      maxf(maxf(highest[0], highest[1]), maxf(highest[2], highest[3])));
  Value tops = broadcast(top);
  SmallVector<Value> sums = carryChains(
      *this, width, splat(0.0f), [&](Value start, int64_t count, Value before) {
        return addf(before, exp(subf(load(start, count), tops)));
      });
  Value sum = sumLanes(addf(addf(sums[0], sums[1]), addf(sums[2], sums[3])));
  Value total = addf(top, log(sum));
  return end ? maxf(total, f32(least)) : total;
}

} // namespace rota::lowering
