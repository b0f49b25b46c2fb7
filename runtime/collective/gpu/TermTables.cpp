// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gpu/TermTables.h"

#include <algorithm>

namespace rota {

/// Tables of one allocation.
static constexpr size_t kTablesAtOnce = 64;

const cuda::Term *TermTables::find(const std::vector<cuda::Term> &list) {
  Key key;
  for (const cuda::Term &term : list)
    key.emplace_back(term.data, term.stride);
  if (auto found = tables.find(key); found != tables.end())
    return found->second;
  size_t number = tables.size() % kTablesAtOnce;
  if (number == 0)
    memory.push_back(std::make_unique<cuda::PinnedBuffer>(
        gpu, static_cast<int64_t>(kTablesAtOnce * sizeof(cuda::Term)) * terms));
  auto *table = reinterpret_cast<cuda::Term *>(memory.back()->data()) +
                static_cast<int64_t>(number) * terms;
  std::copy(list.begin(), list.end(), table);
  tables.emplace(std::move(key), table);
  return table;
}

} // namespace rota
