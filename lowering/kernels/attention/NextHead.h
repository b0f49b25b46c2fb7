// SPDX-License-Identifier: Apache-2.0
//
// What attention's kernels ask of memory ahead of time. Rows of a head lie far
// apart, and another core has often just written them, so that each would be
// waited for.
#ifndef ROTA_LOWERING_KERNELS_ATTENTION_NEXTHEAD_H
#define ROTA_LOWERING_KERNELS_ATTENTION_NEXTHEAD_H

#include "lowering/kernels/attention/AttentionShape.h"
#include "lowering/kernels/attention/StridedRows.h"

namespace rota::lowering {

/// Asks for the rows of the head that a call takes next, a few at a time beside
/// the work on the present one: a processor waits for only some 20 lines at
/// once. Does nothing where the keys and values of two heads do not fit into a
/// core's cache.
class NextHead {
public:
  /// step() is called twice for each `keys` keys of a block of `queries`.
  NextHead(KernelBuilder &k, const AttentionShape &shape, int64_t queries,
           int64_t keys);

  /// Sets the rows of the next head. `isFirst`: the work on the present one
  /// begins; null: it always does. `isThere`: the call has a next one.
  void set(mlir::Value isFirst, mlir::Value isThere,
           llvm::SmallVector<StridedRows> rows);
  void step();

private:
  KernelBuilder &k;
  int64_t sequence;
  int64_t rowsOfStep = 0; // that a step asks for; 0: none
  Memory next{};          // i32: the row that is asked for next
  llvm::SmallVector<StridedRows> rows;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ATTENTION_NEXTHEAD_H
