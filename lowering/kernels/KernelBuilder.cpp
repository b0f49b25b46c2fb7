// SPDX-License-Identifier: Apache-2.0
//
// Each method writes the one or two ops that it names.
#include "lowering/kernels/KernelBuilder.h"

#include "lowering/kernels/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;

namespace rota::lowering {

KernelBuilder::KernelBuilder(ImplicitLocOpBuilder &b, ValueRange pointers,
                             Value begin, Value end, const KernelTarget &target)
    : RowBuilder(b), laneCount(target.vectorBits / 32),
      pairProducts(target.pairs),
      vecType(VectorType::get({laneCount}, b.getF32Type())),
      intVecType(VectorType::get({laneCount}, b.getI32Type())),
      pointers(pointers), beginRow(begin), endRow(end),
      entry(b.getInsertionBlock()) {}

Memory KernelBuilder::argument(unsigned i, Type element) {
  return {pointers[i], element};
}

Memory KernelBuilder::local(int64_t elements, Type element) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  return {stackArray(b, element, elements), element};
}

Value KernelBuilder::address(Memory memory, Value index) {
  return lowering::address(b, memory.base, memory.element, index);
}

Memory KernelBuilder::offset(Memory memory, int64_t by) {
  return offset(memory, i64(by));
}

void KernelBuilder::prefetch(Memory memory, Value index) {
  constexpr unsigned reads = 0, allCaches = 3, data = 1;
  LLVM::Prefetch::create(b, address(memory, index), reads, allCaches, data);
}

void KernelBuilder::copy(Memory from, Memory to, int64_t bytes) {
  LLVM::MemcpyOp::create(b, to.base, from.base, i64(bytes),
                         /*isVolatile=*/false);
}

void KernelBuilder::clear(Memory memory, int64_t bytes) {
  Value zero = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
  LLVM::MemsetOp::create(b, memory.base, zero, i64(bytes),
                         /*isVolatile=*/false);
}

void KernelBuilder::copyRow(Memory from, Memory to, int64_t width) {
  copy(from, to, width * bytesOf(to.element));
}

void KernelBuilder::clearRow(Memory to, int64_t width) {
  clear(to, width * bytesOf(to.element));
}

void KernelBuilder::rankKeys(Memory keys, int64_t count, int64_t keyCount,
                             Memory totals, llvm::function_ref<void()> counted,
                             RankBody visit) {
  auto countInto = [&](Memory counters, RankBody visitKey) {
    clear(counters, keyCount * bytesOf(counters.element));
    loop(0, count, 1, [&](Value i) {
      Value key = loadIndex(keys, i);
      when(isWithin(key, keyCount), [&] {
        Value rank = loadIndex(counters, key);
        if (visitKey)
          visitKey(i, key, rank);
        storeIndex(add(rank, 1), counters, key);
      });
    });
  };
  countInto(totals, nullptr);
  if (!visit)
    return;
  counted();
  countInto(local(keyCount, totals.element), visit);
}

void KernelBuilder::overColumns(int64_t width, ColumnsBody body) {
  constexpr int64_t kVectors = 4;
  int64_t block = kVectors * laneCount, whole = width / block * block;
  if (whole > 0)
    loop(0, whole, block, [&](Value first) {
      body(first, SmallVector<int64_t>(kVectors, laneCount));
    });
  SmallVector<int64_t> rest;
  for (int64_t at = whole; at < width; at += laneCount)
    rest.push_back(std::min(laneCount, width - at));
  if (!rest.empty())
    body(i64(whole), rest);
}

void KernelBuilder::walkColumns(int64_t width, WalkBody body) {
  overColumns(width, [&](Value first, ArrayRef<int64_t> counts) {
    SmallVector<Value> firsts;
    for (size_t i = 0; i < counts.size(); ++i)
      firsts.push_back(add(first, int64_t(i) * laneCount));
    body(firsts, counts);
  });
}

Value KernelBuilder::loadOwn(Memory line, Value column, int64_t width) {
  return load(line, select(isWithin(column, width), column, i64(0)));
}

void KernelBuilder::storeOwn(Value value, Memory line, Value column,
                             int64_t width) {
  when(isWithin(column, width), [&] { store(value, line, column); });
}

SmallVector<Value> KernelBuilder::sumEach(int64_t count, ValueRange zeros,
                                          CarryBody body) {
  return loop(i64(0), i64(count), 1, zeros, body);
}

Value KernelBuilder::foldColumns(int64_t width, Value initial, FoldBody body) {
  int64_t whole = width / laneCount * laneCount;
  if (whole > 0)
    initial = loop(i64(0), i64(whole), laneCount, initial,
                   [&](Value at, ValueRange carried) -> SmallVector<Value> {
                     return {body(at, laneCount, carried[0])};
                   })[0];
  if (whole < width)
    initial = body(i64(whole), width - whole, initial);
  return initial;
}

Value KernelBuilder::largestOf(Memory values, int64_t count) {
  return loop(i64(0), i64(count), 1, {f32(-INFINITY), i64(0)},
              [&](Value i, ValueRange best) {
                return better(best, load(values, i), i);
              })[1];
}

Value KernelBuilder::mask(int64_t count, int64_t lanes) {
  SmallVector<bool> bits(lanes, false);
  std::fill_n(bits.begin(), count, true);
  auto type = VectorType::get({lanes}, b.getI1Type());
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, bits));
}

/// Masked accesses move bf16 as integers: LLVM takes masked bf16 apart through
/// f32, with calls of a library, on machines without AVX-512.
static Type maskedElement(ImplicitLocOpBuilder &b, Type element) {
  return element.isBF16() ? b.getI16Type() : element;
}

Value KernelBuilder::loadVector(Memory memory, Value index, int64_t count,
                                float filler) {
  Type element = memory.element;
  if (count == laneCount)
    return loadWide(b, memory.base, element, index, laneCount);
  auto stored = VectorType::get({laneCount}, element);
  auto moved = VectorType::get({laneCount}, maskedElement(b, element));
  Value absent = arith::ConstantOp::create(
      b, DenseElementsAttr::get(stored,
                                Attribute(b.getFloatAttr(element, filler))));
  if (moved != stored)
    absent = arith::BitcastOp::create(b, moved, absent);
  Value value = LLVM::MaskedLoadOp::create(b, moved, address(memory, index),
                                           mask(count, laneCount), absent,
                                           bytesOf(element));
  if (moved == stored)
    return value;
  value = arith::BitcastOp::create(b, stored, value);
  return arith::ExtFOp::create(b, vecType, value);
}

Value KernelBuilder::before(Value end, Value index, Value value, float filler) {
  auto type = VectorType::get({laneCount}, b.getI64Type());
  auto lanes = llvm::to_vector(llvm::seq<int64_t>(0, laneCount));
  Value number = arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, ArrayRef<int64_t>(lanes)));
  Value left = vector::BroadcastOp::create(
      b, type, arith::SubIOp::create(b, end, index));
  Value inside =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, number, left);
  return arith::SelectOp::create(b, inside, value, splat(filler));
}

std::pair<Value, Value> KernelBuilder::loadPairs(Memory memory, Value index,
                                                 int64_t count) {
  int64_t second = 2 * count - laneCount;
  Value low = loadVector(memory, index, std::min(2 * count, laneCount));
  Value high = second > 0 ? loadVector(memory, add(index, laneCount), second)
                          : splat(0.0f);
  SmallVector<int64_t> even, odd;
  for (int64_t lane = 0; lane < laneCount; ++lane) {
    even.push_back(2 * lane);
    odd.push_back(2 * lane + 1);
  }
  return {shuffle(low, high, even), shuffle(low, high, odd)};
}

void KernelBuilder::storeVector(Value value, Memory memory, Value index,
                                int64_t count) {
  Type element = memory.element;
  if (count == laneCount)
    return storeRounded(b, value, memory.base, element, index);
  if (element.isBF16()) {
    value = arith::TruncFOp::create(b, VectorType::get({laneCount}, element),
                                    value);
    value = arith::BitcastOp::create(
        b, VectorType::get({laneCount}, maskedElement(b, element)), value);
  }
  LLVM::MaskedStoreOp::create(b, value, address(memory, index),
                              mask(count, laneCount), bytesOf(element));
}

Value KernelBuilder::splat(float value) {
  return constant(b, value, laneCount);
}
Value KernelBuilder::like(Value shape, float value) {
  return isa<VectorType>(shape.getType()) ? splat(value) : f32(value);
}
Value KernelBuilder::broadcast(Value scalar) {
  return lowering::splat(b, scalar, laneCount);
}

Value KernelBuilder::exp(Value value) {
  // e^x = 2^n e^r, n = round(x / ln 2): adding 1.5 * 2^23 leaves n in the low
  // bits. ln 2 in two parts (Cody and Waite 1980); a polynomial for e^r, r in
  // [-ln 2 / 2, ln 2 / 2] (Cephes expf).
  constexpr float kShift = 12582912.0f, kLeast = -87.33f;
  Value x = maxf(like(value, kLeast), value); // keeps a NaN
  Value shifted = fma(x, like(value, 1.44269504f), like(value, kShift));
  Value n = subf(shifted, like(value, kShift));
  Value r = fma(n, like(value, -0.693359375f), x);
  r = fma(n, like(value, 2.12194440e-4f), r);
  Value p = like(value, 1.9875691500e-4f);
  for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                  1.6666665459e-1f, 5.0000001201e-1f, 1.0f, 1.0f})
    p = fma(p, r, like(value, c));
  // Multiply by 2^n: add n to the exponent.
  bool isVector = isa<VectorType>(value.getType());
  Type bits = isVector ? Type(intVecType) : Type(b.getI32Type());
  Value places = arith::ConstantOp::create(
      b, isVector ? TypedAttr(DenseElementsAttr::get(intVecType, int32_t(23)))
                  : TypedAttr(b.getI32IntegerAttr(23)));
  Value exponent = arith::BitcastOp::create(b, bits, shifted);
  exponent = arith::ShLIOp::create(b, exponent, places);
  Value scaled = arith::BitcastOp::create(b, bits, p);
  scaled = arith::AddIOp::create(b, scaled, exponent);
  Value result = arith::BitcastOp::create(b, value.getType(), scaled);
  // False for a NaN, so that a NaN stays.
  Value tiny = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, value,
                                     like(value, kLeast));
  return arith::SelectOp::create(b, tiny, like(value, 0.0f), result);
}

Value KernelBuilder::sumLanes(Value vector) { return sumOf(b, vector); }

Value KernelBuilder::maxLanes(Value vector) {
  return combine(b, vector, [&](Value x, Value y) { return maxf(x, y); });
}

Value KernelBuilder::shuffle(Value x, Value y, ArrayRef<int64_t> lanesOfBoth) {
  return vector::ShuffleOp::create(b, x, y, lanesOfBoth);
}

void KernelBuilder::transpose(MutableArrayRef<Value> square) {
  // Each step exchanges the off-diagonal quarters of squares of 2 * step.
  for (int64_t step = 1; step < laneCount; step *= 2) {
    SmallVector<int64_t> upper(laneCount), lower(laneCount);
    for (int64_t lane = 0; lane < laneCount; ++lane) {
      upper[lane] = lane & step ? laneCount + (lane ^ step) : lane;
      lower[lane] = lane & step ? laneCount + lane : lane ^ step;
    }
    for (int64_t row = 0; row < laneCount; ++row) {
      if (row & step)
        continue;
      Value x = square[row], y = square[row | step];
      square[row] = shuffle(x, y, upper);
      square[row | step] = shuffle(x, y, lower);
    }
  }
}

Value KernelBuilder::broadcastIndex(Value index) {
  Value narrow = arith::TruncIOp::create(b, b.getI32Type(), index);
  return vector::BroadcastOp::create(b, intVecType, narrow);
}

Value KernelBuilder::countFrom(Value first) {
  SmallVector<int32_t> count(laneCount);
  for (int64_t lane = 0; lane < laneCount; ++lane)
    count[lane] = int32_t(lane);
  Value step = arith::ConstantOp::create(
      b, DenseElementsAttr::get(intVecType, ArrayRef(count)));
  return arith::AddIOp::create(b, broadcastIndex(first), step);
}

FailureOr<std::string>
emitDedicated(KernelLibrary &library, StringRef prefix, StringRef key,
              unsigned arguments,
              llvm::function_ref<void(KernelBuilder &k)> body) {
  return library.getOrEmit(
      prefix, key, [&](OpBuilder &builder, StringRef symbol) {
        emitKernelFunction(builder, symbol, arguments,
                           [&](ImplicitLocOpBuilder &b, ValueRange pointers,
                               Value begin, Value end) {
                             KernelBuilder k(b, pointers, begin, end,
                                             library.getTarget());
                             body(k);
                           });
        return success();
      });
}

FailureOr<std::string>
emitVectorRows(KernelLibrary &library, Location, StringRef prefix,
               StringRef key, unsigned arguments, const RowForm &,
               llvm::function_ref<void(RowBuilder &k, Value row)> body) {
  return emitDedicated(library, prefix, key, arguments, [&](KernelBuilder &k) {
    k.loop(k.begin(), k.end(), 1, [&](Value row) { body(k, row); });
  });
}

} // namespace rota::lowering
