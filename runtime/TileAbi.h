// SPDX-License-Identifier: Apache-2.0
//
// The part of the C ABI (Abi.h) for kernels that multiply blocks of bf16 by
// tiles. The compiler decides that a kernel has blocks of this form, the
// runtime how they are multiplied.
#ifndef ROTA_RUNTIME_TILEABI_H
#define ROTA_RUNTIME_TILEABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Rows of a product, and columns of a panel; pairs of a step along k.
enum { ROTA_TILE_ROWS = 32, ROTA_TILE_COLUMNS = 32, ROTA_TILE_PAIRS = 16 };

/// Products of blocks. Two neighbours along k are a pair, the first in the low
/// half of 32 bits. Sums are f32, and their order is always the same.
typedef struct RotaTiles {
  /// A thread calls them before its products and after the last.
  void (*begin)(void);
  void (*end)(void);
  /// sums[ROTA_TILE_ROWS][columns] = a[ROTA_TILE_ROWS][2 * pairs] *
  /// b[2 * pairs][columns], plus what is there where `adds` is not 0. Rows of
  /// `a` are `strideA` bytes apart, rows of `sums` `stride` elements. `b` is
  /// [columns / ROTA_TILE_COLUMNS][pairs][ROTA_TILE_COLUMNS] pairs, rounded up.
  /// `pairs` and `columns` are multiples of ROTA_TILE_PAIRS.
  void (*multiply)(const void *a, int64_t strideA, const void *b, int64_t pairs,
                   float *sums, int64_t stride, int64_t columns, int64_t adds);
} RotaTiles;

/// AMX where products of matrices use it, else vectors of AVX-512 BF16, which
/// every processor with AMX has.
const RotaTiles *rotaTiles(void);

#ifdef __cplusplus
}
#endif

#endif // ROTA_RUNTIME_TILEABI_H
