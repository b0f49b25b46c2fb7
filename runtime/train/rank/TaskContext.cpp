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

void TaskContext::waitInTask(int64_t started) {
  unlessFailed([&] {
    Communicator &communicator = rank.communicator();
    bool isAsynchronous = rank.device().isAsynchronous();
    double from = communicator.now();
    std::optional<CoreLeave> leave;
    if (isAsynchronous || !communicator.isDone(started))
      leave.emplace(rank.cores());
    TransferTime span = communicator.wait(started);
    if (!isAsynchronous)
      seconds += exposedSeconds(span, from);
  });
}

/// Only tasks on the CPU call this: compiling for GPUs refuses these ops.
void TaskContext::exchangeRows(int collective, const RotaRowExchange &form,
                               const void *source, const int32_t *sent,
                               const int32_t *received, void *destination) {
  unlessFailed([&] {
    Communicator &communicator = rank.communicator();
    RowExchange exchange(form, rank.group(collective), sent, received);
    std::vector<Request> requests =
        exchange.start(communicator, stream, source, destination);
    parallelPieces(&own, exchange.blocks(), [&](int64_t block) {
      exchange.clearBlock(block, destination);
    });
    CoreLeave leave(rank.cores());
    double from = communicator.now();
    for (Request request : requests) {
      TransferTime span = communicator.wait(request);
      seconds += exposedSeconds(span, from);
      from = std::max(from, span.end);
    }
  });
}

} // namespace rota
