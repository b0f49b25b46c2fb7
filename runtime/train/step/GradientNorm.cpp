// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/GradientNorm.h"
#include "runtime/Error.h"
#include "runtime/program/TensorNames.h"
#include "runtime/program/UpdatePlaces.h"
#include "runtime/train/step/UpdateTask.h"

#include <fmt/format.h>

namespace rota {

GradientNorm::GradientNorm(Rank &rank, bool hasBarrier)
    : rank(rank), hasBarrier(hasBarrier),
      squares(squarePlaces(rank.program(), rank.stage())),
      tables{rank.runtimeAt(rank.places().squareTables),
             rank.places().squareTableBytes},
      norms(normTerms(rank.program())) {
  for (const NormTerm &term : norms)
    order.push_back(static_cast<int32_t>(term.number));
  rank.device().write(order.data(), rank.runtimeAt(rank.places().order),
                      static_cast<int64_t>(4 * order.size()));
}

double *GradientNorm::allSquares(int64_t version) const {
  const RuntimeMemory &places = rank.places();
  auto ranks = static_cast<int64_t>(rank.everyone().ranks.size());
  return static_cast<double *>(
      rank.runtimeAt(places.allSquares + 8 * version * ranks * places.widest));
}

/// Sums the squares of this rank's gradients and starts bringing those of all.
Request GradientNorm::start(int64_t version) {
  const Program &program = rank.program();
  const RuntimeMemory &places = rank.places();
  auto *own = static_cast<double *>(
      rank.runtimeAt(places.squares + 8 * version * places.widest));
  auto sum = [&](int64_t number) {
    auto u = static_cast<size_t>(number);
    const Update &update = rank.stage().updates[u];
    const Parameter &parameter = program.parameters[update.parameter];
    if (parameter.isFrozen)
      return;
    int64_t sums = rank.stage().step.squares + squares[u];
    runUpdateTask(rank, parameter.squareTask, update, sums);
    rank.device().sum(rank.context(), static_cast<const float *>(rank.at(sums)),
                      parameter.rows, own + u);
  };
  {
    ComputeToken token(rank.cores());
    rank.device().launchTogether(
        rank.context(), tables,
        static_cast<int64_t>(rank.stage().updates.size()), sum);
  }
  // Bits travel as i32, so that nothing is rounded.
  Collective gather;
  gather.kind = Collective::Kind::AllGather;
  gather.type = ElementType::I32;
  gather.size = static_cast<int64_t>(rank.everyone().ranks.size());
  gather.inner = 2 * places.widest;
  gather.reason = "squares of all ranks";
  if (gather.inner == 0)
    return 0;
  return rank.communicator().start(Stream::Step, gather, rank.everyone(), own,
                                   allSquares(version));
}

const double *GradientNorm::gather(bool waits) {
  // Only one step before this one may still be read.
  int64_t version = hasBarrier ? 0 : stepsStarted % 2;
  Request request = start(version);
  if (waits)
    rank.waitAtStepEnd(request);
  else
    open[static_cast<size_t>(stepsStarted++ % 2)] = request;
  return allSquares(version);
}

SquareSum GradientNorm::read(int64_t version) {
  rank.communicator().wait(open[static_cast<size_t>(version)]);
  std::vector<double> all(rank.everyone().ranks.size() *
                          static_cast<size_t>(rank.places().widest));
  rank.device().read(allSquares(version), all.data(),
                     static_cast<int64_t>(8 * all.size()));
  SquareSum sum;
  for (size_t i = 0; i < order.size(); ++i)
    sum.add(static_cast<int64_t>(i), all[static_cast<size_t>(order[i])]);
  return sum;
}

double GradientNorm::of(std::span<const double> result) const {
  double wrong = result[kWrongResult];
  if (wrong >= 0.0 && result[kSkipResult] == 0.0) {
    const NormTerm &term = norms[static_cast<size_t>(wrong)];
    throw RunError(fmt::format(
        "the gradient of '{}' is not finite",
        tensorName(rank.program().parameters[term.parameter], term.layer)));
  }
  return result[kNormResult];
}

} // namespace rota
