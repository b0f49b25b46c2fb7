// SPDX-License-Identifier: Apache-2.0
//
// Times of products against those of other products that do the same work.
#ifndef ROTA_TOOLS_BENCH_GEMMCOMPARISONS_H
#define ROTA_TOOLS_BENCH_GEMMCOMPARISONS_H

#include "runtime/Abi.h"

namespace rota::bench {

/// Prints the time of one product for weights that share their input against
/// that of a product for each, and the time of products of rows of experts
/// against that of groups of equal size.
void compareGemms(RotaContext *context, int32_t type);

} // namespace rota::bench

#endif // ROTA_TOOLS_BENCH_GEMMCOMPARISONS_H
