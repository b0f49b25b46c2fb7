// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/rank/TaskContext.h"
#include "runtime/collective/RowExchange.h"
#include "runtime/train/rank/Rank.h"

#include <optional>

namespace rota {

/// Keeps what `body` throws. The rest of a task then runs without its
/// collectives; the executor drops its results.
template <typename F> void TaskContext::unlessFailed(F body) {
  if (failure)
    return;
  try {
    body();
  } catch (const std::exception &error) {
    failure = std::current_exception();
    reportFailure(&own, error.what());
  }
}

int64_t TaskContext::startInTask(int collective, const void *source,
                                 void *destination) {
  Request request = 0;
  unlessFailed(
      [&] { request = rank.start(stream, collective, source, destination); });
  return request;
}

/// Only tasks on the CPU call this: compiling for GPUs refuses these ops.
int64_t TaskContext::startRowExchange(int collective,
                                      const RotaRowExchange &form,
                                      const void *source, const int32_t *sent,
                                      const int32_t *received,
                                      void *destination) {
  int64_t number = --lastExchange;
  unlessFailed([&] {
    RowExchange exchange(form, rank.group(collective), sent, received);
    exchanges[number] =
        exchange.start(rank.communicator(), stream, source, destination);
    parallelPieces(&own, exchange.blocks(), [&](int64_t block) {
      exchange.clearBlock(block, destination);
    });
  });
  return number;
}

/// The transfers of what was started as `started`.
std::vector<Request> TaskContext::takeRequests(int64_t started) {
  if (started >= 0)
    return {started};
  auto taken = exchanges.extract(started);
  return taken ? std::move(taken.mapped()) : std::vector<Request>();
}

void TaskContext::waitInTask(int64_t started) {
  unlessFailed([&] {
    Communicator &communicator = rank.communicator();
    bool isAsynchronous = rank.device().isAsynchronous();
    double from = communicator.now();
    std::optional<CoreLeave> leave;
    for (Request request : takeRequests(started)) {
      bool mayWait = isAsynchronous || !communicator.isDone(request);
      if (!leave && mayWait)
        leave.emplace(rank.cores());
      else if (mayWait)
        leave->release(); // an earlier wait may have got the core
      TransferTime span = leave ? communicator.waitForTurn(request, *leave)
                                : communicator.wait(request);
      if (isAsynchronous)
        continue;
      seconds += exposedSeconds(span, from);
      from = std::max(from, span.end);
    }
  });
}

} // namespace rota
