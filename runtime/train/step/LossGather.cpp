// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/LossGather.h"
#include "runtime/train/step/Observed.h"

#include <utility>

namespace rota {

/// Gathers `own` of each rank of the loss, f32 [count], to `all`.
void LossGather::gather(const void *own, int64_t count, const char *reason,
                        void *all) {
  Collective gather;
  gather.kind = Collective::Kind::AllGather;
  gather.type = ElementType::F32;
  gather.size = rank.places().lossRanks;
  gather.inner = count;
  gather.reason = reason;
  requests.push_back(rank.communicator().start(Stream::Step, gather,
                                               rank.lossGroup(), own, all));
}

void LossGather::startWeights(int64_t accumulationStep) {
  const RuntimeMemory &places = rank.places();
  int64_t bytes = rank.program().microbatches * lossBytes(rank.program());
  void *own = rank.runtimeAt(places.ownLosses + accumulationStep * bytes);
  if (rank.stage().loss >= 0)
    rank.device().copy(nullptr, rank.at(rank.stage().loss), own, bytes);
  gather(own, bytes / 4, "losses of all ranks",
         rank.runtimeAt(places.losses +
                        accumulationStep * places.lossRanks * bytes));
}

void LossGather::start(int64_t accumulationStep) {
  startWeights(accumulationStep);
  startTables(rank, accumulationStep);
  const RuntimeMemory &places = rank.places();
  if (places.auxiliaryCount == 0)
    return;
  int64_t own =
      places.auxiliarySums + 4 * accumulationStep * places.auxiliaryCount;
  int64_t at = own;
  for (const auto &[layer, losses] : auxiliaryLayers(rank.program())) {
    int64_t bytes =
        4 * rank.program().microbatches * static_cast<int64_t>(losses.size());
    for (const AuxiliarySums &sums : rank.stage().auxiliarySums)
      if (sums.layer == layer)
        rank.device().copy(nullptr, rank.at(sums.offset), rank.runtimeAt(at),
                           bytes);
    at += bytes;
  }
  gather(rank.runtimeAt(own), places.auxiliaryCount,
         "auxiliary losses of all ranks",
         rank.runtimeAt(places.auxiliary + 4 * accumulationStep *
                                               places.lossRanks *
                                               places.auxiliaryCount));
}

void LossGather::wait() {
  for (Request request : std::exchange(requests, {}))
    rank.waitAtStepEnd(request);
}

} // namespace rota
