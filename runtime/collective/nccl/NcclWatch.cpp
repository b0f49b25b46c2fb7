// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl/NcclWatch.h"
#include "runtime/Error.h"

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

static double secondsNow() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

NcclWatch::NcclWatch(const NcclApi &nccl, const cuda::Gpu &gpu, int rank,
                     double patience)
    : nccl(nccl), gpu(gpu), rank(rank), patience(patience),
      lastEnd(secondsNow()), thread([this] { run(); }) {}

NcclWatch::~NcclWatch() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  wake.notify_one();
  thread.join();
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

void NcclWatch::fail(const std::string &message) {
  {
    std::lock_guard lock(mutex);
    if (failed)
      return;
    failure = message.empty() ? "the run failed" : message;
    failed = true;
  }
  if (!isConnected && std::this_thread::get_id() == thread.get_id()) {
    fmt::print(stderr, "error: {}\n", message);
    std::_Exit(kExitRunFailed);
  }
  std::unique_lock held(calls, kLeave);
  for (NcclHandle handle : std::exchange(handles, {}))
    nccl.abort(handle);
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
}

std::string NcclWatch::getPosition() {
  std::lock_guard lock(mutex);
  return position;
}

std::string NcclWatch::where() {
  return fmt::format("rank {}: {}", rank, getPosition());
}

} // namespace rota
