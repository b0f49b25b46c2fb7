// SPDX-License-Identifier: Apache-2.0
#ifndef ROTA_LOWERING_KERNELS_PAIRPRODUCTS_H
#define ROTA_LOWERING_KERNELS_PAIRPRODUCTS_H

namespace rota::lowering {

/// How a CPU adds products of bf16 to f32. Where it does so by pairs, two
/// neighbours along the summed dimension are one i32, the first in the low
/// half. Tiles are blocks of pairs that the runtime multiplies
/// (runtime/TileAbi.h). The emulated kinds have arithmetic that any CPU has,
/// for tests.
enum class PairProducts {
  None,          // not by pairs: bf16 is widened to f32
  Emulated,      // in f32 arithmetic
  Native,        // with AVX-512 BF16's vdpbf16ps
  EmulatedTiles, // by tiles, without AVX-512 BF16
  Tiles,         // by tiles
};

inline bool areTiles(PairProducts products) {
  return products == PairProducts::EmulatedTiles ||
         products == PairProducts::Tiles;
}

/// Whether code has instructions of AVX-512 BF16.
inline bool areNative(PairProducts products) {
  return products == PairProducts::Native || products == PairProducts::Tiles;
}

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_PAIRPRODUCTS_H
