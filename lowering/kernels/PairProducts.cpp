// SPDX-License-Identifier: Apache-2.0
//
// The instructions of AVX-512 BF16, the same in f32 arithmetic, and calls of
// RotaTiles (runtime/TileAbi.h). Shuffles move i16: LLVM takes vectors of bf16
// apart on machines without them.
#include "lowering/kernels/Emit.h"
#include "lowering/kernels/KernelBuilder.h"
#include "runtime/TileAbi.h"

#include <cstddef>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {

static Value callNative(ImplicitLocOpBuilder &b, StringRef name, Type type,
                        ValueRange operands) {
  std::string symbol = ("llvm.x86.avx512bf16." + name + ".512").str();
  return LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(symbol),
                                       operands)
      .getResults();
}

/// `value` as lanes of `element`, which may be of another width.
static Value bitcast(ImplicitLocOpBuilder &b, Value value, Type element) {
  auto type = cast<VectorType>(value.getType());
  int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
  auto other =
      VectorType::get({bits / element.getIntOrFloatBitWidth()}, element);
  return vector::BitCastOp::create(b, other, value);
}

Value KernelBuilder::loadBf16Pair(Memory memory, Value index, int64_t count) {
  Type type = count == 2 ? b.getI32Type() : b.getI16Type();
  Value value =
      LLVM::LoadOp::create(b, type, address(memory, index), /*alignment=*/2);
  return count == 2 ? value : arith::ExtUIOp::create(b, b.getI32Type(), value);
}

Value KernelBuilder::loadBf16Pairs(Memory memory, Value index, int64_t count) {
  int64_t most = 2 * laneCount;
  if (count == most)
    return LLVM::LoadOp::create(b, intVecType, address(memory, index),
                                /*alignment=*/2);
  auto moved = VectorType::get({most}, b.getI16Type());
  Value zeros =
      arith::ConstantOp::create(b, DenseElementsAttr::get(moved, int16_t(0)));
  Value value =
      LLVM::MaskedLoadOp::create(b, moved, address(memory, index),
                                 mask(count, most), zeros, /*alignment=*/2);
  return bitcast(b, value, b.getI32Type());
}

Value KernelBuilder::pairOf(Value first, Value second) {
  Value places = arith::ConstantOp::create(
      b, DenseElementsAttr::get(intVecType, int32_t(16)));
  Value low =
      arith::ShRUIOp::create(b, bitcast(b, first, b.getI32Type()), places);
  return arith::OrIOp::create(b, low, bitcast(b, second, b.getI32Type()));
}

Value KernelBuilder::roundToPairs(Value low, Value high) {
  if (areNative(pairProducts))
    return bitcast(b,
                   callNative(b, "cvtne2ps2bf16",
                              VectorType::get({2 * laneCount}, b.getBF16Type()),
                              {high, low}),
                   b.getI32Type());
  auto round = [&](Value value) -> Value {
    value = arith::TruncFOp::create(
        b, VectorType::get({laneCount}, b.getBF16Type()), value);
    return bitcast(b, value, b.getI16Type());
  };
  auto both = llvm::to_vector(llvm::seq<int64_t>(0, 2 * laneCount));
  return bitcast(b, shuffle(round(low), round(high), both), b.getI32Type());
}

Value KernelBuilder::pairsOfRows(Value first, Value second, int64_t v) {
  SmallVector<int64_t> lanesOfBoth;
  for (int64_t lane = v * laneCount; lane < (v + 1) * laneCount; ++lane)
    lanesOfBoth.append({lane, 2 * laneCount + lane});
  Type i16 = b.getI16Type();
  return bitcast(
      b, shuffle(bitcast(b, first, i16), bitcast(b, second, i16), lanesOfBoth),
      b.getI32Type());
}

Value KernelBuilder::addPairProducts(Value x, Value y, Value sums) {
  if (pairProducts == PairProducts::Native)
    return callNative(
        b, "dpbf16ps", vecType,
        {sums, bitcast(b, x, b.getBF16Type()), bitcast(b, y, b.getBF16Type())});
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(b,
                                     DenseElementsAttr::get(intVecType, value));
  };
  auto first = [&](Value pairs) {
    return bitcast(b, arith::ShLIOp::create(b, pairs, constant(16)),
                   b.getF32Type());
  };
  auto second = [&](Value pairs) {
    return bitcast(b, arith::AndIOp::create(b, pairs, constant(~0xffff)),
                   b.getF32Type());
  };
  return fma(first(x), first(y), fma(second(x), second(y), sums));
}

/// The number of a function in RotaTiles, by its offset.
static constexpr int64_t tilesFunction(size_t offset) {
  return int64_t(offset / sizeof(void *));
}

/// Calls a function of RotaTiles.
static void callTiles(ImplicitLocOpBuilder &b, Value function,
                      ValueRange arguments) {
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  llvm::to_vector(arguments.getTypes()));
  SmallVector<Value> operands{function};
  operands.append(arguments.begin(), arguments.end());
  LLVM::CallOp::create(b, type, operands);
}

Memory KernelBuilder::tiles(unsigned argument) {
  return {pointers[argument], LLVM::LLVMPointerType::get(b.getContext())};
}

void KernelBuilder::beginTiles(Memory tiles) {
  callTiles(b, load(tiles, i64(tilesFunction(offsetof(RotaTiles, begin)))), {});
}

void KernelBuilder::endTiles(Memory tiles) {
  callTiles(b, load(tiles, i64(tilesFunction(offsetof(RotaTiles, end)))), {});
}

void KernelBuilder::multiplyTiles(Memory tiles, const TileProduct &product) {
  constexpr int64_t kPairBytes = 4;
  callTiles(b, load(tiles, i64(tilesFunction(offsetof(RotaTiles, multiply)))),
            {product.a.base, i64(product.pairs * kPairBytes), product.b.base,
             i64(product.pairs), product.sums.base, i64(product.stride),
             i64(product.columns), i64(product.adds)});
}

} // namespace rota::lowering
