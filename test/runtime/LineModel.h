// SPDX-License-Identifier: Apache-2.0
//
// A model small enough to differentiate by hand, compiled by hand: two layers
// y = x * w + b, elementwise along the embedding, with a w for each layer and
// one b for both (as a tied embedding), and the loss sum((z - target)^2) / 2
// with the number of elements as its weight.
#ifndef ROTA_TEST_RUNTIME_LINEMODEL_H
#define ROTA_TEST_RUNTIME_LINEMODEL_H

#include "runtime/program/Program.h"
#include "runtime/train/Machine.h"

#include <vector>

namespace rota::test {

inline constexpr int64_t kEmbed = 4, kSequence = 3;
inline constexpr int64_t kActivation = kSequence * kEmbed; // f32 elements

/// The program on one rank, or on two with a pipeline stage each: the first
/// sends all activations before it takes back cotangents.
Program makeLine(int ranks, int64_t microbatches);

/// The functions that the program's numbers mean.
Executable makeLineExecutable(const Program &program);

extern const RotaTask lineTasks[];
extern const RotaKernel lineKernels[];

/// The same model in f64, in the order of the program's timelines.
struct LineReference {
  std::vector<double> w0, w1, b;    // [kEmbed]
  std::vector<double> dw0, dw1, db; // sums over microbatches
  double sum = 0.0, weight = 0.0;
  /// input and target: one microbatch.
  void accumulate(const float *input, const float *target);
};

/// Reads w0, w1 and b out of a machine that runs the program.
LineReference readLine(const Machine &machine);

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_LINEMODEL_H
