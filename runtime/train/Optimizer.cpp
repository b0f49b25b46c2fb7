// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Optimizer.h"
#include "runtime/Error.h"
#include "runtime/train/Initialize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <numbers>

namespace rota {

double learningRateAt(const AdamW &adamw, int64_t t, int64_t steps) {
  if (t < adamw.warmupSteps)
    return adamw.learningRate * static_cast<double>(t) /
           static_cast<double>(adamw.warmupSteps);
  int64_t fall = std::max<int64_t>(steps - adamw.warmupSteps, 1);
  double share =
      std::min(1.0, static_cast<double>(t - adamw.warmupSteps) / fall);
  return adamw.minLearningRate + (adamw.learningRate - adamw.minLearningRate) *
                                     0.5 *
                                     (1.0 + std::cos(std::numbers::pi * share));
}

static void sumAccumulators(Machine &machine, int rank, const Update &update) {
  constexpr int64_t kPiece = 1 << 16;
  int64_t count = elementCount(machine.program().parameters[update.parameter]);
  float *sum = machine.at<float>(update.gradients[0]);
  for (size_t g = 1; g < update.gradients.size(); ++g) {
    float *other = machine.at<float>(update.gradients[g]);
    parallelPieces(machine.context(rank), (count + kPiece - 1) / kPiece,
                   [&](int64_t piece) {
                     int64_t end = std::min(count, (piece + 1) * kPiece);
                     for (int64_t i = piece * kPiece; i < end; ++i) {
                       sum[i] += other[i];
                       other[i] = 0.0f;
                     }
                   });
  }
}

void sumGradients(Machine &machine) {
  machine.onEachRank([&](int rank) {
    for (const Update &update : machine.program().stages[rank].updates) {
      if (update.gradients.size() == 1)
        continue;
      ComputeToken token(machine.cores());
      sumAccumulators(machine, rank, update);
    }
  });
}

double Optimizer::globalNorm() {
  const Program &program = machine.program();
  // Sums of squares by (parameter, layer): added up below in that order, so
  // that neither placement nor schedule changes a bit.
  std::map<std::pair<int, int64_t>, double> squares;
  for (const Stage &rank : program.stages)
    for (const Update &update : rank.updates)
      squares[{update.parameter, update.layer}] = 0.0;
  machine.onEachRank([&](int rank) {
    std::vector<float> rows;
    for (const Update &update : program.stages[rank].updates) {
      const Parameter &parameter = program.parameters[update.parameter];
      ComputeToken token(machine.cores());
      rows.resize(static_cast<size_t>(parameter.rows));
      void *args[] = {machine.at<float>(Place{rank, update.gradient}),
                      rows.data()};
      rotaParallelFor(machine.context(rank),
                      machine.kernel(parameter.squareKernel), args,
                      parameter.rows, 1);
      double sum = 0.0;
      for (float row : rows)
        sum += row;
      squares.find({update.parameter, update.layer})->second = sum;
    }
  });
  double total = 0.0;
  for (const auto &[key, sum] : squares) {
    if (!std::isfinite(sum)) {
      const Parameter &parameter = program.parameters[key.first];
      throw RunError(fmt::format("the gradient of '{}' is not finite",
                                 tensorName(parameter, key.second)));
    }
    total += sum;
  }
  return std::sqrt(total);
}

void Optimizer::update(int rank, const Update &update, double learningRate,
                       double gradientScale) {
  const Parameter &parameter = machine.program().parameters[update.parameter];
  auto t = static_cast<double>(steps);
  float scalars[] = {
      static_cast<float>(learningRate),
      static_cast<float>(adamw.beta1),
      static_cast<float>(adamw.beta2),
      static_cast<float>(adamw.epsilon),
      static_cast<float>(parameter.decay ? adamw.weightDecay : 0.0),
      static_cast<float>(1.0 - std::pow(adamw.beta1, t)),
      static_cast<float>(1.0 - std::pow(adamw.beta2, t)),
      static_cast<float>(gradientScale)};
  void *master = machine.at<float>(rank, update.master);
  void *gradient = machine.at<float>(Place{rank, update.gradient});
  void *first = machine.at<float>(rank, update.firstMoment);
  void *second = machine.at<float>(rank, update.secondMoment);
  std::vector<void *> args = {master, gradient, first, second};
  for (float &scalar : scalars)
    args.push_back(&scalar);
  args.insert(args.end(), {master, first, second, gradient});
  bool kernelWritesCopy = parameter.compute == ElementType::BF16;
  if (kernelWritesCopy)
    args.push_back(machine.at<void>(rank, update.updated));
  rotaParallelFor(machine.context(rank), machine.kernel(parameter.updateKernel),
                  args.data(), parameter.rows, 1);
  refreshCopies(machine, rank, update, /*own=*/!kernelWritesCopy);
}

double Optimizer::step(double learningRate, double totalWeight) {
  ++steps;
  sumGradients(machine);
  double norm = globalNorm() / totalWeight;
  double clip = 1.0;
  if (adamw.gradientClip > 0.0)
    clip = std::min(1.0, adamw.gradientClip / (norm + 1e-6));
  machine.onEachRank([&](int rank) {
    for (const Update &u : machine.program().stages[rank].updates) {
      ComputeToken token(machine.cores());
      update(rank, u, learningRate, clip / totalWeight);
    }
  });
  return norm;
}

} // namespace rota
