// SPDX-License-Identifier: Apache-2.0
//
// Tables of the terms of sums, which kernels read from host memory.
#ifndef ROTA_RUNTIME_COLLECTIVE_GPU_TERMTABLES_H
#define ROTA_RUNTIME_COLLECTIVE_GPU_TERMTABLES_H

#include "runtime/device/cuda/PinnedMemory.h"
#include "runtime/device/cuda/ServiceKernels.h"

#include <deque>
#include <memory>
#include <vector>

namespace rota {

/// A ring of tables. It grows where the oldest table is still in use, so that
/// no caller waits.
class TermTables {
public:
  /// Each table has room for that many terms.
  TermTables(cuda::Gpu &gpu, int64_t terms) : gpu(gpu), terms(terms) {}

  struct Table {
    cuda::Term *terms;
    cuda::OwnedEvent lastUse;
  };
  /// A table that no kernel reads any more. Throws RunError.
  std::unique_ptr<Table> take();
  /// Gives the table back, to be used again after the work that `stream` was
  /// asked for. Throws RunError.
  void give(std::unique_ptr<Table> table, cuda::StreamHandle stream);

private:
  void grow();

  cuda::Gpu &gpu;
  const int64_t terms;
  std::vector<std::unique_ptr<cuda::PinnedBuffer>> memory;
  std::deque<std::unique_ptr<Table>> tables; // by their last use
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_GPU_TERMTABLES_H
