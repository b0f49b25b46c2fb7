// SPDX-License-Identifier: Apache-2.0
//
// The pieces that products on the CPU consist of: each is one PanelProduct, or
// one single-threaded call of oneDNN. Each thread that calls oneDNN limits
// OpenMP to one thread. Primitives are compiled once per shape and kept per
// calling thread; scratch memory belongs to the thread that runs the tile.
#ifndef ROTA_RUNTIME_DEVICE_CPU_GEMMTILE_H
#define ROTA_RUNTIME_DEVICE_CPU_GEMMTILE_H

#include "runtime/Abi.h"
#include "runtime/device/cpu/Scratch.h"

#include <memory>

namespace rota {

/// A compiled product of one shape, whatever its types.
class GemmTile;
using GemmTileRef = std::shared_ptr<const GemmTile>;

/// The tile of this description, whose batch is 1 and strides 0. Throws where
/// oneDNN does.
GemmTileRef findGemmTile(const RotaGemm &tile);

/// Memory of the calling thread for parts of operands.
Scratch &operandScratch();

/// Runs the tile on the calling thread. Throws where oneDNN does.
void runGemmTile(const GemmTile &tile, const void *a, const void *b, void *c);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_GEMMTILE_H
