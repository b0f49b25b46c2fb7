// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/UpdateTransfers.h"
#include "runtime/program/Part.h"
#include "runtime/program/UpdatePlaces.h"

namespace rota {

Request startSum(Rank &rank, Stream stream, const Update &update, int round) {
  const Program &program = rank.program();
  int collective =
      program.parameters[update.parameter].reduce[static_cast<size_t>(round)];
  const Collective &c = program.collectives[collective];
  int64_t sum = update.gradients[0].offset, to = sum;
  if (c.kind != Collective::Kind::AllReduce) {
    to = update.gradient;
    if (isGradientInPlace(program, update))
      to += rank.group(collective).index * byteSize(c.type) *
            outputElements(c, program.mesh);
  }
  return rank.start(stream, collective, rank.at(sum), rank.at(to));
}

Request startRefresh(Rank &rank, Stream stream, const Update &update) {
  int64_t updated = updatedPlace(rank.program(), update, rank.coordinates());
  return rank.start(stream, rank.program().parameters[update.parameter].refresh,
                    rank.at(updated), rank.at(update.stored));
}

} // namespace rota
