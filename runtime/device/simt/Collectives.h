// SPDX-License-Identifier: Apache-2.0
//
// Collectives: results that the lanes of a warp compute together, once all of
// them have come.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_COLLECTIVES_H
#define ROTA_RUNTIME_DEVICE_SIMT_COLLECTIVES_H

#include "runtime/device/simt/Services.h"
#include "runtime/device/simt/SharedShadow.h"

#include <array>
#include <string>

namespace rota::simt {

/// A lane's result: up to four registers.
using Words = std::array<uint32_t, 4>;

struct WarpOperation {
  enum class Kind { WarpBarrier, Shuffle, Ballot, LoadMatrix, Multiply };
  Kind kind = Kind::WarpBarrier;
  uint32_t variant = 0;  // RotaSimtShuffleKind
  uint32_t matrices = 0; // matrices of a LoadMatrix
  bool transpose = false;

  /// All lanes of the warp come to the same instruction.
  bool isAligned() const {
    return kind == Kind::LoadMatrix || kind == Kind::Multiply;
  }
  bool operator==(const WarpOperation &) const = default;
};

/// The operands of one lane.
struct Operands {
  uint32_t value = 0, operand = 0;
  const void *row = nullptr;
  RotaSimtFragments fragments{};
};

/// A collective that some lanes have come to.
struct PendingCollective {
  WarpOperation operation;
  uint32_t warp = 0, mask = 0, site = 0;
  uint32_t arrived = 0; // lanes, a bit each
  std::array<Operands, kWarpSize> operands;
};

/// Computes the results of all lanes of the mask. Returns what is wrong: a
/// shuffle from a lane that is not in the mask.
std::string compute(const PendingCollective &pending,
                    std::array<Words, kWarpSize> &results);

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_COLLECTIVES_H
