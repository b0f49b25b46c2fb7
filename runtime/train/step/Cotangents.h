// SPDX-License-Identifier: Apache-2.0
//
// The cotangents of auxiliary losses, which the first backward of a step reads.
// They are the coefficients over the weight of the main loss in the whole step,
// which is therefore found and brought to all ranks before.
#ifndef ROTA_RUNTIME_TRAIN_STEP_COTANGENTS_H
#define ROTA_RUNTIME_TRAIN_STEP_COTANGENTS_H

#include "runtime/train/step/LossGather.h"

namespace rota {

class Cotangents {
public:
  explicit Cotangents(Rank &rank);

  /// Finds the weight of the main loss in an accumulation step and starts
  /// bringing it to all ranks. A host that is ahead of its device does not wait
  /// for it anyway: there the last one is followed by find().
  void startWeights(int64_t accumulationStep);
  /// Makes the cotangents out of the weights, once they are here, if that was
  /// not done yet: once a step.
  void find();

private:
  Rank &rank;
  LossGather weights;
  bool isOpen = false; // weights were started, and find() has not read them
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_COTANGENTS_H
