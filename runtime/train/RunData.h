// SPDX-License-Identifier: Apache-2.0
//
// The data of a run, which all ranks of a process share.
#ifndef ROTA_RUNTIME_TRAIN_RUNDATA_H
#define ROTA_RUNTIME_TRAIN_RUNDATA_H

#include "runtime/data/Batches.h"
#include "runtime/train/options/TrainerOptions.h"

namespace rota {

/// Throws InputError where the options name no data and the model's inputs are
/// tokens, or name data and they are not.
void requireData(bool takesTokens, const Options &options);

class RunData {
public:
  /// The batches that the options name: those of --data and --eval-data
  /// for a model of tokens, else random inputs. Throws InputError.
  RunData(const Program &program, const Options &options);

  /// Batches of Split::Train.
  const Batches &training() const { return *own; }
  /// Batches of Split::Validation, if it has any.
  const Batches &validation() const { return held ? *held : *own; }
  /// One line for people.
  std::string describe() const;

private:
  std::unique_ptr<Batches> own;
  std::unique_ptr<Batches> held; // the batches of --eval-data; null: none
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_RUNDATA_H
