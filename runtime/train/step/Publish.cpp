// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Publish.h"
#include "runtime/program/UpdatePlaces.h"
#include "runtime/train/step/UpdateTransfers.h"

#include <utility>

namespace rota {

static int64_t optimizerElements(Rank &rank, const Update &update) {
  const Parameter &parameter = rank.program().parameters[update.parameter];
  return partElements(parameter.shape, parameter.optimizerDivision,
                      rank.program().mesh);
}

static int64_t storedBytes(Rank &rank, const Update &update) {
  const Parameter &parameter = rank.program().parameters[update.parameter];
  return byteSize(parameter.compute) * partElements(parameter.shape,
                                                    parameter.storageDivision,
                                                    rank.program().mesh);
}

static void *updatedAt(Rank &rank, const Update &update) {
  return rank.at(updatedPlace(rank.program(), update, rank.coordinates()));
}

/// Writes the master's values as elements of the compute type.
static void roundMaster(Rank &rank, const Update &update) {
  const Parameter &parameter = rank.program().parameters[update.parameter];
  int64_t count = optimizerElements(rank, update);
  void *master = rank.at(update.master), *updated = updatedAt(rank, update);
  if (parameter.compute != ElementType::BF16)
    return rank.device().copy(rank.context(), master, updated, 4 * count);
  rank.device().round(rank.context(), static_cast<const float *>(master),
                      static_cast<uint16_t *>(updated), count);
}

void Publisher::start(const Update &update, bool isRounded) {
  const Parameter &parameter = rank.program().parameters[update.parameter];
  if (!isRounded && update.updated != update.master)
    roundMaster(rank, update);
  const void *updated = updatedAt(rank, update);
  void *stored = rank.at(update.stored);
  if (parameter.refresh >= 0)
    requests.push_back(startRefresh(rank, Stream::Step, update));
  else if (stored != updated)
    rank.device().copy(rank.context(), updated, stored,
                       storedBytes(rank, update));
}

void Publisher::finish() {
  OpenCopies open = startCopies();
  for (const auto *list : {&open.written, &open.sent})
    for (Request request : *list)
      wait(request);
}

void Publisher::wait(Request request) {
  isInStep ? rank.waitAtStepEnd(request)
           : void(rank.communicator().wait(request));
}

Publisher::OpenCopies Publisher::startCopies() {
  for (Request request : std::exchange(requests, {}))
    wait(request);
  // Sender and receiver go through stages and tensors in the program's order,
  // so that the messages between two ranks match.
  OpenCopies open;
  exchange(/*sends=*/false, open);
  exchange(/*sends=*/true, open);
  return open;
}

void Publisher::exchange(bool sends, OpenCopies &open) {
  int here = rank.stageNumber();
  const std::vector<Stage> &stages = rank.program().stages;
  for (int owner = 0; owner < static_cast<int>(stages.size()); ++owner)
    for (const Update &update : stages[owner].updates)
      for (const ArenaAddress &copy : update.copies) {
        if (sends ? owner != here : owner == here || copy.stage != here)
          continue;
        if (isInStep && rank.program().parameters[update.parameter].isFrozen)
          continue;
        int64_t bytes = storedBytes(rank, update);
        void *place = rank.at(sends ? update.stored : copy.offset);
        Communicator &communicator = rank.communicator();
        if (sends && copy.stage == here)
          open.written.push_back(
              communicator.copy(place, rank.at(copy.offset), bytes));
        else if (sends)
          open.sent.push_back(communicator.send(
              Stream::Step, rank.peer(copy.stage), place, bytes));
        else
          open.written.push_back(communicator.receive(
              Stream::Step, rank.peer(owner), place, bytes));
      }
}

} // namespace rota
