// SPDX-License-Identifier: Apache-2.0
#include "lowering/kernels/attention/NextHead.h"
#include "lowering/kernels/Emit.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace rota::lowering {

static bool fitsTwice(const AttentionShape &shape) {
  constexpr int64_t cacheBytes = 512 << 10; // of the smallest processors
  return 2 * shape.sequence * (shape.size + shape.valueSize) *
             bytesOf(shape.element) <=
         cacheBytes;
}

NextHead::NextHead(KernelBuilder &k, const AttentionShape &shape,
                   int64_t queries, int64_t keys)
    : k(k), sequence(shape.sequence) {
  if (!fitsTwice(shape))
    return;
  int64_t seen = std::clamp<int64_t>(shape.mask.before + shape.mask.after + 1,
                                     1, shape.sequence);
  rowsOfStep = llvm::divideCeil(queries * keys, seen);
  next = k.local(1, k.ops().getI32Type());
  k.storeIndex(k.i64(sequence), next, k.i64(0));
}

void NextHead::set(Value isFirst, Value isThere,
                   SmallVector<StridedRows> given) {
  if (rowsOfStep == 0)
    return;
  rows = std::move(given);
  Value row = k.select(isThere, k.i64(0), k.i64(sequence));
  if (isFirst)
    row = k.select(isFirst, row, k.loadIndex(next, k.i64(0)));
  k.storeIndex(row, next, k.i64(0));
}

void NextHead::step() {
  if (rowsOfStep == 0)
    return;
  constexpr int64_t lineBytes = 64;
  Value first = k.loadIndex(next, k.i64(0));
  k.when(k.isLess(first, k.i64(sequence)), [&] {
    for (int64_t r = 0; r < rowsOfStep; ++r) {
      Value row = k.min(k.add(first, r), k.i64(sequence - 1));
      for (const StridedRows &each : rows)
        for (int64_t d = 0; d < each.size;
             d += lineBytes / bytesOf(each.memory.element))
          k.prefetch(each.memory, k.add(k.mul(row, each.stride), d));
    }
    k.storeIndex(k.add(first, rowsOfStep), next, k.i64(0));
  });
}

} // namespace rota::lowering
