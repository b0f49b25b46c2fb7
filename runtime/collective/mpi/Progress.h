// SPDX-License-Identifier: Apache-2.0
//
// The thread of a process that makes all calls of MPI. It takes over the
// transfers that the rank starts, advances them until they are complete, and
// watches the other ranks. While transfers are under way it yields, then sleeps
// for longer and longer times; a new transfer wakes it at once.
#ifndef ROTA_RUNTIME_COLLECTIVE_MPI_PROGRESS_H
#define ROTA_RUNTIME_COLLECTIVE_MPI_PROGRESS_H

#include "runtime/collective/mpi/Heartbeat.h"
#include "runtime/collective/mpi/Operation.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace rota {

class ProgressThread {
public:
  /// Starts MPI; returns when all ranks have. Errors and `advice` are those of
  /// makeMpiCommunicator.
  explicit ProgressThread(std::function<std::string()> advice);
  /// Waits for all ranks and ends MPI, unless the run has failed.
  ~ProgressThread();

  int rank() const { return ownRank; }
  int size() const { return ranks; }
  /// Seconds since all ranks had started.
  double now() const;

  /// Transfers with equal keys match, between ranks, in the order in which they
  /// are submitted. All ranks that take part use an equal key.
  using Key = std::vector<int>;

  /// A transfer that was started.
  struct Transfer {
    Operation operation;
    Key key;
    int tag = 0;
    bool isComplete = false;
  };
  std::shared_ptr<Transfer> submit(Stream stream, Key key, Operation operation);
  /// Throws RunError when the run has failed.
  void wait(const Transfer &transfer);
  bool isComplete(const Transfer &transfer);

  void setPosition(const std::string &position);
  /// Returns when the thread no longer uses tensors.
  void fail(const std::string &message);

private:
  using Lock = std::unique_lock<std::mutex>;
  struct Posted {
    std::shared_ptr<Transfer> transfer;
    Piece piece;
  };

  // Members that only the thread uses.
  void run();
  void begin();
  void serve();
  bool admit();
  bool advance();
  bool post(const std::shared_ptr<Transfer> &transfer);
  bool test();
  void finish(Posted posted, const MPI_Status &status);
  void retire();
  void watch();
  void idle(bool moved);
  bool tellFailure();
  void awaitLeave();
  void end();
  void check(int code, const char *what);
  [[noreturn]] void abort(const std::string &message);
  std::string where();
  /// With the mutex locked. Only the first failure counts.
  void setFailure(const std::string &message);

  const std::function<std::string()> advice;
  std::unique_ptr<MpiLibrary> mpi;
  std::unique_ptr<Heartbeat> heart;
  int ownRank = 0, ranks = 1;
  int64_t tags = 0; // number of tags for transfers
  std::chrono::steady_clock::time_point origin;
  double lastWatch = 0.0, lastMove = 0.0;
  // Transfers that are not complete, by key, in order.
  std::map<Key, std::deque<std::shared_ptr<Transfer>>> active;
  // Messages under way, one request each.
  std::vector<MPI_Request> requests;
  std::vector<Posted> posted;
  std::vector<MPI_Status> statuses;
  std::vector<int> indices;
  std::vector<char> failureText; // that another rank may send
  MPI_Request failureRequest;

  // Shared with the rank's threads.
  std::mutex mutex;
  std::condition_variable wakeThread, wakeWaiter;
  std::vector<std::shared_ptr<Transfer>> submitted;
  std::map<Key, int64_t> sequence;
  int waiters = 0;
  std::string position = "start";
  std::string failure; // the run has failed
  bool failedHere = false;
  bool isQuiet = false; // failed, and tensors are no longer used
  bool started = false, leaving = false;
  std::string startFailure;

  sigset_t formerSignals; // signals of the thread that made this
  std::thread thread;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_MPI_PROGRESS_H
