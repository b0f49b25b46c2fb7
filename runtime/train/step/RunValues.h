// SPDX-License-Identifier: Apache-2.0
//
// Parts of the trainer that keep numbers of the run from step to step, beside
// the tensors: each names its own in RunState::values.
#ifndef ROTA_RUNTIME_TRAIN_STEP_RUNVALUES_H
#define ROTA_RUNTIME_TRAIN_STEP_RUNVALUES_H

#include "runtime/checkpoint/Manifest.h"

#include <vector>

namespace rota {

/// Values that are the same on all ranks.
class RunValues {
public:
  virtual ~RunValues() = default;
  /// Writes them to `state` under names of its own.
  virtual void save(RunState &state) const = 0;
  /// Takes them out of `state`, which may have been written without them.
  virtual void restore(const RunState &state) = 0;
};

/// The parts of one rank's trainer, which it does not own.
class RunValuesList {
public:
  void add(RunValues &part) { parts.push_back(&part); }

  void save(RunState &state) const {
    for (const RunValues *part : parts)
      part->save(state);
  }
  void restore(const RunState &state) {
    for (RunValues *part : parts)
      part->restore(state);
  }

private:
  std::vector<RunValues *> parts;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_RUNVALUES_H
