// SPDX-License-Identifier: Apache-2.0
//
// Positions are i32 or i64. A row at position r sees r + offset - before to
// r + offset + after.
#include "lowering/kernels/attention/AttentionWalk.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace rota::lowering {

/// The multiple of `tile` that is `value` or the next above.
static int64_t roundUp(int64_t value, int64_t tile) {
  return llvm::divideFloorSigned(value + tile - 1, tile) * tile;
}

Value AttentionWalk::begin(Value first, int64_t tile) {
  if (mask.before == mask.offset)
    return first;
  if (!mask.limitsBefore())
    return k.like(first, 0);
  int64_t reach = roundUp(mask.before - mask.offset, tile);
  return k.max(k.sub(first, k.like(first, reach)), k.like(first, 0));
}

Value AttentionWalk::end(Value first, int64_t count, int64_t tile) {
  Value sequence = k.like(first, mask.sequence);
  if (!mask.limitsAfter())
    return sequence;
  int64_t reach = roundUp(count + mask.after + mask.offset, tile);
  return k.min(k.add(first, reach), sequence);
}

Value AttentionWalk::isPartial(Value first, int64_t count, Value other,
                               int64_t otherCount) {
  auto plus = [&](Value position, int64_t by) {
    return by == 0 ? position : k.add(position, by);
  };
  Value partial;
  if (mask.limitsAfter())
    partial = k.isLess(plus(first, mask.after + mask.offset),
                       k.add(other, otherCount));
  if (mask.limitsBefore()) {
    Value tooEarly =
        k.isLess(plus(other, mask.before - mask.offset), k.add(first, count));
    partial = partial ? k.either(partial, tooEarly) : tooEarly;
  }
  return partial;
}

Value AttentionWalk::sees(Value row, Value other) {
  bool before = mask.limitsBefore(), after = mask.limitsAfter();
  if (!before && !after)
    return {};
  if (!before && mask.after + mask.offset == 0)
    return k.isLess(other, k.add(row, 1));
  if (!after && mask.before == mask.offset)
    return k.isLess(row, k.add(other, 1));
  Value distance = k.add(k.sub(other, row), mask.before - mask.offset);
  return k.isWithin(distance, mask.before + mask.after + 1);
}

} // namespace rota::lowering
