// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gpu/TermTables.h"
#include "runtime/collective/gpu/EventPool.h"

namespace rota {

/// Tables of one allocation.
static constexpr int64_t kTablesAtOnce = 64;

void TermTables::grow() {
  int64_t tableBytes = terms * static_cast<int64_t>(sizeof(cuda::Term));
  memory.push_back(
      std::make_unique<cuda::PinnedBuffer>(gpu, kTablesAtOnce * tableBytes));
  auto *first = reinterpret_cast<cuda::Term *>(memory.back()->data());
  for (int64_t i = 0; i < kTablesAtOnce; ++i)
    tables.push_front(std::unique_ptr<Table>(
        new Table{first + i * terms, {gpu, /*timing=*/false}}));
}

std::unique_ptr<TermTables::Table> TermTables::take() {
  if (tables.empty() || !isComplete(gpu, tables.front()->lastUse))
    grow();
  std::unique_ptr<Table> table = std::move(tables.front());
  tables.pop_front();
  return table;
}

void TermTables::give(std::unique_ptr<Table> table, cuda::StreamHandle stream) {
  gpu.check(gpu.api().recordEvent(table->lastUse.get(), stream),
            "recording an event");
  tables.push_back(std::move(table));
}

} // namespace rota
