// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gpu/SharedGpuNetwork.h"
#include "runtime/Error.h"
#include "runtime/collective/NetworkEnd.h"
#include "runtime/collective/gpu/EventPool.h"
#include "runtime/collective/gpu/TransferWork.h"

#include <chrono>
#include <condition_variable>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace rota {

namespace {

using Event = EventPool::Event;

/// A transfer whose members arrive one after the other.
struct OpenTransfer {
  explicit OpenTransfer(const Exchange &exchange)
      : exchange(exchange), members(exchange.size()) {}

  const Exchange exchange;
  std::vector<MemberBuffers> members;
  std::vector<Event> arrivals; // in the order in which members came
  Event begin, complete;       // `begin` only where times are measured

  bool isEnqueued() const { return complete != nullptr; }
};

} // namespace

/// Matches the transfers that ranks start. One lock guards everything; nobody
/// waits for the GPU under it.
class SharedGpuNetwork::Switch {
public:
  Switch(std::vector<cuda::CudaDevice *> devices, bool timing);
  ~Switch();

  Request start(int rank, const Exchange &exchange, int index,
                const void *source, void *destination);
  Request copy(int rank, const void *source, void *destination, int64_t bytes);
  TransferTime wait(int rank, Request request);
  bool isDone(int rank, Request request);
  void setPosition(int rank, const std::string &position);
  void fail(const std::string &message);
  void beginRecording(int rank);
  std::shared_ptr<Recording> endRecording(int rank);
  void replay(int rank, Recording &recording);
  double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         origin)
        .count();
  }
  int size() const { return static_cast<int>(ranks.size()); }

private:
  using Lock = std::unique_lock<std::mutex>;
  using StreamPointer = std::unique_ptr<cuda::OwnedStream>;
  struct Rank {
    cuda::CudaDevice *device;
    std::vector<StreamPointer> streams; // by Stream
    StreamPointer copies;
    std::condition_variable wake;
    std::unordered_map<Request, std::shared_ptr<OpenTransfer>> requests;
    Request lastRequest = 0;
    std::string position = "start";
  };

  template <typename Body> auto attempt(int rank, Body &&body);
  void arrive(int rank, OpenTransfer &transfer, int index,
              MemberBuffers buffers);
  void enqueue(OpenTransfer &transfer, cuda::StreamHandle stream);
  TransferTime timeOf(const OpenTransfer &transfer);
  void barrier(int rank, const std::function<void()> &body);
  void fork();
  void join();
  void setFailure(const std::string &message);
  void idle();

  const std::chrono::steady_clock::time_point origin =
      std::chrono::steady_clock::now();
  cuda::Gpu &gpu;
  const bool timing;
  EventPool events;
  TransferWork work;
  std::mutex mutex;
  std::vector<Rank> ranks;
  std::map<SequenceKey, Sequence<OpenTransfer>> sequences;
  bool failed = false;
  std::string failure;
  // The barrier of all ranks: ranks that have come to the next one.
  int arrived = 0;
  int64_t barriers = 0; // passed so far
  bool records = false; // the ranks' streams capture a graph
  std::shared_ptr<Recording> recorded;
  // The origin of measured times: an event, and when it was on our clock.
  Event clockEvent;
  double clockSeconds = 0.0;
};

SharedGpuNetwork::Switch::Switch(std::vector<cuda::CudaDevice *> devices,
                                 bool timing)
    : gpu(devices[0]->gpu()), timing(timing), events(gpu, timing),
      work(*devices[0], static_cast<int>(devices.size())),
      ranks(devices.size()) {
  for (size_t r = 0; r < devices.size(); ++r) {
    ranks[r].device = devices[r];
    ranks[r].copies = std::make_unique<cuda::OwnedStream>(gpu);
    for (int stream = 0; stream < kStreams; ++stream)
      ranks[r].streams.push_back(std::make_unique<cuda::OwnedStream>(gpu));
  }
  if (!timing)
    return;
  clockEvent = events.record(ranks[0].copies->get());
  gpu.check(gpu.api().synchronizeEvent(clockEvent->get()), "the first event");
  clockSeconds = now();
}

SharedGpuNetwork::Switch::~Switch() { idle(); }

/// Runs body(lock) under the lock. An error that it throws is the failure of
/// the run, unless there was one already; that one is thrown.
template <typename Body>
auto SharedGpuNetwork::Switch::attempt(int rank, Body &&body) {
  try {
    gpu.use();
    Lock lock(mutex);
    try {
      if (failed)
        throw RunError(failure);
      return body(lock);
    } catch (const RunError &error) {
      setFailure(fmt::format("rank {}: {}: {}", rank, ranks[rank].position,
                             error.what()));
    }
  } catch (const RunError &error) {
    fail(error.what());
  }
  idle();
  throw RunError(failure);
}

Request SharedGpuNetwork::Switch::start(int rank, const Exchange &exchange,
                                        int index, const void *source,
                                        void *destination) {
  return attempt(rank, [&](Lock &) {
    Rank &own = ranks[rank];
    std::shared_ptr<OpenTransfer> &open =
        sequences[keyOf(exchange)].next(index, exchange.size());
    if (!open)
      open = std::make_shared<OpenTransfer>(exchange);
    else if (std::string wrong = open->exchange.disagreement(exchange);
             !wrong.empty())
      throw RunError(wrong);
    own.requests[++own.lastRequest] = open;
    arrive(rank, *own.requests[own.lastRequest], index, {source, destination});
    return own.lastRequest;
  });
}

void SharedGpuNetwork::Switch::arrive(int rank, OpenTransfer &transfer,
                                      int index, MemberBuffers buffers) {
  cuda::Gpu::CallLock held = gpu.oneAtATime();
  transfer.members[index] = buffers;
  transfer.arrivals.push_back(
      events.record(ranks[rank].device->computeStream()));
  const Exchange &exchange = transfer.exchange;
  if (transfer.arrivals.size() < exchange.size())
    return;
  const std::vector<int> &group = exchange.group.ranks;
  // All of a sequence in one CUDA stream, so that it runs in order.
  int place = exchange.isMessage ? group.back() : group.front();
  enqueue(transfer,
          ranks[place].streams[static_cast<int>(exchange.stream)]->get());
  sequences[keyOf(exchange)].removeFirst(); // members arrive in order
  for (int member : group)
    ranks[member].wake.notify_one();
}

/// Asks the stream for the transfer, after the arrivals of all members.
void SharedGpuNetwork::Switch::enqueue(OpenTransfer &transfer,
                                       cuda::StreamHandle stream) {
  for (const Event &arrival : transfer.arrivals)
    gpu.check(gpu.api().waitEvent(stream, arrival->get(), 0),
              "waiting for a rank");
  transfer.arrivals.clear();
  if (timing)
    transfer.begin = events.record(stream);
  work.enqueue(transfer.exchange, transfer.members, stream);
  transfer.complete = events.record(stream);
}

Request SharedGpuNetwork::Switch::copy(int rank, const void *source,
                                       void *destination, int64_t bytes) {
  return attempt(rank, [&](Lock &) {
    cuda::Gpu::CallLock held = gpu.oneAtATime();
    Rank &own = ranks[rank];
    auto transfer = std::make_shared<OpenTransfer>(
        Exchange(Stream::Weights, rank, rank, bytes));
    transfer->members[0] = {source, destination};
    transfer->arrivals.push_back(events.record(own.device->computeStream()));
    enqueue(*transfer, own.copies->get());
    own.requests[++own.lastRequest] = std::move(transfer);
    return own.lastRequest;
  });
}

TransferTime SharedGpuNetwork::Switch::wait(int rank, Request request) {
  std::shared_ptr<OpenTransfer> transfer;
  attempt(rank, [&](Lock &lock) {
    Rank &own = ranks[rank];
    auto found = own.requests.find(request);
    if (found == own.requests.end())
      return;
    own.wake.wait(lock, [&] { return failed || found->second->isEnqueued(); });
    if (failed)
      throw RunError(failure);
    transfer = std::move(found->second);
    own.requests.erase(found);
    cuda::Gpu::CallLock held = gpu.oneAtATime();
    gpu.check(gpu.api().waitEvent(own.device->computeStream(),
                                  transfer->complete->get(), 0),
              "waiting for a transfer");
  });
  if (!transfer || !timing)
    return {};
  cuda::Result result = gpu.api().synchronizeEvent(transfer->complete->get());
  return attempt(rank, [&](Lock &) {
    gpu.check(result, "a transfer");
    return timeOf(*transfer);
  });
}

TransferTime SharedGpuNetwork::Switch::timeOf(const OpenTransfer &transfer) {
  auto seconds = [&](const Event &from, const Event &to) {
    float milliseconds = 0.0f;
    gpu.check(gpu.api().elapsedTime(&milliseconds, from->get(), to->get()),
              "the time of a transfer");
    return static_cast<double>(milliseconds) / 1000;
  };
  double begin = clockSeconds + seconds(clockEvent, transfer.begin);
  return {begin, begin + seconds(transfer.begin, transfer.complete)};
}

bool SharedGpuNetwork::Switch::isDone(int rank, Request request) {
  return attempt(rank, [&](Lock &) {
    auto found = ranks[rank].requests.find(request);
    if (found == ranks[rank].requests.end())
      return true;
    const OpenTransfer &transfer = *found->second;
    return transfer.isEnqueued() && isComplete(gpu, *transfer.complete);
  });
}

void SharedGpuNetwork::Switch::setPosition(int rank,
                                           const std::string &position) {
  Lock lock(mutex);
  ranks[rank].position = position;
}

void SharedGpuNetwork::Switch::fail(const std::string &message) {
  {
    Lock lock(mutex);
    setFailure(message);
  }
  idle();
}

void SharedGpuNetwork::Switch::setFailure(const std::string &message) {
  if (failed)
    return;
  failed = true;
  failure = message;
  for (Rank &rank : ranks)
    rank.wake.notify_all();
}

/// Waits for all ranks. The last to come calls `body`, while no other rank asks
/// for anything.
void SharedGpuNetwork::Switch::barrier(int rank,
                                       const std::function<void()> &body) {
  attempt(rank, [&](Lock &lock) {
    int64_t barrier = barriers;
    if (++arrived < size()) {
      ranks[rank].wake.wait(lock,
                            [&] { return failed || barriers != barrier; });
      if (barriers == barrier)
        throw RunError(failure);
      return;
    }
    body();
    arrived = 0;
    ++barriers;
    for (Rank &each : ranks)
      each.wake.notify_all();
  });
}

/// Work that the ranks' compute streams are asked for from now on comes after
/// what rank 0's was asked for.
void SharedGpuNetwork::Switch::fork() {
  Event origin = events.record(ranks[0].device->computeStream());
  for (size_t r = 1; r < ranks.size(); ++r)
    gpu.check(
        gpu.api().waitEvent(ranks[r].device->computeStream(), origin->get(), 0),
        "waiting for rank 0");
}

/// Work that rank 0's compute stream is asked for from now on comes after what
/// those of all ranks were asked for.
void SharedGpuNetwork::Switch::join() {
  for (size_t r = 1; r < ranks.size(); ++r) {
    Event end = events.record(ranks[r].device->computeStream());
    gpu.check(
        gpu.api().waitEvent(ranks[0].device->computeStream(), end->get(), 0),
        "waiting for all ranks");
  }
}

/// All ranks capture one graph: a stream that waits for an event of a capture
/// joins the capture (CUDA C++ Programming Guide, "Cross-stream Dependencies
/// and Events"). So the compute streams join it here, the streams of transfers
/// when they wait for arrivals, and events between ranks become edges of the
/// graph. The guide also wants all of them to be joined to the first stream
/// before the capture ends: each transfer's end by its members' `wait`.
void SharedGpuNetwork::Switch::beginRecording(int rank) {
  barrier(rank, [&] {
    ranks[0].device->beginRecording();
    gpu.shareRecording(size() > 1);
    records = true;
    fork();
  });
}

std::shared_ptr<Recording> SharedGpuNetwork::Switch::endRecording(int rank) {
  barrier(rank, [&] {
    join();
    records = false;
    gpu.shareRecording(false);
    recorded = ranks[0].device->endRecording();
  });
  return recorded;
}

/// One launch for all ranks.
void SharedGpuNetwork::Switch::replay(int rank, Recording &recording) {
  barrier(rank, [&] {
    join();
    recording.run();
    fork();
  });
}

/// Waits until no transfer and no work of a rank reads or writes memory. A
/// driver that has failed does nothing any more.
void SharedGpuNetwork::Switch::idle() {
  {
    Lock lock(mutex);
    if (std::exchange(records, false)) {
      gpu.shareRecording(false);
      ranks[0].device->abandonRecording();
    }
  }
  gpu.enter();
  for (const Rank &each : ranks) {
    for (const StreamPointer &stream : each.streams)
      gpu.api().synchronizeStream(stream->get());
    gpu.api().synchronizeStream(each.copies->get());
    gpu.api().synchronizeStream(each.device->computeStream());
  }
}

namespace {
/// One rank's handle on the graph of all.
template <typename Switch> class SharedRecording : public Recording {
public:
  SharedRecording(Switch &network, int rank)
      : network(network), rank(rank), recording(network.endRecording(rank)) {}
  void run() override { network.replay(rank, *recording); }

private:
  Switch &network;
  const int rank;
  const std::shared_ptr<Recording> recording;
};
} // namespace

class SharedGpuNetwork::End : public NetworkEnd<Switch>, Recorder {
public:
  End(Switch &network, int rank, bool timing)
      : NetworkEnd(network, rank), timing(timing) {}
  /// Times are read on the host after each transfer.
  Recorder *recorder() override { return timing ? nullptr : this; }

private:
  void begin() override { network.beginRecording(rank()); }
  std::unique_ptr<Recording>
  end(const std::function<std::string()> &) override {
    return std::make_unique<SharedRecording<Switch>>(network, rank());
  }

  const bool timing;
};

SharedGpuNetwork::SharedGpuNetwork(std::vector<cuda::CudaDevice *> devices,
                                   bool timing)
    : network(std::make_unique<Switch>(devices, timing)) {
  for (int rank = 0; rank < network->size(); ++rank)
    ends.push_back(std::make_unique<End>(*network, rank, timing));
}

SharedGpuNetwork::~SharedGpuNetwork() = default;

Communicator &SharedGpuNetwork::at(int rank) { return *ends[rank]; }

} // namespace rota
