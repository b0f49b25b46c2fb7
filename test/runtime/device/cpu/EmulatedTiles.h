// SPDX-License-Identifier: Apache-2.0
//
// The instructions of AMX that products use, in plain C++: as functions, and
// for object code on a processor that does not know them.
#ifndef ROTA_TEST_RUNTIME_DEVICE_CPU_EMULATEDTILES_H
#define ROTA_TEST_RUNTIME_DEVICE_CPU_EMULATEDTILES_H

#include "runtime/device/cpu/PanelKernels.h"

#include <array>
#include <cstdint>
#include <signal.h>

namespace rota::test {

/// Eight registers, each with up to 16 rows of up to 64 bytes. Aborts where the
/// processor raises an exception.
class TileRegisters {
public:
  /// The registers of the calling thread.
  static TileRegisters &get();

  /// `shapes`: the 64 bytes of ldtilecfg.
  void configure(const void *shapes);
  void release();
  bool isConfigured() const;

  void zero(int tile);
  void load(int tile, const void *from, int64_t stride);
  void store(int tile, void *to, int64_t stride) const;
  /// tdpbf16ps: sums of even and of odd elements of k are added at the end, and
  /// then to what is there. Numbers below the smallest normal one are zero.
  void addProducts(int sums, int a, int b);

private:
  typedef uint32_t Row __attribute__((ext_vector_type(16)));
  struct Tile {
    int rows = 0, bytes = 0; // of a row
    std::array<Row, 16> data = {};
  };
  static void addProducts(Row &sums, const Row &a, int pairs, const Tile &b);
  const Tile &checked(int tile) const;
  Tile &cleared(int tile);

  std::array<Tile, 8> tiles;
};

/// Kernels for AMX with TileRegisters in place of its instructions.
const PanelKernels &panelKernelsOfTiles();

/// While it lives, instructions of AMX that the processor does not know are
/// done by TileRegisters.
class EmulatedAmx {
public:
  EmulatedAmx();
  ~EmulatedAmx();
  EmulatedAmx(const EmulatedAmx &) = delete;
  EmulatedAmx &operator=(const EmulatedAmx &) = delete;

private:
  struct sigaction before;
};

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_DEVICE_CPU_EMULATEDTILES_H
