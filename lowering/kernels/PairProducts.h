// SPDX-License-Identifier: Apache-2.0
#ifndef ROTA_LOWERING_KERNELS_PAIRPRODUCTS_H
#define ROTA_LOWERING_KERNELS_PAIRPRODUCTS_H

namespace rota::lowering {

/// How a CPU adds products of bf16 to f32. Where it does so by pairs, two
/// neighbours along the summed dimension are one i32, the first in the low
/// half.
enum class PairProducts {
  None,     // not by pairs: bf16 is widened to f32
  Emulated, // by pairs, in f32 arithmetic that any CPU has; for tests
  Native,   // by pairs, with AVX-512 BF16's vdpbf16ps
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_PAIRPRODUCTS_H
