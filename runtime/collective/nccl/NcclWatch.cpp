// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl/NcclWatch.h"
#include "runtime/Error.h"
#include "runtime/threads/StartThread.h"

#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <utility>

namespace rota {

using namespace std::chrono_literals;

static constexpr auto kPeriod = 100ms;
/// The time for the rank's thread to leave a call of NCCL. After it, the call
/// itself waits for another rank, and the abort ends it.
static constexpr auto kLeave = 2s;
/// The time for aborts to return, before the process ends without them.
static constexpr auto kAbort = 10s;

static double secondsNow() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

NcclWatch::NcclWatch(const NcclApi &nccl, const cuda::CudaDevice &device,
                     int rank, double patience)
    : nccl(nccl), device(device), gpu(device.gpu()), rank(rank),
      patience(patience), lastEnd(secondsNow()),
      thread(startThread({"watching NCCL"}, [this] { run(); })) {}

NcclWatch::~NcclWatch() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  wake.notify_one();
  thread.join();
  if (!handles.empty())
    fail(fmt::format("{}: left the run before all were connected", where()));
  awaitAborts();
}

void NcclWatch::run() {
  gpu.use();
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, kPeriod, [&] { return stopping; })) {
    lock.unlock();
    if (!failed)
      look();
    lock.lock();
  }
}

void NcclWatch::look() {
  try {
    if (std::unique_lock held(calls, kPeriod); held) {
      retire();
      checkErrors();
    }
    notePosition();
    checkProgress();
  } catch (const RunError &error) {
    fail(fmt::format("{}: {}", where(), error.what()));
  }
}

/// Drops the transfers that have ended.
void NcclWatch::retire() {
  size_t before = underWay.size();
  std::erase_if(underWay, [&](const std::shared_ptr<NcclTransfer> &transfer) {
    cuda::Result result = gpu.api().queryEvent(transfer->end.get());
    if (result != cuda::kNotReady)
      gpu.check(result, transfer->what.c_str());
    return result == cuda::kSuccess;
  });
  if (isConnected && (underWay.empty() || underWay.size() != before))
    lastEnd = secondsNow();
}

/// A recorded step has one event at its end, but its actions tell their
/// numbers.
void NcclWatch::notePosition() {
  if (std::exchange(lastPosition, device.position()) != lastPosition)
    lastEnd = secondsNow();
}

void NcclWatch::checkErrors() {
  for (NcclHandle handle : handles) {
    NcclResult error = kNcclSuccess;
    nccl.check(nccl.asyncError(handle, &error), "state of a communicator");
    nccl.check(error, "another rank, or the way to it, has failed");
  }
}

void NcclWatch::checkProgress() {
  if (secondsNow() - lastEnd <= patience)
    return;
  std::string oldest = "connecting the ranks";
  if (std::unique_lock held(calls, kPeriod); held && !underWay.empty())
    oldest = underWay.front()->what;
  throw RunError(fmt::format(
      "no transfer has ended in {:g} seconds; the oldest under way: {}",
      patience, oldest));
}

/// Where no call ends the waiting of NCCL's kernels or of its host code.
[[noreturn]] static void endProcess(const std::string &message) {
  fmt::print(stderr, "error: {}\n", message);
  std::_Exit(kExitRunFailed);
}

void NcclWatch::fail(const std::string &message) {
  {
    std::lock_guard lock(mutex);
    if (failed)
      return;
    failure = message.empty() ? "the run failed" : message;
    failed = true;
  }
  if (!isConnected && std::this_thread::get_id() == thread.get_id())
    endProcess(message);
  std::unique_lock held(calls, kLeave);
  std::vector<NcclHandle> open = std::exchange(handles, {});
  {
    std::lock_guard lock(aborts->mutex);
    aborts->open = open.size();
  }
  // All at once: each first ends its kernels and then waits for the graphs,
  // which the rank destroys only when the kernels of all of them have ended.
  try {
    for (NcclHandle handle : open)
      startThread({"ending a communicator of NCCL"}, [&nccl = nccl,
                                                      aborts = aborts, handle] {
        nccl.abort(handle);
        std::lock_guard lock(aborts->mutex);
        --aborts->open;
        aborts->ended.notify_all();
      }).detach();
  } catch (const RunError &refusal) {
    endProcess(fmt::format("{}\n{}", message, refusal.what()));
  }
}

void NcclWatch::awaitAborts() {
  if (std::exchange(awaited, true))
    return;
  std::unique_lock lock(aborts->mutex);
  aborts->ended.wait_for(lock, kAbort, [&] { return aborts->open == 0; });
}

void NcclWatch::rethrow() {
  if (!failed)
    return;
  std::lock_guard lock(mutex);
  throw RunError(failure);
}

void NcclWatch::setPosition(const std::string &text) {
  std::lock_guard lock(mutex);
  position = text;
  reached = nullptr;
}

void NcclWatch::follow(std::function<std::string()> function) {
  std::lock_guard lock(mutex);
  reached = std::move(function);
}

std::string NcclWatch::getPosition() {
  std::lock_guard lock(mutex);
  std::string text = reached ? reached() : "";
  return text.empty() ? position : text;
}

std::string NcclWatch::where() {
  return fmt::format("rank {}: {}", rank, getPosition());
}

} // namespace rota
