// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/ExpertRows.h"
#include "runtime/device/cpu/Scratch.h"

#include <algorithm>

namespace rota {

ExpertRows::ExpertRows(const RotaGroupedGemm &g, const int32_t *counts,
                       int64_t mostRows)
    : mostRows(mostRows) {
  find(g, counts);
  if (overfull.rows > 0)
    return;
  std::vector<size_t> firsts; // stretches of parts, and the end
  for (int64_t expert = 0; expert < g.experts; ++expert) {
    begins.push_back(all.size());
    cut(expert, std::span(found).subspan(expert * g.batch, g.batch), firsts);
  }
  begins.push_back(all.size());
  firsts.push_back(stretches.size());
  for (size_t i = 0; i < all.size(); ++i)
    all[i].stretches =
        std::span(stretches).subspan(firsts[i], firsts[i + 1] - firsts[i]);
}

std::vector<const ExpertRows::Part *> ExpertRows::largestFirst() const {
  std::vector<const Part *> order;
  for (const Part &part : all)
    order.push_back(&part);
  std::ranges::sort(order, [](const Part *a, const Part *b) {
    return std::pair(-a->rows, a) < std::pair(-b->rows, b);
  });
  return order;
}

void ExpertRows::find(const RotaGroupedGemm &g, const int32_t *counts) {
  int64_t experts = g.experts / g.blocks, rows = g.rows / g.blocks;
  found.resize(g.experts * g.batch);
  for (int64_t sequence = 0; sequence < g.batch; ++sequence)
    for (int64_t block = 0; block < g.blocks; ++block) {
      int64_t begin = sequence * g.rows + block * rows, row = begin;
      int64_t end = begin + rows;
      for (int64_t x = block * experts; x < (block + 1) * experts; ++x) {
        int64_t count = counts[sequence * g.experts + x];
        found[x * g.batch + sequence] = {row, count};
        row += count;
      }
      if (row < end)
        rest.push_back({row, end - row});
      if (row > end && overfull.rows == 0)
        overfull = {.rows = static_cast<int32_t>(row - begin),
                    .room = static_cast<int32_t>(rows),
                    .firstExpert = static_cast<int32_t>(block * experts),
                    .experts = static_cast<int32_t>(experts),
                    .sequence = static_cast<int32_t>(sequence)};
    }
}

void ExpertRows::cut(int64_t expert, std::span<RowStretch> ofSequences,
                     std::vector<size_t> &firsts) {
  int64_t left = 0;
  for (const RowStretch &stretch : ofSequences)
    left += stretch.count;
  int64_t height = left > 0 ? evenPart(left, mostRows, 1) : 0;
  for (auto next = ofSequences.begin(); left > 0;) {
    int64_t rows = std::min(height, left);
    firsts.push_back(stretches.size());
    all.push_back({expert, rows, {}});
    for (int64_t missing = rows; missing > 0;) {
      int64_t taken = std::min(next->count, missing);
      if (taken > 0)
        stretches.push_back({next->first, taken});
      *next = {next->first + taken, next->count - taken};
      next += next->count == 0;
      missing -= taken;
    }
    left -= rows;
  }
}

} // namespace rota
