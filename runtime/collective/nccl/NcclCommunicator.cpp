// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl/NcclCommunicator.h"
#include "runtime/Error.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <fmt/format.h>

namespace rota {

namespace {

/// Zeros at the begin of the workspace.
constexpr int64_t kZeroBytes = 256;

double secondsNow() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// NCCL says "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device".
[[noreturn]] void explain(const RunError &error) {
  std::string text = error.what();
  int first = 0, second = 0;
  size_t at = text.find("Duplicate GPU");
  if (at != std::string::npos &&
      std::sscanf(text.c_str() + at,
                  "Duplicate GPU detected : rank %d and rank %d", &first,
                  &second) == 2)
    throw InputError(fmt::format(
        "ranks {} and {} have the same GPU: expected a GPU for each process of "
        "--ranks nccl; ranks that share one run with --ranks threads",
        first, second));
  throw error;
}

} // namespace

NcclCommunicator::NcclCommunicator(cuda::CudaDevice &device,
                                   const NcclApi &nccl, int rank, int size,
                                   const NcclId &id, const NcclPlan &plan,
                                   void *workspace, int64_t bytes,
                                   Options options)
    : device(device), gpu(device.gpu()), nccl(nccl), ownRank(rank), ranks(size),
      options(options), watch(nccl, device, rank, options.patience),
      computeMark(gpu, /*timing=*/false), solo(gpu), world(gpu),
      origin(std::make_shared<NcclTransfer>(gpu, /*timing=*/true)) {
  gpu.use();
  char *base = static_cast<char *>(workspace);
  int64_t lanes = plan.mostGroups() + 1; // lanes of groups, and `solo`
  int64_t share = (bytes - kZeroBytes) / lanes / 256 * 256;
  if (share <= 0)
    throw InputError(fmt::format(
        "expected a workspace for the transfers of {} groups, got {} bytes",
        lanes, bytes));
  std::vector<char> zeros(kZeroBytes);
  device.write(zeros.data(), base, kZeroBytes);
  GpuExchange::Workspace own = {base + kZeroBytes, share, base};
  solo.exchange.emplace(device, nccl, nullptr, solo.stream.get(), 1, own);
  own.base += share;
  connectAll(plan, id, own, plan.mostRoutes());
  watch.connected();
  gpu.check(gpu.api().recordEvent(origin->end.get(), solo.stream.get()),
            "start of the clock");
  gpu.check(gpu.api().synchronizeStream(solo.stream.get()),
            "start of the clock");
  startSeconds = secondsNow();
}

void NcclCommunicator::connectAll(const NcclPlan &plan, const NcclId &id,
                                  GpuExchange::Workspace workspace,
                                  int64_t routes) {
  NcclConfig config;
  // All kernels of a rank's routes fit beside each other.
  config.mostBlocks = static_cast<int>(
      std::clamp<int64_t>(gpu.multiprocessors() / (routes + 1), 1, 32));
  world.handle = connectWorld(id, config);
  for (const std::vector<NcclRoute> &step : plan.steps()) {
    // Members of one route split off with the number of its first rank.
    int color = kNcclNoColor, key = 0;
    const NcclRoute *own = nullptr;
    for (const NcclRoute &route : step)
      for (size_t i = 0; i < route.ranks.size(); ++i)
        if (route.ranks[i] == ownRank) {
          own = &route;
          color = route.ranks[0];
          key = static_cast<int>(i);
        }
    NcclHandle handle = nullptr;
    nccl.check(nccl.split(world.handle, color, key, &handle, &config),
               "split of the ranks");
    if (own)
      connectRoute(*own, handle, workspace);
  }
}

NcclHandle NcclCommunicator::connectWorld(const NcclId &id, NcclConfig config) {
  NcclHandle handle = nullptr;
  try {
    nccl.check(nccl.connect(&handle, ranks, id, ownRank, &config),
               "connecting the ranks");
  } catch (const RunError &error) {
    explain(error);
  }
  std::lock_guard held(watch.calls);
  watch.handles.push_back(handle);
  return handle;
}

void NcclCommunicator::connectRoute(const NcclRoute &route, NcclHandle handle,
                                    GpuExchange::Workspace &workspace) {
  {
    std::lock_guard held(watch.calls);
    watch.handles.push_back(handle);
  }
  auto lane = std::make_unique<Lane>(gpu);
  lane->handle = handle;
  if (route.isMessage) {
    // The share of `solo` follows the zeros, and begins with its terms.
    auto *zeros = static_cast<const char *>(workspace.zeros);
    int64_t half = workspace.bytes / 2;
    useOnce(*lane, route, const_cast<char *>(zeros) + kZeroBytes + half, half);
  } else {
    useOnce(*lane, route, workspace.base, workspace.bytes);
    lane->exchange.emplace(device, nccl, handle, lane->stream.get(),
                           static_cast<int>(route.ranks.size()), workspace);
    workspace.base += workspace.bytes;
  }
  lanes[route] = std::move(lane);
}

/// Connects each pair of ranks that will exchange bytes: NCCL does it in the
/// first call, in which it waits for the other rank. The blocks are as large as
/// `bytes` of room allow, because large ones may take other ways than small
/// ones.
void NcclCommunicator::useOnce(Lane &lane, const NcclRoute &route, char *room,
                               int64_t bytes) {
  cuda::StreamHandle stream = lane.stream.get();
  auto members = static_cast<int>(route.ranks.size());
  // A block to send, then one of each member.
  int64_t block = bytes / (members + 1) / 4 * 4;
  auto count = static_cast<size_t>(block);
  nccl.check(nccl.beginGroup(), "begin of a group");
  for (int member = 0; member < members; ++member) {
    bool isOwn = route.ranks[member] == ownRank;
    // Messages go from member 0 to member 1.
    bool sends = !route.isMessage || member == 1;
    bool receives = !route.isMessage || member == 0;
    if (!isOwn && sends)
      nccl.check(
          nccl.send(room, count, kNcclBytes, member, lane.handle, stream),
          "first send");
    if (!isOwn && receives)
      nccl.check(nccl.receive(room + (1 + member) * block, count, kNcclBytes,
                              member, lane.handle, stream),
                 "first receive");
  }
  nccl.check(nccl.endGroup(), "connecting a group");
  if (!route.isMessage)
    nccl.check(nccl.allGather(room, room + block, count, kNcclBytes,
                              lane.handle, stream),
               "first all-gather");
  gpu.check(gpu.api().synchronizeStream(stream), "connecting a group");
}

NcclCommunicator::~NcclCommunicator() {
  gpu.use();
  if (std::uncaught_exceptions() > 0)
    watch.fail(fmt::format("{}: left the run", watch.where()));
  if (records)
    device.abandonRecording();
  if (watch.hasFailed()) {
    watch.awaitAborts();
    return;
  }
  gpu.api().synchronizeStream(device.computeStream());
  for (Lane *lane : {&solo, &world})
    gpu.api().synchronizeStream(lane->stream.get());
  for (auto &[route, lane] : lanes)
    gpu.api().synchronizeStream(lane->stream.get());
  std::lock_guard held(watch.calls);
  for (; !watch.handles.empty(); watch.handles.pop_back())
    nccl.destroy(watch.handles.back());
}

NcclCommunicator::Lane &NcclCommunicator::laneOf(const NcclRoute &route) {
  auto found = lanes.find(route);
  if (found == lanes.end())
    throw RunError(fmt::format(
        "{}: expected a route of the plan, got stream {} of ranks {}",
        watch.where(), int(route.stream), fmt::join(route.ranks, ", ")));
  return *found->second;
}

/// Asks the lane's stream for the work, after what the compute stream was asked
/// for until now.
Request NcclCommunicator::ask(Lane &lane, const std::string &what,
                              const std::function<void()> &work) {
  gpu.use();
  const cuda::DriverApi &api = gpu.api();
  auto transfer = std::make_shared<NcclTransfer>(gpu, options.timing);
  transfer->what = fmt::format("{}: {}", watch.getPosition(), what);
  cuda::StreamHandle stream = lane.stream.get();
  std::lock_guard held(watch.calls);
  requests[++lastRequest] = transfer;
  if (watch.hasFailed())
    return lastRequest; // `wait` throws
  gpu.check(api.recordEvent(computeMark.get(), device.computeStream()),
            "mark of the compute stream");
  gpu.check(api.waitEvent(stream, computeMark.get(), 0),
            "wait for the compute stream");
  if (transfer->begin)
    gpu.check(api.recordEvent(transfer->begin->get(), stream), "begin");
  work();
  gpu.check(api.recordEvent(transfer->end.get(), stream), "end");
  if (!records)
    watch.underWay.push_back(transfer);
  return lastRequest;
}

Request NcclCommunicator::start(Stream stream, const Collective &collective,
                                const RankGroup &group, const void *source,
                                void *destination) {
  Lane &lane =
      group.ranks.size() == 1 ? solo : laneOf({stream, false, group.ranks});
  return ask(
      lane,
      fmt::format("{} of ranks {}", describe(collective),
                  fmt::join(group.ranks, ", ")),
      [&] { lane.exchange->run(collective, group, source, destination); });
}

Request NcclCommunicator::message(Stream stream, int from, int to, void *data,
                                  int64_t bytes) {
  bool sends = from == ownRank;
  auto found = lanes.find({stream, true, {from, to}});
  bool isPlanned = found != lanes.end();
  Lane &lane = isPlanned ? *found->second : world;
  int peer = isPlanned ? int(sends) : sends ? to : from;
  auto work = [&] {
    if (bytes == 0)
      return;
    auto count = static_cast<size_t>(bytes);
    cuda::StreamHandle queue = lane.stream.get();
    nccl.check(
        sends ? nccl.send(data, count, kNcclBytes, peer, lane.handle, queue)
              : nccl.receive(data, count, kNcclBytes, peer, lane.handle, queue),
        "message");
  };
  return ask(lane,
             fmt::format("message of {} bytes from rank {} to rank {}", bytes,
                         from, to),
             work);
}

Request NcclCommunicator::send(Stream stream, int peer, const void *source,
                               int64_t bytes) {
  return message(stream, ownRank, peer, const_cast<void *>(source), bytes);
}

Request NcclCommunicator::receive(Stream stream, int peer, void *destination,
                                  int64_t bytes) {
  return message(stream, peer, ownRank, destination, bytes);
}

Request NcclCommunicator::copy(const void *source, void *destination,
                               int64_t bytes) {
  return ask(solo, fmt::format("copy of {} bytes", bytes),
             [&] { solo.exchange->copy(source, destination, bytes); });
}

TransferTime NcclCommunicator::wait(Request request) {
  auto found = requests.find(request);
  if (found == requests.end())
    return {};
  watch.rethrow();
  gpu.use();
  gpu.check(
      gpu.api().waitEvent(device.computeStream(), found->second->end.get(), 0),
      "wait for a transfer");
  TransferTime time;
  if (options.timing) {
    await(*found->second);
    time = timeOf(found->second);
  }
  requests.erase(found);
  return time;
}

void NcclCommunicator::finish(Request request) {
  auto found = requests.find(request);
  if (found == requests.end())
    return;
  await(*found->second);
  requests.erase(found);
}

void NcclCommunicator::await(const NcclTransfer &transfer) {
  gpu.use();
  for (double start = secondsNow();;) {
    watch.rethrow();
    cuda::Result result = gpu.api().queryEvent(transfer.end.get());
    if (result == cuda::kSuccess)
      return;
    if (result != cuda::kNotReady)
      gpu.check(result, transfer.what.c_str());
    if (secondsNow() - start < 100e-6)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool NcclCommunicator::isDone(Request request) {
  auto found = requests.find(request);
  if (found == requests.end() || watch.hasFailed())
    return true;
  gpu.use();
  return gpu.api().queryEvent(found->second->end.get()) != cuda::kNotReady;
}

/// A recorded step. The watch sees its end, and how far the device has come.
class NcclCommunicator::Replay : public Recording {
public:
  Replay(NcclCommunicator &owner, std::unique_ptr<Recording> graph,
         std::function<std::string()> reached)
      : owner(owner), graph(std::move(graph)), reached(std::move(reached)) {}
  ~Replay() override { owner.watch.follow(nullptr); }

  void run() override {
    cuda::Gpu &gpu = owner.gpu;
    gpu.use();
    owner.watch.rethrow();
    owner.watch.follow(reached);
    auto step = std::make_shared<NcclTransfer>(gpu, /*timing=*/false);
    step->what = "a recorded step";
    std::lock_guard held(owner.watch.calls);
    if (owner.watch.hasFailed())
      return; // the next wait throws
    graph->run();
    gpu.check(
        gpu.api().recordEvent(step->end.get(), owner.device.computeStream()),
        "end of a recorded step");
    owner.watch.underWay.push_back(std::move(step));
  }

private:
  NcclCommunicator &owner;
  const std::unique_ptr<Recording> graph;
  const std::function<std::string()> reached;
};

void NcclCommunicator::begin() {
  watch.rethrow();
  device.beginRecording();
  records = true;
}

std::unique_ptr<Recording>
NcclCommunicator::end(const std::function<std::string()> &reached) {
  watch.rethrow();
  records = false;
  return std::make_unique<Replay>(*this, device.endRecording(), reached);
}

double NcclCommunicator::now() const { return secondsNow() - startSeconds; }

/// The driver counts milliseconds in f32, so the origin follows the time.
TransferTime
NcclCommunicator::timeOf(const std::shared_ptr<NcclTransfer> &transfer) {
  cuda::EventHandle begin = transfer->begin->get();
  float before = 0.0f, length = 0.0f;
  gpu.check(gpu.api().elapsedTime(&before, origin->end.get(), begin),
            "time of a transfer");
  gpu.check(gpu.api().elapsedTime(&length, begin, transfer->end.get()),
            "time of a transfer");
  double from = originTime + before * 1e-3, to = from + length * 1e-3;
  if (before > 10e3f) {
    origin = transfer;
    originTime = to;
  }
  return {from, to};
}

} // namespace rota
