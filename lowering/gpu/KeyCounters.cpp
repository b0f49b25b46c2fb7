// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/KeyCounters.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace rota::lowering {

void KeyCounters::clear(int64_t threads) {
  k.loop(k.thread(), k.i32(warps * range), threads,
         [&](Value i) { k.store(k.i32(0), counters, i); });
}

void KeyCounters::add(Value key, Visit visit) {
  Value hasKey = k.isWithin(key, range);
  Value found = ballot(hasKey);
  auto addKeys = [&] {
    Value own = k.select(hasKey, key, k.i32(0));
    Value same = lanesOf(own, found);
    Value lower = k.sub(
        arith::ShLIOp::create(k.ops(), k.i32(1), lane()).getResult(), k.i32(1));
    Value rank = countBits(k.both(same, lower));
    Value counter = k.add(k.mul(warp(), range), own);
    Value before = k.load(counters, counter);
    waitForWarp();
    Value isFirst = k.both(hasKey, k.isEqual(rank, k.i32(0)));
    k.when(isFirst,
           [&] { k.store(k.add(before, countBits(same)), counters, counter); });
    if (visit)
      k.when(hasKey, [&] { visit(k.add(before, rank)); });
    waitForWarp();
  };
  k.branch(k.isEqual(found, k.i32(0)), [] {}, addKeys);
}

Value KeyCounters::sum(Value key) {
  Value sum = k.i32(0);
  for (int64_t i = 0; i < warps; ++i)
    sum = k.add(sum, k.load(counters, counterOf(i, key)));
  return sum;
}

void KeyCounters::startAt(Value key, Value start) {
  SmallVector<Value> counts;
  for (int64_t i = 0; i < warps; ++i)
    counts.push_back(k.load(counters, counterOf(i, key)));
  Value next = start;
  for (auto [i, count] : llvm::enumerate(counts)) {
    k.store(next, counters, counterOf(int64_t(i), key));
    next = k.add(next, count);
  }
}

Value KeyCounters::lanesOf(Value key, Value found) {
  Value same = found;
  for (int64_t bit = 1; bit < range; bit *= 2) {
    Value isSet = k.isEqual(k.both(key, k.i32(bit)), k.i32(bit));
    Value set = ballot(isSet);
    same = k.both(same, k.select(isSet, set, k.sub(k.i32(-1), set)));
  }
  return same;
}

Value KeyCounters::ballot(Value condition) {
  ImplicitLocOpBuilder &b = k.ops();
  return NVVM::VoteSyncOp::create(b, b.getI32Type(), k.i32(-1), condition,
                                  NVVM::VoteSyncKind::ballot);
}

Value KeyCounters::countBits(Value bits) {
  return LLVM::CtPopOp::create(k.ops(), bits.getType(), bits);
}

void KeyCounters::waitForWarp() {
  NVVM::SyncWarpOp::create(k.ops(), k.i32(-1));
}

} // namespace rota::lowering
