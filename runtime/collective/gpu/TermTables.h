// SPDX-License-Identifier: Apache-2.0
//
// Tables of the terms of sums, which kernels read from host memory.
#ifndef ROTA_RUNTIME_COLLECTIVE_GPU_TERMTABLES_H
#define ROTA_RUNTIME_COLLECTIVE_GPU_TERMTABLES_H

#include "runtime/device/cuda/PinnedMemory.h"
#include "runtime/device/cuda/ServiceKernels.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace rota {

/// One table for each list of terms, for good: a recorded step reads it in each
/// replay. The transfers of a step have the same addresses each time, so the
/// tables of the first step are all that there are.
class TermTables {
public:
  /// Each table has room for that many terms.
  TermTables(cuda::Gpu &gpu, int64_t terms) : gpu(gpu), terms(terms) {}

  /// The table of that list. A new list may allocate memory, which the driver
  /// does not allow while the thread records. Throws RunError.
  const cuda::Term *find(const std::vector<cuda::Term> &list);

private:
  using Key = std::vector<std::pair<const void *, int64_t>>;

  cuda::Gpu &gpu;
  const int64_t terms;
  std::vector<std::unique_ptr<cuda::PinnedBuffer>> memory;
  std::map<Key, const cuda::Term *> tables;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_GPU_TERMTABLES_H
