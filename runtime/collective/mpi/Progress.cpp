// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/mpi/Progress.h"
#include "runtime/Error.h"
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "runtime/threads/StartThread.h"
#include "runtime/trace/FlightRecorder.h"

#include <fmt/format.h>
#include <sched.h>

namespace rota {

namespace {

/// Tags of messages that belong to no transfer.
enum Tag : int { kHeartbeat, kFailure, kFirstTransfer };

/// Largest number of transfers of one key under way at once.
constexpr size_t kActive = 4;
constexpr double kYielding = 100e-6; // seconds
constexpr double kLongestNap = 0.5e-3,
                 kLongestSleep = 2e-3; // waited for, or not
constexpr double kWatchPeriod = 0.05;  // seconds
constexpr double kTellPatience = 1.0;  // until a failure is told
constexpr double kLeavePatience = 3.0; // until the process leaves after it
constexpr int kFailureBytes = 4096;

/// Equal where the key and the number are equal; else almost never. Transfers
/// of a stream whose tags are equal by chance are confused only if they go
/// between the same ranks and start in different orders there. Streams, which
/// two threads of a rank may serve, have tags of their own.
uint64_t mix(const ProgressThread::Key &key, int64_t number) {
  uint64_t hash = static_cast<uint64_t>(number);
  for (int part : key)
    hash = (hash ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15 +
           (hash >> 29);
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
  return hash ^ (hash >> 32);
}

} // namespace

ProgressThread::ProgressThread(std::function<std::string()> advice)
    : advice(std::move(advice)) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &formerSignals);
  try {
    thread = startThread({"MPI"}, [this] { run(); });
  } catch (const RunError &refusal) {
    pthread_sigmask(SIG_SETMASK, &formerSignals, nullptr);
    throw AloneError(refusal.what());
  }
  Lock lock(mutex);
  wakeWaiter.wait(lock, [&] { return started; });
  if (startFailure.empty())
    return;
  lock.unlock();
  thread.join();
  pthread_sigmask(SIG_SETMASK, &formerSignals, nullptr);
  throw RunError(startFailure);
}

ProgressThread::~ProgressThread() {
  if (std::uncaught_exceptions() > 0)
    fail(fmt::format("{}: left the run", where()));
  {
    Lock lock(mutex);
    leaving = true;
    wakeThread.notify_one();
  }
  thread.join();
  pthread_sigmask(SIG_SETMASK, &formerSignals, nullptr);
}

double ProgressThread::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                       origin)
      .count();
}

std::shared_ptr<ProgressThread::Transfer>
ProgressThread::submit(Stream stream, Key key, Operation operation) {
  Lock lock(mutex);
  int64_t number = sequence[key]++;
  uint64_t ofStream = static_cast<uint64_t>(tags) / kStreams;
  int tag = kFirstTransfer +
            static_cast<int>(static_cast<uint64_t>(stream) * ofStream +
                             mix(key, number) % ofStream);
  auto transfer = std::make_shared<Transfer>(
      Transfer{std::move(operation), std::move(key), tag});
  submitted.push_back(transfer);
  wakeThread.notify_one();
  return transfer;
}

void ProgressThread::wait(const Transfer &transfer) {
  Lock lock(mutex);
  if (!transfer.isComplete) {
    // The thread polls more often while the rank waits.
    if (++waiters == 1)
      wakeThread.notify_one();
    wakeWaiter.wait(lock, [&] { return transfer.isComplete || isQuiet; });
    --waiters;
  }
  if (!transfer.isComplete)
    throw RunError(failure);
}

bool ProgressThread::isComplete(const Transfer &transfer) {
  Lock lock(mutex);
  return transfer.isComplete || isQuiet;
}

void ProgressThread::setPosition(const std::string &text) {
  Lock lock(mutex);
  position = text;
}

void ProgressThread::fail(const std::string &message) {
  Lock lock(mutex);
  setFailure(message);
  wakeWaiter.wait(lock, [&] { return isQuiet; });
}

void ProgressThread::setFailure(const std::string &message) {
  if (!failure.empty())
    return;
  failure = message.empty() ? "the run failed" : message;
  failedHere = true;
  wakeThread.notify_one();
}

std::string ProgressThread::where() {
  Lock lock(mutex);
  return fmt::format("rank {}: {}", ownRank, position);
}

void ProgressThread::run() {
  try {
    begin();
  } catch (const RunError &error) {
    startFailure = error.what();
  }
  {
    Lock lock(mutex);
    started = true;
    wakeWaiter.notify_all();
  }
  if (startFailure.empty())
    serve();
}

void ProgressThread::begin() {
  mpi = std::make_unique<MpiLibrary>();
  int provided = 0, found = 0;
  if (mpi->initThread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided))
    throw RunError("MPI does not start");
  mpi->commSetErrhandler(mpi->world, mpi->errorsReturn);
  mpi->commRank(mpi->world, &ownRank);
  mpi->commSize(mpi->world, &ranks);
  void *bound = nullptr;
  mpi->commGetAttr(mpi->world, MPI_TAG_UB, static_cast<void *>(&bound), &found);
  tags = (found ? *static_cast<int *>(bound) : 32767) - kFirstTransfer;
  MPI_Request barrier;
  check(mpi->ibarrier(mpi->world, &barrier), "MPI_Ibarrier");
  for (int done = 0; !done; sched_yield())
    check(mpi->test(&barrier, &done, MPI_STATUS_IGNORE), "MPI_Test");
  origin = std::chrono::steady_clock::now();
  heart = std::make_unique<Heartbeat>(*mpi, ownRank, ranks, kHeartbeat, 0.0);
  failureText.resize(kFailureBytes);
  check(mpi->irecv(failureText.data(), kFailureBytes, mpi->byte, MPI_ANY_SOURCE,
                   kFailure, mpi->world, &failureRequest),
        "MPI_Irecv");
}

void ProgressThread::serve() {
  while (true) {
    bool moved = admit();
    moved |= advance();
    moved |= test();
    watch();
    Lock lock(mutex);
    if (!failure.empty())
      break;
    if (leaving && submitted.empty() && active.empty()) {
      lock.unlock();
      return end();
    }
    lock.unlock();
    idle(moved);
  }
  if (!tellFailure())
    abort(failure);
  awaitLeave();
}

/// Takes over the transfers that the rank has started.
bool ProgressThread::admit() {
  std::vector<std::shared_ptr<Transfer>> fresh;
  {
    Lock lock(mutex);
    fresh.swap(submitted);
  }
  for (auto &transfer : fresh)
    active[transfer->key].push_back(transfer);
  return !fresh.empty();
}

/// Posts messages and does pieces of copies and sums; true when there were any.
bool ProgressThread::advance() {
  bool moved = false, completed = false;
  for (auto &[key, queue] : active) {
    for (size_t i = 0; i < std::min(queue.size(), kActive); ++i) {
      Operation &operation = queue[i]->operation;
      moved |= post(queue[i]);
      // One piece at a time, so that messages are posted in between.
      moved |= operation.work(i == 0);
      completed |= operation.isComplete();
    }
  }
  if (completed)
    retire();
  return moved || completed;
}

bool ProgressThread::post(const std::shared_ptr<Transfer> &transfer) {
  bool moved = false;
  while (std::optional<Piece> piece = transfer->operation.next()) {
    MPI_Request request;
    int bytes = static_cast<int>(piece->bytes);
    int code = piece->isSend
                   ? mpi->isend(piece->data, bytes, mpi->byte, piece->peer,
                                transfer->tag, mpi->world, &request)
                   : mpi->irecv(piece->data, bytes, mpi->byte, piece->peer,
                                transfer->tag, mpi->world, &request);
    check(code, piece->isSend ? "MPI_Isend" : "MPI_Irecv");
    requests.push_back(request);
    posted.push_back({transfer, std::move(*piece)});
    moved = true;
  }
  return moved;
}

bool ProgressThread::test() {
  int count = 0;
  statuses.resize(requests.size());
  indices.resize(requests.size());
  int code = mpi->testsome(static_cast<int>(requests.size()), requests.data(),
                           &count, indices.data(), statuses.data());
  if (code != MPI_ERR_IN_STATUS)
    check(code, "MPI_Testsome");
  if (count == MPI_UNDEFINED || count == 0)
    return false;
  for (int i = 0; i < count; ++i) {
    if (code == MPI_ERR_IN_STATUS)
      check(statuses[i].MPI_ERROR, "MPI_Testsome");
    finish(std::move(posted[indices[i]]), statuses[i]);
  }
  size_t kept = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] == mpi->requestNull)
      continue;
    requests[kept] = requests[i];
    if (kept != i)
      posted[kept] = std::move(posted[i]);
    ++kept;
  }
  requests.resize(kept);
  posted.resize(kept);
  return true;
}

void ProgressThread::finish(Posted done, const MPI_Status &status) {
  const Piece &piece = done.piece;
  if (!piece.isSend) {
    int bytes = 0;
    mpi->getCount(&status, mpi->byte, &bytes);
    if (bytes != piece.bytes) {
      std::string wrong = fmt::format(
          "{}: expected {} bytes from rank {} for {}, got {}", where(),
          piece.bytes, piece.peer, done.transfer->operation.describe(), bytes);
      Lock lock(mutex);
      return setFailure(wrong);
    }
  }
  Operation &operation = done.transfer->operation;
  if (operation.span.begin == 0.0)
    operation.span.begin = now();
  operation.finish(std::move(done.piece));
}

/// Removes complete transfers.
void ProgressThread::retire() {
  double end = now();
  Lock lock(mutex);
  for (auto entry = active.begin(); entry != active.end();) {
    auto &queue = entry->second;
    for (size_t i = 0; i < std::min(queue.size(), kActive);) {
      if (!queue[i]->operation.isComplete()) {
        ++i;
        continue;
      }
      TransferTime &span = queue[i]->operation.span;
      span.end = end;
      if (span.begin == 0.0) // no bytes
        span.begin = end;
      queue[i]->isComplete = true;
      queue.erase(queue.begin() + i);
    }
    entry = queue.empty() ? active.erase(entry) : std::next(entry);
  }
  if (waiters > 0)
    wakeWaiter.notify_all();
}

/// Checks the other ranks, and whether mpirun or the user ends this one.
void ProgressThread::watch() {
  double time = now();
  if (time - lastWatch < kWatchPeriod)
    return;
  lastWatch = time;
  std::string here;
  {
    Lock lock(mutex);
    here = position;
  }
  if (!heart->beat(time, here))
    abort(fmt::format("rank {} stopped: last heard {}; rank {} is at {}",
                      heart->before(), heart->lastHeard(), ownRank, here));
  int told = 0;
  check(mpi->test(&failureRequest, &told, MPI_STATUS_IGNORE), "MPI_Test");
  if (told) {
    Lock lock(mutex);
    if (failure.empty())
      failure = failureText.data();
  }
  sigset_t terminate;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  timespec none = {};
  if (sigtimedwait(&terminate, nullptr, &none) != SIGTERM)
    return;
  reportFlight(ownRank);
  std::fputs(fmt::format("rank {} was told to end at {}; rank {} was last "
                         "heard {}\n{}",
                         ownRank, here, heart->before(), heart->lastHeard(),
                         advice ? advice() : "")
                 .c_str(),
             stderr);
  // By default that ends the process; a training run ends after its step.
  pthread_sigmask(SIG_UNBLOCK, &terminate, nullptr);
  std::raise(SIGTERM);
  pthread_sigmask(SIG_BLOCK, &terminate, nullptr);
}

/// Yields for a moment, then sleeps for an eighth of the time that nothing has
/// moved: that lengthens no wait by more, and costs little while ranks compute.
void ProgressThread::idle(bool moved) {
  double time = now();
  if (moved)
    lastMove = time;
  double still = time - lastMove;
  Lock lock(mutex);
  if (moved || !submitted.empty() || !failure.empty())
    return;
  if (!requests.empty() && still < kYielding) {
    lock.unlock();
    sched_yield();
    return;
  }
  double nap = std::min(still / 8, waiters > 0 ? kLongestNap : kLongestSleep);
  wakeThread.wait_for(lock, std::chrono::duration<double>(
                                requests.empty() ? kWatchPeriod / 2 : nap));
}

/// Sends the failure to all ranks; true when all of them have it.
bool ProgressThread::tellFailure() {
  std::vector<MPI_Request> telling;
  std::string text; // must live until it is sent
  {
    Lock lock(mutex);
    text = failure.substr(0, kFailureBytes - 1);
  }
  for (int peer = 0; failedHere && peer < ranks; ++peer)
    if (peer != ownRank)
      mpi->isend(text.c_str(), static_cast<int>(text.size() + 1), mpi->byte,
                 peer, kFailure, mpi->world, &telling.emplace_back());
  double begin = now();
  for (MPI_Request &request : telling)
    for (int done = 0; !done; sched_yield()) {
      mpi->test(&request, &done, MPI_STATUS_IGNORE);
      if (now() - begin > kTellPatience)
        return false;
    }
  Lock lock(mutex);
  isQuiet = true;
  wakeWaiter.notify_all();
  return true;
}

void ProgressThread::awaitLeave() {
  Lock lock(mutex);
  bool left =
      wakeThread.wait_for(lock, std::chrono::duration<double>(kLeavePatience),
                          [&] { return leaving; });
  lock.unlock();
  if (!left)
    abort(failure);
}

/// All ranks leave together.
void ProgressThread::end() {
  MPI_Request barrier;
  check(mpi->ibarrier(mpi->world, &barrier), "MPI_Ibarrier");
  setPosition("end");
  for (int done = 0; !done;) {
    check(mpi->test(&barrier, &done, MPI_STATUS_IGNORE), "MPI_Test");
    watch();
    Lock lock(mutex);
    if (!done)
      wakeThread.wait_for(lock, std::chrono::milliseconds(1));
    if (!failure.empty()) {
      lock.unlock();
      abort(failure);
    }
  }
  heart->stop();
  mpi->cancel(&failureRequest);
  mpi->requestFree(&failureRequest);
  mpi->finalize();
}

void ProgressThread::check(int code, const char *what) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  mpi->errorString(code, text, &length);
  abort(fmt::format("{}: {}: {}", where(), what, text));
}

void ProgressThread::abort(const std::string &message) {
  reportFlight(ownRank);
  std::string text = message + "\n" + (advice ? advice() : "");
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  mpi->abort(mpi->world, kExitRunFailed);
  std::_Exit(kExitRunFailed);
}

} // namespace rota
