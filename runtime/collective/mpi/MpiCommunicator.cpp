// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "runtime/Error.h"
#include "runtime/collective/local/LocalNetwork.h"
#include "runtime/collective/mpi/Progress.h"

#include <mutex>
#include <optional>
#include <unordered_map>

namespace rota {

namespace {

/// Requests of the process's own copies, which need no MPI, are negative.
class MpiCommunicator : public Communicator {
public:
  explicit MpiCommunicator(std::function<std::string()> advice)
      : progress(std::move(advice)) {
    try {
      inProcess.emplace(1);
    } catch (const RunError &error) {
      progress.fail(error.what());
      throw;
    }
  }

  int rank() const override { return progress.rank(); }
  int size() const override { return progress.size(); }

  Request start(Stream stream, const Collective &collective,
                const RankGroup &group, const void *source,
                void *destination) override {
    if (group.ranks.size() == 1)
      return -inProcess->at(0).start(stream, collective, {{0}, 0, group.sizes},
                                     source, destination);
    ProgressThread::Key key = {int(Kind::Collective), int(stream)};
    key.insert(key.end(), group.ranks.begin(), group.ranks.end());
    return submit(stream, key,
                  Operation(collective, group, source, destination));
  }

  Request send(Stream stream, int peer, const void *source,
               int64_t bytes) override {
    return submit(stream, {int(Kind::Message), int(stream), rank(), peer},
                  Operation(peer, source, nullptr, bytes));
  }
  Request receive(Stream stream, int peer, void *destination,
                  int64_t bytes) override {
    return submit(stream, {int(Kind::Message), int(stream), peer, rank()},
                  Operation(peer, nullptr, destination, bytes));
  }
  Request copy(const void *source, void *destination, int64_t bytes) override {
    return -inProcess->at(0).copy(source, destination, bytes);
  }

  TransferTime wait(Request request) override {
    if (request < 0)
      return inProcess->at(0).wait(-request);
    std::shared_ptr<ProgressThread::Transfer> transfer = find(request);
    if (!transfer)
      return {};
    try {
      progress.wait(*transfer);
    } catch (const RunError &error) {
      inProcess->at(0).fail(error.what()); // ends copies before memory is freed
      throw;
    }
    std::lock_guard lock(mutex);
    transfers.erase(request);
    return transfer->operation.span;
  }
  bool isDone(Request request) override {
    if (request < 0)
      return inProcess->at(0).isDone(-request);
    std::shared_ptr<ProgressThread::Transfer> transfer = find(request);
    return !transfer || progress.isComplete(*transfer);
  }

  double now() const override { return progress.now(); }
  void setPosition(const std::string &position) override {
    progress.setPosition(position);
  }
  void fail(const std::string &message) override {
    inProcess->at(0).fail(message); // ends copies before memory is freed
    progress.fail(message);
  }

private:
  enum class Kind { Message, Collective };
  Request submit(Stream stream, ProgressThread::Key key, Operation operation) {
    auto transfer =
        progress.submit(stream, std::move(key), std::move(operation));
    std::lock_guard lock(mutex);
    transfers[++lastRequest] = std::move(transfer);
    return lastRequest;
  }
  /// Null where the request has been waited for.
  std::shared_ptr<ProgressThread::Transfer> find(Request request) {
    std::lock_guard lock(mutex);
    auto found = transfers.find(request);
    return found == transfers.end() ? nullptr : found->second;
  }

  ProgressThread progress; // first: it blocks a signal for all threads after it
  std::optional<LocalNetwork> inProcess;
  std::mutex mutex; // guards the transfers
  std::unordered_map<Request, std::shared_ptr<ProgressThread::Transfer>>
      transfers;
  Request lastRequest = 0;
};

} // namespace

std::unique_ptr<Communicator>
makeMpiCommunicator(std::function<std::string()> advice) {
  return std::make_unique<MpiCommunicator>(std::move(advice));
}

} // namespace rota
