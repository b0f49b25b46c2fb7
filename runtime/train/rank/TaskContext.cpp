// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/rank/TaskContext.h"
#include "runtime/collective/RowExchange.h"
#include "runtime/train/rank/Rank.h"

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
    double begin = communicator.now();
    if (!rank.device().isAsynchronous() && communicator.isDone(started)) {
      communicator.wait(started);
    } else {
      CoreLeave leave(rank.cores());
      communicator.wait(started);
    }
    if (!rank.device().isAsynchronous())
      seconds += communicator.now() - begin;
  });
}

/// Only tasks on the CPU call this: compiling for GPUs refuses these ops.
void TaskContext::exchangeRows(int collective, const RotaRowExchange &form,
                               const void *source, const int32_t *sent,
                               const int32_t *received, void *destination) {
  unlessFailed([&] {
    Communicator &communicator = rank.communicator();
    double begin = communicator.now();
    RowExchange exchange(form, rank.group(collective), sent, received);
    std::vector<Request> requests =
        exchange.start(communicator, stream, source, destination);
    parallelPieces(&own, exchange.blocks(), [&](int64_t block) {
      exchange.clearBlock(block, destination);
    });
    CoreLeave leave(rank.cores());
    for (Request request : requests)
      communicator.wait(request);
    seconds += communicator.now() - begin;
  });
}

} // namespace rota
