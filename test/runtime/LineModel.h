// SPDX-License-Identifier: Apache-2.0
//
// A model small enough to differentiate by hand, compiled by hand: two layers
// y = x * w + b, elementwise along the embedding, with a w for each layer and
// one b for both (as a tied embedding), and the loss sum((z - target)^2) / 2
// with the number of elements as its weight.
#ifndef ROTA_TEST_RUNTIME_LINEMODEL_H
#define ROTA_TEST_RUNTIME_LINEMODEL_H

#include "runtime/collective/local/LocalNetwork.h"
#include "runtime/train/rank/ProcessRanks.h"

#include <vector>

namespace rota::test {

inline constexpr int64_t kEmbed = 4, kSequence = 3;
inline constexpr int64_t kActivation = kSequence * kEmbed; // f32 elements

/// The division of the model over ranks. The mesh has the axes data, stage,
/// fsdp and tensor; each rank of data and fsdp has one sequence of a
/// microbatch.
struct LineShape {
  // 1, or 2 with a layer each: the first sends all activations before it
  // receives cotangents.
  int stages = 1;
  int64_t microbatches = 2;
  int data = 1;
  // Above 1: weights are stored in parts. One window holds those of a layer,
  // gathered for each action; gradients of a layer are reduced once, at the
  // end.
  int fsdp = 1;
  // Its state is divided over data, or over tensor where data is 1.
  bool shardOptimizer = false;
  // Residuals of the second layer are offloaded to the host arena; needs one
  // stage.
  bool offload = false;
  int tensor = 1;      // ranks that all do the same
  bool logits = false; // keeps the result of the second layer
  int64_t accumulationSteps = 1;
};

Program makeLine(const LineShape &shape);
/// A plain pipeline.
Program makeLine(int stages, int64_t microbatches);

/// The program with its functions, which it calls by number.
Executable makeLineExecutable(const Program &program);

extern const RotaTask lineTasks[];
extern const RotaKernel lineKernels[];

/// The place of a CPU rank's arena, as an array of T.
template <typename T> T *addressOf(const Rank &rank, int64_t offset) {
  return static_cast<T *>(rank.at(offset));
}

/// The rank whose task this is; null where tasks run for the shapes of their
/// products alone.
inline Rank *rankOf(RotaContext *context) {
  auto *own = dynamic_cast<TaskContext *>(context->collectives);
  return own ? &own->owner() : nullptr;
}

/// All ranks of a program as threads of this process.
class LocalRanks {
public:
  LocalRanks(const Executable &executable, int threads);

  /// Runs body(rank) on the threads of all ranks.
  void run(const std::function<void(Rank &)> &body) { ranks.run(body); }
  int count() const { return ranks.localRanks(); }
  Rank &at(int rank) { return ranks.rank(rank); }
  /// The line model's rank of this stage, the first of its replicas.
  Rank &ofStage(int stage);

private:
  Connection connection;
  ProcessRanks ranks;
};

/// The line model in f64, in the order of the program's timelines.
struct LineReference {
  std::vector<double> w0, w1, b;    // [kEmbed]
  std::vector<double> dw0, dw1, db; // sums over microbatches
  double sum = 0.0, weight = 0.0;
  /// input and target: one sequence.
  void accumulate(const float *input, const float *target);
  /// Adds the gradients of the data of all ranks.
  void accumulate(LocalRanks &ranks);
};

/// The model's tensors out of their parts: bias, weights of layers 0 and 1.
LineReference readLine(LocalRanks &ranks);
std::vector<std::vector<float>> readMasters(LocalRanks &ranks);
std::vector<std::vector<float>> readGradients(LocalRanks &ranks);

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_LINEMODEL_H
