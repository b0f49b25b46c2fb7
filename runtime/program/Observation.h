// SPDX-License-Identifier: Apache-2.0
//
// What layers tell beside activations: auxiliary losses, and counts for
// reports.
#ifndef ROTA_RUNTIME_PROGRAM_OBSERVATION_H
#define ROTA_RUNTIME_PROGRAM_OBSERVATION_H

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

/// A loss of layers beside the main one. A step's loss has `coefficient` times
/// the sum of its sums over its weights, those of all microbatches. Their
/// cotangent is coefficient * W / w, with the weights W of the main loss and w
/// of this one in the step, since gradients are divided by W at the end.
struct AuxiliaryLoss {
  std::string name;
  double coefficient = 0.0;
  double weight = 0.0; // weight of all layers in one microbatch
};

/// A sum that the loss function makes beside the main one. The loss of a step
/// has `coefficient` times the total of these sums, divided by the weight.
struct LossTerm {
  std::string name;
  double coefficient = 0.0;
};

/// The place of the sums of a layer's auxiliary losses, which forward writes:
/// f32 [microbatches, losses]. Where several stages have the layer, each writes
/// those of its microbatches; the rest stays zero.
struct AuxiliarySums {
  int64_t layer = 0;
  int64_t offset = 0;
  std::vector<int> losses; // in Program::auxiliaryLosses, one for each sum
};

/// Counts of layers' forward, for reports: a table of i32 [rows, columns] for
/// each microbatch. A sequence has `parts` rows, one for each equal part of its
/// tokens, and a rank those of its sequences or parts. The columns of a layer
/// are added over rows, microbatches and ranks. Where the observation
/// `isAveraged`, tasks of the layer read the mean of these sums over the step's
/// microbatches, f32 [columns], which the runtime writes before the step after
/// the table of each microbatch.
struct Observation {
  std::string name;
  int64_t rows = 0, columns = 0;
  int64_t parts = 1;
  int64_t each = 0; // sum of a row if nothing is dropped; 0: unknown
  bool isAveraged = false;
  bool operator==(const Observation &) const = default;
  /// The offset of the mean after its table; both begin where a block of an
  /// arena may.
  int64_t meanOffset() const { return (4 * rows * columns + 63) / 64 * 64; }
  /// Bytes for a microbatch, with padding.
  int64_t bytes() const {
    return meanOffset() + (isAveraged ? (4 * columns + 63) / 64 * 64 : 0);
  }
};

/// The place of a layer's tables, which forward writes: those of a microbatch
/// one after the other, each with its mean where it has one. As with
/// AuxiliarySums, what a stage does not write stays zero.
struct ObservedTables {
  int64_t layer = 0;
  int64_t offset = 0;
  std::vector<int> observations; // in Program::observations
};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_OBSERVATION_H
