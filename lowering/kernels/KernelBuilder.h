// SPDX-License-Identifier: Apache-2.0
//
// Short names over Emit.h for vector code that is written by hand. Indices and
// sizes are i64 in elements. Values are f32 scalars or one vector register of
// the target. Buffers may hold bf16. Accesses of less than a vector are masked.
#ifndef ROTA_LOWERING_KERNELS_KERNELBUILDER_H
#define ROTA_LOWERING_KERNELS_KERNELBUILDER_H

#include "lowering/kernels/RowBuilder.h"

namespace rota::lowering {

class KernelBuilder : public RowBuilder {
public:
  /// Writes into the function that emitKernelFunction has opened, at `b`.
  KernelBuilder(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange pointers,
                mlir::Value begin, mlir::Value end, const KernelTarget &target);

  int64_t lanes() const override { return laneCount; }
  mlir::Value begin() const { return beginRow; }
  mlir::Value end() const { return endRow; }

  Memory argument(unsigned i, mlir::Type element) override;
  /// Stack memory, aligned to a cache line.
  Memory local(int64_t elements, mlir::Type element) override;
  Memory stack(int64_t elements) { return local(elements, b.getF32Type()); }
  using RowBuilder::offset;
  Memory offset(Memory memory, int64_t by);

  void each(int64_t count, Body body) override { loop(0, count, 1, body); }
  void once(llvm::function_ref<void()> body) override { body(); }
  void sync() override {}
  void rankKeys(Memory keys, int64_t count, int64_t keyCount, Memory totals,
                llvm::function_ref<void()> counted, RankBody visit) override;
  void overColumns(int64_t width, ColumnsBody body) override;
  void walkColumns(int64_t width, WalkBody body) override;
  mlir::Value loadOwn(Memory line, mlir::Value column, int64_t width) override;
  void storeOwn(mlir::Value value, Memory line, mlir::Value column,
                int64_t width) override;
  mlir::Value foldColumns(int64_t width, mlir::Value initial,
                          FoldBody body) override;

  mlir::Value loadVector(Memory memory, mlir::Value index, int64_t count,
                         float filler = 0.0f) override;
  mlir::Value before(mlir::Value end, mlir::Value index, mlir::Value value,
                     float filler) override;
  std::pair<mlir::Value, mlir::Value>
  loadPairs(Memory memory, mlir::Value index, int64_t count) override;
  void storeVector(mlir::Value value, Memory memory, mlir::Value index,
                   int64_t count) override;
  /// Asks for the cache line of an element that will be read.
  void prefetch(Memory memory, mlir::Value index);
  void copy(Memory from, Memory to, int64_t bytes);
  void clear(Memory memory, int64_t bytes); // to zeros
  void copyRow(Memory from, Memory to, int64_t width) override;
  void clearRow(Memory to, int64_t width) override;

  // f32, scalars or vectors alike.
  mlir::Value splat(float value) override;
  mlir::Value broadcast(mlir::Value scalar) override;
  /// e to the power of a vector or scalar of at most 88; 0 below -87.3.
  /// Relative error below 2e-7.
  mlir::Value exp(mlir::Value value) override;
  /// Sum or maximum of all lanes, by halves.
  mlir::Value sumLanes(mlir::Value vector);
  mlir::Value maxLanes(mlir::Value vector);
  mlir::Value sumOfRow(mlir::Value vector) override { return sumLanes(vector); }
  mlir::Value maxOfRow(mlir::Value vector) override { return maxLanes(vector); }
  mlir::Value logSumExp(Memory line, int64_t width, mlir::Value end) override;
  llvm::SmallVector<mlir::Value> sumEach(int64_t count, mlir::ValueRange zeros,
                                         CarryBody body) override;
  mlir::Value largestOf(Memory values, int64_t count) override;

  /// Transposes lanes() vectors of lanes() elements in registers.
  void transpose(llvm::MutableArrayRef<mlir::Value> square);
  mlir::Value shuffle(mlir::Value a, mlir::Value b,
                      llvm::ArrayRef<int64_t> lanesOfBoth);
  /// `first`, `first` + 1, ... as i32.
  mlir::Value countFrom(mlir::Value first);
  mlir::Value broadcastIndex(mlir::Value index);

  // Pairs of bf16, where the target adds products of pairs: i32, or lanes() of
  // them.
  PairProducts pairs() const { return pairProducts; }
  /// `count` neighbouring bf16: at most 2 in a pair, 2 * lanes() in a vector of
  /// pairs, zeros beyond.
  mlir::Value loadBf16Pair(Memory memory, mlir::Value index, int64_t count);
  mlir::Value loadBf16Pairs(Memory memory, mlir::Value index, int64_t count);
  /// The pairs of the lanes of two vectors, whose numbers bf16 has exactly.
  mlir::Value pairOf(mlir::Value first, mlir::Value second);
  /// The pairs of neighbouring lanes of the row `low`, `high`, rounded to
  /// nearest even. vcvtne2ps2bf16 takes denormals as zero, as does vdpbf16ps.
  mlir::Value roundToPairs(mlir::Value low, mlir::Value high);
  /// The pairs of the lanes of two such rows, in their vector number `v`.
  mlir::Value pairsOfRows(mlir::Value first, mlir::Value second, int64_t v);
  /// `sums` plus the products of the second of each pair, rounded, plus those
  /// of the first, rounded: the order of vdpbf16ps.
  mlir::Value addPairProducts(mlir::Value x, mlir::Value y, mlir::Value sums);

  // The functions of RotaTiles, the argument that KernelArgument::Kind::Tiles
  // is.
  Memory tiles(unsigned argument);
  void beginTiles(Memory tiles);
  void endTiles(Memory tiles);
  /// sums[ROTA_TILE_ROWS][columns] = a[ROTA_TILE_ROWS][pairs] * b, of panels,
  /// plus what is there where it adds.
  struct TileProduct {
    Memory a, b;
    int64_t pairs;
    Memory sums;
    int64_t stride, columns; // f32
    bool adds;
  };
  void multiplyTiles(Memory tiles, const TileProduct &product);

private:
  mlir::Value like(mlir::Value shape, float value);
  mlir::Value address(Memory memory, mlir::Value index);
  mlir::Value mask(int64_t count, int64_t lanes);

  int64_t laneCount;
  PairProducts pairProducts;
  mlir::VectorType vecType, intVecType;
  mlir::ValueRange pointers;
  mlir::Value beginRow, endRow;
  mlir::Block *entry;
};

/// The symbol of the kernel with this key, of `arguments` arguments; `body`
/// writes its code when the library lacks it.
llvm::FailureOr<std::string>
emitDedicated(KernelLibrary &library, llvm::StringRef prefix,
              llvm::StringRef key, unsigned arguments,
              llvm::function_ref<void(KernelBuilder &k)> body);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_KERNELBUILDER_H
