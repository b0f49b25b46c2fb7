// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Publish.h"
#include "runtime/checkpoint/Convert.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rota {

void inPieces(Rank &rank, int64_t count,
              FunctionRef<void(int64_t, int64_t)> body) {
  parallelPieces(rank.context(), (count + kPieceElements - 1) / kPieceElements,
                 [&](int64_t piece) {
                   body(piece * kPieceElements,
                        std::min(count, (piece + 1) * kPieceElements));
                 });
}

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

/// Writes the master's values as elements of the compute type.
static void roundMaster(Rank &rank, const Update &update) {
  const Parameter &parameter = rank.program().parameters[update.parameter];
  const float *master = rank.at<float>(update.master);
  char *place = rank.at<char>(update.updated);
  inPieces(
      rank, optimizerElements(rank, update), [&](int64_t begin, int64_t end) {
        if (parameter.compute == ElementType::BF16)
          std::transform(master + begin, master + end,
                         reinterpret_cast<uint16_t *>(place) + begin, toBf16);
        else
          std::memcpy(place + 4 * begin, master + begin,
                      static_cast<size_t>(end - begin) * 4);
      });
}

static void copyInPieces(Rank &rank, const char *source, char *destination,
                         int64_t bytes) {
  inPieces(rank, bytes, [&](int64_t begin, int64_t end) {
    std::memcpy(destination + begin, source + begin,
                static_cast<size_t>(end - begin));
  });
}

void Publisher::start(const Update &update, bool isRounded) {
  const Parameter &parameter = rank.program().parameters[update.parameter];
  if (!isRounded && update.updated != update.master)
    roundMaster(rank, update);
  const char *updated = rank.at<char>(update.updated);
  char *stored = rank.at<char>(update.stored);
  if (parameter.refresh >= 0)
    requests.push_back(
        rank.start(Stream::Step, parameter.refresh, updated, stored));
  else if (stored != updated)
    copyInPieces(rank, updated, stored, storedBytes(rank, update));
}

void Publisher::finish() {
  for (Request request : std::exchange(requests, {}))
    rank.communicator().wait(request);
  // Both sides go through stages and tensors in the program's order, so that
  // the messages between two ranks match.
  exchange(/*sends=*/false);
  exchange(/*sends=*/true);
  for (Request request : std::exchange(requests, {}))
    rank.communicator().wait(request);
}

void Publisher::exchange(bool sends) {
  int here = rank.stageNumber();
  const std::vector<Stage> &stages = rank.program().stages;
  for (int owner = 0; owner < static_cast<int>(stages.size()); ++owner)
    for (const Update &update : stages[owner].updates)
      for (const ArenaPlace &copy : update.copies) {
        if (sends ? owner != here : owner == here || copy.stage != here)
          continue;
        int64_t bytes = storedBytes(rank, update);
        char *place = rank.at<char>(sends ? update.stored : copy.offset);
        Communicator &communicator = rank.communicator();
        if (sends && copy.stage == here)
          requests.push_back(
              communicator.copy(place, rank.at<char>(copy.offset), bytes));
        else if (sends)
          requests.push_back(communicator.send(
              Stream::Step, rank.peer(copy.stage), place, bytes));
        else
          requests.push_back(communicator.receive(
              Stream::Step, rank.peer(owner), place, bytes));
      }
}

} // namespace rota
