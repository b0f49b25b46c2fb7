// SPDX-License-Identifier: Apache-2.0
//
// Products of experts by a PanelProduct, which takes an expert's rows of all
// sequences where they lie: the matrix is packed once for all of them, and its
// gradient is added to once.
#include "runtime/device/cpu/GemmTile.h"
#include "runtime/device/cpu/GroupedCall.h"
#include "runtime/device/cpu/PanelProduct.h"

namespace rota {

/// Experts have unequal rows, so threads end together only with some more
/// pieces than products of equal rows need.
static constexpr int64_t kTilesOfThread = 8;

void multiplyByPanels(const GroupedCall &call, const PanelKernels &kernels) {
  const RotaGroupedGemm &g = call.g;
  const PanelTiling &tiling = kernels.sizes.tiling;
  ColumnTiles columns = tilesFor(call, g.out, int64_t(call.rows.parts().size()),
                                 {tiling.unitN, tiling.mostN, kTilesOfThread});
  multiplyParts(call, columns,
                [&](const ExpertRows::Part &part, int64_t column) {
                  int64_t from = column * columns.width;
                  RotaGemm tile = rowTile(g, part.rows, columns.of(column));
                  const char *b = call.b + (part.expert * g.in * g.out +
                                            from * (g.transposed ? g.in : 1)) *
                                               call.bytesA();
                  PanelProduct(tile, kernels)
                      .run(call.a, b, call.c + from * call.bytesC(),
                           part.stretches, operandScratch());
                });
}

/// C has the gradient of an expert without rows, too.
static void clear(const RotaGemm &tile, char *c) {
  if (tile.accumulate)
    return;
  int64_t bytes = elementBytes(tile.typeC);
  for (int64_t row = 0; row < tile.m; ++row)
    std::memset(c + row * tile.ldc * bytes, 0, tile.n * bytes);
}

void sumByPanels(const GroupedCall &call, const PanelKernels &kernels) {
  const RotaGroupedGemm &g = call.g;
  const PanelTiling &tiling = kernels.sizes.tiling;
  ColumnTiles m = tilesFor(call, g.in, g.experts,
                           {tiling.unitM, tiling.mostM, kTilesOfThread});
  ColumnTiles n(g.out, tiling.unitN, tiling.mostN);
  std::vector<int64_t> experts; // the largest first
  for (const ExpertRows::Part *part : call.rows.largestFirst())
    experts.push_back(part->expert);
  for (int64_t expert = 0; expert < g.experts; ++expert)
    if (call.rows.partsOf(expert).empty())
      experts.push_back(expert);
  runPieces(
      call, g.experts * m.count * n.count, "gradient of experts",
      [&](int64_t piece) {
        int64_t column = piece % n.count, row = piece / n.count % m.count;
        int64_t expert = experts[piece / n.count / m.count];
        std::span<const ExpertRows::Part> parts = call.rows.partsOf(expert);
        std::span<const RowStretch> stretches;
        if (!parts.empty())
          stretches = parts.front().stretches;
        RotaGemm tile = depthTile(g, m.of(row), n.of(column),
                                  PanelProduct::depthOf(stretches));
        int64_t fromA = row * m.width, fromB = column * n.width;
        char *c =
            call.c + ((expert * g.in + fromA) * g.out + fromB) * call.bytesC();
        if (stretches.empty())
          return clear(tile, c);
        PanelProduct(tile, kernels)
            .run(call.a + fromA * call.bytesA(), call.b + fromB * call.bytesA(),
                 c, stretches, operandScratch());
      });
}

} // namespace rota
