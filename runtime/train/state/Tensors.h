// SPDX-License-Identifier: Apache-2.0
//
// Whole tensors out of the parts that ranks hold, for files that rank 0 writes:
// one tensor at a time, so that memory is bounded by the largest.
#ifndef ROTA_RUNTIME_TRAIN_STATE_TENSORS_H
#define ROTA_RUNTIME_TRAIN_STATE_TENSORS_H

#include "runtime/checkpoint/Safetensors.h"
#include "runtime/program/State.h"
#include "runtime/train/rank/Rank.h"

#include <string>
#include <vector>

namespace rota {

/// The whole of a master tensor or of its summed gradient, out of the parts of
/// the optimizer's division, row-major, on rank 0; nothing on the others. Every
/// rank calls.
std::vector<float> gatherMaster(Rank &rank, const StateTensor &tensor);
std::vector<float> gatherGradient(Rank &rank, const StateTensor &tensor);

/// Adds the tensors that hold `tensor` in a file, each name after `prefix`.
void addForms(const Program &program, const StateTensor &tensor,
              const std::string &prefix,
              std::map<std::string, TensorForm> &forms);

/// Writes those tensors from the whole.
void writeTensor(const Program &program, SafetensorsWriter &writer,
                 const StateTensor &tensor, const std::string &prefix,
                 const std::vector<float> &whole);

/// Writes all parameters to a safetensors file. Every rank calls.
void saveWeights(Rank &rank, const std::string &path);

/// The logits of the last run's microbatches, one behind the other, in f32 on
/// rank 0; nothing on the others. Every rank calls.
std::vector<float> gatherLogits(Rank &rank);

/// The logits at a position of the first sequence, after Executor::sample with
/// its sampledBlock, in f32 on rank 0; nothing on the others. Every rank calls.
std::vector<float> gatherSample(Rank &rank, int64_t position);

/// The call of the loss that has the position, on the ranks that have it.
int64_t sampledBlock(const Program &program, int64_t position);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_TENSORS_H
