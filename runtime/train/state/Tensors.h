// SPDX-License-Identifier: Apache-2.0
//
// Whole tensors out of the parts that ranks hold, for files that rank 0 writes:
// one tensor at a time, so that memory is bounded by the largest.
#ifndef ROTA_RUNTIME_TRAIN_STATE_TENSORS_H
#define ROTA_RUNTIME_TRAIN_STATE_TENSORS_H

#include "runtime/checkpoint/Safetensors.h"
#include "runtime/train/rank/Rank.h"

#include <string>
#include <vector>

namespace rota {

/// A parameter tensor and the stage that updates it.
struct NamedTensor {
  std::string name; // as tensorName of runtime/program/TensorNames.h says
  const Parameter *parameter = nullptr;
  int stage = 0;
  const Update *update = nullptr;
};

/// All tensors of the program in the order of their names.
std::vector<NamedTensor> tensorsByName(const Program &program);

/// The whole master of the parameter or its summed gradient, out of the parts
/// of the optimizer's division, row-major, on rank 0; nothing on the others.
/// Every rank calls.
std::vector<float> gatherMaster(Rank &rank, const NamedTensor &tensor);
std::vector<float> gatherGradient(Rank &rank, const NamedTensor &tensor);

/// Adds the tensors that hold `tensor` in a file, each name after `prefix`.
void addForms(const NamedTensor &tensor, const std::string &prefix,
              std::map<std::string, TensorForm> &forms);

/// Writes those tensors from the whole parameter.
void writeTensor(SafetensorsWriter &writer, const NamedTensor &tensor,
                 const std::string &prefix, const std::vector<float> &whole);

/// Writes all parameters to a safetensors file. Every rank calls.
void saveWeights(Rank &rank, const std::string &path);

/// The logits of the last run's microbatches, one behind the other, in f32 on
/// rank 0; nothing on the others. Every rank calls.
std::vector<float> gatherLogits(Rank &rank);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_TENSORS_H
