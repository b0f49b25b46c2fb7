// SPDX-License-Identifier: Apache-2.0
//
// Random priorities that change at random moments show one missing dependency
// with a probability of about 1 / streams, however many operations the streams
// have (Burckhardt et al., ASPLOS 2010: "A randomized scheduler with
// probabilistic guarantees of finding bugs").
#include "runtime/device/simt/Dispatcher.h"
#include "runtime/threads/StartThread.h"

#include <algorithm>
#include <exception>
#include <optional>

namespace rota::simt {

/// The longest rest of a stream while no thread waits.
static constexpr auto kRest = std::chrono::microseconds(300);
/// A stream keeps its priority for 1, 2, 4, .. 2^(kTurnBits - 1) operations.
static constexpr unsigned kTurnBits = 8;

Dispatcher::Dispatcher(uint64_t seed, StreamOrder &order)
    : order(order), random(seed),
      thread(startThread({"the emulated GPU"}, [this] { run(); })) {}

Dispatcher::~Dispatcher() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  workComes.notify_one();
  thread.join();
}

std::shared_ptr<StreamQueue> Dispatcher::open(std::string name) {
  auto queue = std::make_shared<StreamQueue>();
  std::lock_guard lock(mutex);
  queue->lane = order.makeLane(std::move(name));
  queues.push_back(queue);
  return queue;
}

void Dispatcher::close(StreamQueue &queue) {
  queue.closed = true;
  workComes.notify_one();
}

bool Dispatcher::push(StreamQueue &queue, StreamOperation operation) {
  if (failed)
    return false;
  if (queue.operations.empty())
    queue.restsSince = DispatchClock::now();
  if (queue.host != host)
    operation.host = queue.host = host;
  queue.operations.push_back(std::move(operation));
  ++queue.asked;
  workComes.notify_one();
  return true;
}

bool Dispatcher::wait(std::unique_lock<std::mutex> &lock,
                      const std::function<bool()> &condition) {
  if (failed || condition())
    return !failed;
  Waiter self{condition};
  waiters.push_back(&self);
  workComes.notify_one();
  progress.wait(lock, [&] { return failed || self.isMet; });
  std::erase(waiters, &self);
  return !failed;
}

bool Dispatcher::drain() {
  std::unique_lock lock(mutex);
  std::vector<std::pair<std::shared_ptr<StreamQueue>, uint64_t>> ends;
  for (const std::shared_ptr<StreamQueue> &queue : queues)
    ends.emplace_back(queue, queue->asked);
  bool succeeded = wait(lock, [&] {
    return std::all_of(ends.begin(), ends.end(), [](const auto &end) {
      return end.first->done >= end.second;
    });
  });
  for (const auto &[queue, end] : ends)
    hostWaited(order.now(queue->lane));
  return succeeded;
}

bool Dispatcher::hasFailed() {
  std::lock_guard lock(mutex);
  return failed;
}

const char *Dispatcher::failureReport() {
  std::lock_guard lock(mutex);
  return failed ? report.c_str() : "";
}

void Dispatcher::draw(StreamQueue &queue) {
  queue.priority = random();
  queue.turns = 1u << random() % kTurnBits;
  queue.rests = random() % 2;
  queue.restsSince = DispatchClock::now();
}

/// The stream of the highest priority that can go on and does not rest; null
/// if there is none, with the time when the first rest ends.
StreamQueue *Dispatcher::choose() {
  std::erase_if(queues, [](const std::shared_ptr<StreamQueue> &queue) {
    return queue->closed && queue->operations.empty();
  });
  restEnds = DispatchClock::time_point::max();
  StreamQueue *best = nullptr;
  for (const std::shared_ptr<StreamQueue> &queue : queues) {
    if (queue->operations.empty())
      continue;
    const StreamOperation &next = queue->operations.front();
    if (next.after && !next.after->done)
      continue;
    if (next.isReady && !next.isReady()) {
      restEnds = std::min(restEnds, DispatchClock::now() + kRest);
      continue; // nothing tells when that changes
    }
    if (queue->turns == 0)
      draw(*queue);
    auto end = queue->restsSince + kRest;
    if (queue->rests && waiters.empty() && DispatchClock::now() < end)
      restEnds = std::min(restEnds, end);
    else if (!best || queue->priority > best->priority)
      best = queue.get();
  }
  return best;
}

static std::optional<std::string> runWork(const Run &run,
                                          const OrderedOperation &operation) {
  try {
    run(operation);
  } catch (const std::exception &error) {
    return error.what();
  }
  return std::nullopt;
}

void Dispatcher::run() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    StreamQueue *chosen = choose();
    if (!chosen) {
      if (restEnds == DispatchClock::time_point::max())
        workComes.wait(lock);
      else
        workComes.wait_until(lock, restEnds);
      continue;
    }
    // Only this thread takes queues away, so `chosen` stays.
    StreamOperation operation = std::move(chosen->operations.front());
    chosen->operations.pop_front();
    --chosen->turns;
    Lane &lane = operation.enter ? operation.enter() : chosen->lane;
    lane.before = join(lane.before, operation.host);
    if (operation.after)
      lane.before = join(lane.before, operation.after->clock);
    if (operation.run) {
      OrderedOperation running = order.begin(lane);
      lock.unlock();
      std::optional<std::string> wrong = runWork(operation.run, running);
      lock.lock();
      order.finish(running);
      if (wrong)
        fail(std::move(*wrong));
    }
    if (!failed)
      finish(*chosen, operation);
  }
}

void Dispatcher::finish(StreamQueue &queue, const StreamOperation &operation) {
  ++queue.done;
  if (operation.leave)
    operation.leave(queue.lane);
  if (operation.completes) {
    operation.completes->clock = order.now(queue.lane);
    operation.completes->time = DispatchClock::now();
    operation.completes->done = true;
  }
  bool wakes = false;
  for (Waiter *waiter : waiters)
    if (!waiter->isMet && waiter->condition())
      wakes = waiter->isMet = true;
  if (wakes)
    progress.notify_all();
}

void Dispatcher::fail(std::string text) {
  if (failed)
    return;
  failed = true;
  report = std::move(text);
  for (const std::shared_ptr<StreamQueue> &queue : queues)
    queue->operations.clear();
  progress.notify_all();
}

} // namespace rota::simt
