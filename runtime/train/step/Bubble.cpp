// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Bubble.h"
#include "runtime/Error.h"
#include "runtime/program/Part.h"
#include "runtime/program/Verify.h"
#include "runtime/train/step/Gather.h"

#include <utility>

namespace rota {

double measuredBubble(const Program &program,
                      const std::vector<std::vector<double>> &seconds,
                      bool hasBarrier) {
  Clock clock;
  std::string error;
  double step = 0.0;
  auto source = ActionSeconds::Measured;
  bool ends = hasBarrier
                  ? runClock(program, seconds, source, clock, error)
                  : runSteadyClock(program, seconds, source, step, error);
  if (!ends)
    throw RunError(error);
  if (hasBarrier)
    step = clock.makespan;
  double busy = 0.0;
  for (const auto &row : seconds)
    for (double value : row)
      busy += value;
  if (step <= 0.0)
    return 0.0;
  return 1.0 - busy / (step * static_cast<double>(seconds.size()));
}

BubbleGather::BubbleGather(Rank &rank, bool hasBarrier)
    : rank(rank), hasBarrier(hasBarrier), rows(std::make_shared<Rows>()) {
  rank.keep(rows);
}

void BubbleGather::start(std::vector<double> seconds) {
  Rows &all = *rows;
  open = true;
  all.assign(1, std::move(seconds));
  Communicator &host = rank.host();
  auto bytes = [](const std::vector<double> &numbers) {
    return static_cast<int64_t>(8 * numbers.size());
  };
  auto *first = reinterpret_cast<const char *>(all[0].data());
  if (rank.number() != 0)
    return forEachPiece(bytes(all[0]), [&](int64_t at, int64_t count) {
      requests.push_back(host.send(Stream::Step, 0, first + at, count));
    });
  const Program &program = rank.program();
  auto axis = static_cast<size_t>(stageAxis(program.mesh));
  for (int r = 1; r < static_cast<int>(rank.everyone().ranks.size()); ++r) {
    auto stage = static_cast<size_t>(coordinatesOf(program.mesh, r)[axis]);
    std::vector<double> &other =
        all.emplace_back(program.stages[stage].actions.size());
    auto *place = reinterpret_cast<char *>(other.data());
    forEachPiece(bytes(other), [&](int64_t at, int64_t count) {
      requests.push_back(host.receive(Stream::Step, r, place + at, count));
    });
  }
}

double BubbleGather::finish() {
  for (Request request : std::exchange(requests, {}))
    rank.host().wait(request);
  open = false;
  return rank.number() == 0 ? share() : 0.0;
}

double BubbleGather::share() const {
  const Rows &all = *rows;
  // One pipeline for each set of other coordinates: those of its first stage.
  const Program &program = rank.program();
  auto axis = static_cast<size_t>(stageAxis(program.mesh));
  double sum = 0.0;
  int64_t pipelines = 0;
  for (size_t first = 0; first < all.size(); ++first) {
    std::vector<int64_t> at =
        coordinatesOf(program.mesh, static_cast<int>(first));
    if (at[axis] != 0)
      continue;
    Rows stages;
    for (size_t s = 0; s < program.stages.size(); ++s) {
      at[axis] = static_cast<int64_t>(s);
      stages.push_back(all[static_cast<size_t>(rankOf(program.mesh, at))]);
    }
    sum += measuredBubble(program, stages, hasBarrier);
    ++pipelines;
  }
  return sum / static_cast<double>(pipelines);
}

} // namespace rota
