// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Cotangents.h"
#include "runtime/Error.h"
#include "runtime/train/step/ActionWork.h"
#include "runtime/train/step/Loss.h"

#include <fmt/format.h>
#include <utility>

namespace rota {

/// Writes the numbers that the weight of the loss is multiplied with and
/// divided by.
Cotangents::Cotangents(Rank &rank) : rank(rank), weights(rank) {
  const Program &program = rank.program();
  std::vector<double> factors;
  for (const AuxiliaryLoss &loss : program.auxiliaryLosses) {
    factors.push_back(loss.coefficient);
    factors.push_back(loss.weight *
                      static_cast<double>(program.stepMicrobatches()));
  }
  rank.device().write(factors.data(),
                      rank.runtimeAt(rank.places().cotangentFactors),
                      static_cast<int64_t>(8 * factors.size()));
}

void Cotangents::startWeights(int64_t accumulationStep) {
  rank.setPosition("weight of the loss");
  {
    ComputeToken token(rank.cores());
    for (int microbatch : rank.stage().startMicrobatches)
      for (const Call &c : rank.stage().startCalls) {
        runCall(rank, rank.context(), c, {}, microbatch);
        if (!rank.context()->failed)
          continue;
        rank.rethrowFailure();
        throw RunError(fmt::format("rank {}: stage {}, weight of the loss: {}",
                                   rank.number(), rank.stageNumber(),
                                   rank.context()->failure));
      }
  }
  weights.startWeights(accumulationStep);
  isOpen = true;
  if (rank.device().isAsynchronous() &&
      accumulationStep + 1 == rank.program().accumulationSteps)
    find();
}

void Cotangents::find() {
  if (!std::exchange(isOpen, false))
    return;
  weights.wait();
  if (rank.stage().auxiliaryCotangents < 0)
    return;
  const Program &program = rank.program();
  const RuntimeMemory &places = rank.places();
  rank.device().findCotangents(
      {stepLosses(rank),
       static_cast<const double *>(rank.runtimeAt(places.cotangentFactors)),
       static_cast<int64_t>(program.auxiliaryLosses.size()),
       static_cast<float *>(rank.at(rank.stage().auxiliaryCotangents))});
}

} // namespace rota
