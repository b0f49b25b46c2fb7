// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/PrepareProducts.h"
#include "runtime/device/Context.h"
#include "runtime/device/GemmShape.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/cpu/GemmTile.h"
#include "runtime/device/cpu/PanelProduct.h"

#include <exception>
#include <map>
#include <string>
#include <vector>

namespace rota {
namespace {

/// Keeps the tiles of the products that tasks ask for, and does none of their
/// work.
class TileCollector : public CpuDevice {
public:
  void launch(RotaContext *, RotaKernel, void *const *, int64_t,
              int64_t) override {}
  void copy(RotaContext *, const void *, void *, int64_t) override {}
  void checkIndices(RotaContext *, const int32_t *, int64_t, int64_t,
                    int64_t) override {}
  void multiply(RotaContext *, const RotaGemm &gemm, const void *, const void *,
                void *) override {
    if (findFault(gemm) || gemm.m * gemm.n * gemm.k == 0)
      return; // no tile is run
    if (PanelProduct::kernelsFor(gemm))
      return; // nothing is compiled
    for (const RotaGemm &tile : tilesOf(gemm, tileGemm(gemm, /*threads=*/1)))
      byBytes.try_emplace({reinterpret_cast<const char *>(&tile), sizeof tile},
                          tile);
  }

  std::vector<RotaGemm> tiles() const {
    std::vector<RotaGemm> all;
    for (const auto &[bytes, tile] : byBytes)
      all.push_back(tile);
    return all;
  }

private:
  std::map<std::string, RotaGemm> byBytes;
};

} // namespace

void prepareProductsOnCpu(RotaContext *context,
                          FunctionRef<void(RotaContext *)> runTasks) {
  TileCollector collector;
  NoCollectives collectives;
  RotaContext collecting;
  collecting.device = &collector;
  collecting.collectives = &collectives;
  runTasks(&collecting);
  std::vector<RotaGemm> tiles = collector.tiles();
  auto find = [&](int64_t tile) {
    try {
      findGemmTile(tiles[tile]);
    } catch (const std::exception &error) {
      reportFailure(context, toString(tiles[tile]) + ": " + error.what());
    }
  };
  // oneDNN keeps the code of all threads: this thread finds it the second time.
  auto count = static_cast<int64_t>(tiles.size());
  parallelPieces(context, count, find);
  for (int64_t tile = 0; tile < count; ++tile)
    find(tile);
}

} // namespace rota
