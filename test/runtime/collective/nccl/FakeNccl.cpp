// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/collective/nccl/FakeNccl.h"
#include "runtime/collective/nccl/NcclMembers.h"
#include "test/runtime/collective/nccl/FakeGpu.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>
#include <string_view>
#include <tuple>

using namespace rota;
using namespace rota::test;

namespace {

using Lock = std::unique_lock<std::mutex>;

/// MemberTransfer::form: an all-gather, a call that is recorded in a graph.
enum : int { kGather = 1, kRecorded = 2 };

/// What two members connect for: pair, all-gather or message, size class.
using Way = std::tuple<std::pair<int, int>, bool, int>;

/// Guarded by fakeMutex().
struct Common : NcclMembers<Common> {
  std::set<Way> senders, receivers; // ends that have connected
};

} // namespace

struct ncclComm {
  ncclComm(std::shared_ptr<Common> common, int rank)
      : common(std::move(common)), rank(rank) {}
  std::shared_ptr<Common> common;
  const int rank;
  cuda::StreamHandle stream = nullptr;
  bool isAborted = false;
  // Shared by the graphs that have calls of this member.
  std::shared_ptr<const int> graphs = std::make_shared<int>();
};

namespace {

/// One call of a group.
struct Call {
  ncclComm *handle;
  cuda::StreamHandle stream;
  MemberTransfer transfer;
  std::shared_ptr<const int> graph = nullptr; // not null: recorded
};

std::map<std::string, std::shared_ptr<Common>> &runs() {
  static std::map<std::string, std::shared_ptr<Common>> all;
  return all;
}
/// All of the process: streams may still know one that is closed.
std::deque<ncclComm> &handles() {
  static std::deque<ncclComm> all;
  return all;
}
std::atomic<int> connections = 0, openHandles = 0;
std::atomic<bool> isBroken = false, splitsFail = false;
thread_local int depth = 0;
thread_local std::vector<Call> group;
thread_local std::string lastError;

NcclResult refuse(const std::string &text) {
  lastError = text;
  return kNcclInvalidUsage;
}

/// Waits on the host; false where that takes too long.
bool awaitChange(Lock &lock, const std::function<bool()> &condition) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    fakePump();
    if (condition())
      break;
    if (fakeChange().wait_until(lock, end) == std::cv_status::timeout)
      return false;
  }
  return true;
}

/// Waits for all members; `body` runs once, when they are there.
bool meet(Lock &lock, Common &common, int rank, std::pair<int, int> value,
          const std::function<void()> &body) {
  int64_t generation = common.generation;
  if (common.arrive(rank, value, body))
    fakeChange().notify_all();
  return awaitChange(lock, [&] { return common.generation != generation; });
}

NcclResult connect(NcclHandle *result, int ranks, NcclId id, int rank,
                   NcclConfig *) {
  Lock lock(fakeMutex());
  std::shared_ptr<Common> &run = runs()[std::string(id.bytes, 16)];
  if (!run)
    run = std::make_shared<Common>();
  std::shared_ptr<Common> common = run;
  common->size = ranks;
  bool met = meet(lock, *common, rank, {fakeOrdinal(), 0}, [&] {
    for (auto [one, gpu] : common->arrived)
      for (auto [other, otherGpu] : common->arrived)
        if (one < other && gpu == otherGpu)
          common->numbers = {{one, other}};
  });
  if (!met)
    return refuse("not all ranks have come");
  if (!common->numbers.empty())
    return refuse(fmt::format(
        "Duplicate GPU detected : rank {} and rank {} both on CUDA device 1000",
        common->numbers.begin()->first, common->numbers.begin()->second));
  *result = &handles().emplace_back(common, rank);
  ++openHandles;
  return kNcclSuccess;
}

NcclResult split(NcclHandle parent, int color, int key, NcclHandle *result,
                 NcclConfig *) {
  if (splitsFail)
    return refuse("no more communicators");
  Lock lock(fakeMutex());
  Common &common = *parent->common;
  if (!meet(lock, common, parent->rank, {color, key}, [&] { common.divide(); }))
    return refuse("not all ranks have split");
  if (color == kNcclNoColor)
    return kNcclSuccess;
  *result = &handles().emplace_back(common.parts[color],
                                    common.numbers[parent->rank]);
  ++openHandles;
  return kNcclSuccess;
}

/// One call's share of the GPU's work. True when it is over.
bool advance(Call &call) {
  ncclComm &member = *call.handle;
  return member.isAborted ||
         member.common->advance(
             member.rank, call.transfer, [&](const NcclMessage &message) {
               EXPECT_EQ(message.bytes, call.transfer.bytes);
               int differs = message.form ^ call.transfer.form;
               EXPECT_FALSE(differs & kGather) << "one side gathers";
               EXPECT_FALSE(differs & kRecorded) << "one side is recorded";
             });
}

/// Bytes from which NCCL is taken to use another protocol or more channels.
constexpr size_t kClassBytes[] = {4 << 10, 256 << 10};

Way wayOf(const Call &call) {
  const MemberTransfer &transfer = call.transfer;
  std::pair<int, int> pair = {call.handle->rank, transfer.peer};
  if (!transfer.source)
    std::swap(pair.first, pair.second);
  auto next = std::lower_bound(std::begin(kClassBytes), std::end(kClassBytes),
                               transfer.bytes);
  bool isGather = transfer.form & kGather;
  return {pair, isGather, static_cast<int>(next - kClassBytes)};
}

/// What is connected together with `way`: for messages smaller ones, for
/// gathers nothing, or all where NCCL connects at the start.
std::vector<Way> connectedWith(Way way) {
  auto [pair, isGather, own] = way;
  const char *text = std::getenv("NCCL_RUNTIME_CONNECT");
  bool isAll = text && std::string_view(text) == "0";
  int classes = std::size(kClassBytes) + 1;
  std::vector<Way> ways;
  for (int one = 0; one < classes; ++one)
    if (one == own || (isGather ? isAll : one < own))
      ways.emplace_back(pair, isGather, one);
  return ways;
}

/// Waits on the host until both ends of each new connection have come.
NcclResult connectPeers(Lock &lock, const std::vector<Call> &calls) {
  for (const Call &call : calls) {
    Common &common = *call.handle->common;
    std::set<Way> &ends =
        call.transfer.source ? common.senders : common.receivers;
    if (ends.contains(wayOf(call)))
      continue;
    ++connections;
    for (const Way &way : connectedWith(wayOf(call)))
      ends.insert(way);
  }
  fakeChange().notify_all();
  for (const Call &call : calls) {
    Common &common = *call.handle->common;
    Way way = wayOf(call);
    if (!awaitChange(lock, [&] {
          return call.handle->isAborted || (common.senders.contains(way) &&
                                            common.receivers.contains(way));
        }))
      return refuse("the other rank does not connect");
  }
  return kNcclSuccess;
}

NcclResult endGroup() {
  if (--depth > 0)
    return kNcclSuccess;
  std::vector<Call> calls = std::exchange(group, {});
  Lock lock(fakeMutex());
  if (NcclResult result = connectPeers(lock, calls))
    return result;
  std::map<cuda::StreamHandle, std::vector<Call>> work;
  for (Call &call : calls) {
    cuda::StreamHandle &stream = call.handle->stream;
    EXPECT_TRUE(!stream || stream == call.stream) << "two streams";
    stream = call.stream;
    if (fakeCaptures(stream)) {
      call.graph = call.handle->graphs;
      call.transfer.form |= kRecorded;
    }
    work[stream].push_back(std::move(call));
  }
  for (auto &[stream, list] : work)
    fakeAsk(stream, [list]() mutable {
      bool isOver = true;
      for (Call &call : list)
        isOver &= advance(call);
      return isOver;
    });
  return kNcclSuccess;
}

NcclResult add(Call call) {
  int peer = call.transfer.peer;
  if (peer < 0 || peer >= call.handle->common->size ||
      peer == call.handle->rank)
    return refuse("no such peer");
  ++depth;
  group.push_back(std::move(call));
  return endGroup();
}

NcclResult allGather(const void *source, void *destination, size_t bytes, int,
                     NcclHandle handle, cuda::StreamHandle stream) {
  auto *from = static_cast<const char *>(source);
  auto *to = static_cast<char *>(destination);
  ++depth;
  for (int peer = 0; peer < handle->common->size; ++peer) {
    char *place = to + size_t(peer) * bytes;
    if (peer == handle->rank) {
      Lock lock(fakeMutex());
      fakeAsk(stream, [=] {
        std::memmove(place, from, bytes);
        return true;
      });
      continue;
    }
    add({handle, stream, {peer, from, nullptr, bytes, kGather}});
    add({handle, stream, {peer, nullptr, place, bytes, kGather}});
  }
  return endGroup();
}

/// Ends the use of a handle, whose work may still lie in streams, and waits for
/// the end of the graphs with its calls, as NCCL does.
NcclResult close(NcclHandle handle, bool isAborted) {
  Lock lock(fakeMutex());
  handle->isAborted = isAborted;
  handle->common->hasLost |= isAborted;
  fakeChange().notify_all();
  EXPECT_TRUE(awaitChange(lock, [&] {
    return handle->graphs.use_count() == 1;
  })) << "a graph outlives its communicator";
  --openHandles;
  fakeChange().notify_all();
  return kNcclSuccess;
}

} // namespace

const NcclApi &rota::test::fakeNccl() {
  static const NcclApi api = [] {
    NcclApi filled;
    filled.version = [](int *version) {
      return *version = 22809, kNcclSuccess;
    };
    filled.uniqueId = [](NcclId *id) { return *id = fakeId(), kNcclSuccess; };
    filled.connect = connect;
    filled.split = split;
    filled.destroy = [](NcclHandle handle) { return close(handle, false); };
    filled.abort = [](NcclHandle handle) { return close(handle, true); };
    filled.asyncError = [](NcclHandle handle, NcclResult *error) {
      Lock lock(fakeMutex());
      bool isLost = isBroken || handle->common->hasLost;
      return *error = isLost ? kNcclInvalidUsage : kNcclSuccess, kNcclSuccess;
    };
    filled.beginGroup = [] { return ++depth, kNcclSuccess; };
    filled.endGroup = endGroup;
    filled.send = [](const void *source, size_t count, int, int peer,
                     NcclHandle handle, cuda::StreamHandle stream) {
      return add({handle,
                  stream,
                  {peer, static_cast<const char *>(source), nullptr, count}});
    };
    filled.receive = [](void *destination, size_t count, int, int peer,
                        NcclHandle handle, cuda::StreamHandle stream) {
      return add({handle,
                  stream,
                  {peer, nullptr, static_cast<char *>(destination), count}});
    };
    filled.allGather = allGather;
    filled.errorText = [](NcclResult) { return "invalid usage"; };
    filled.lastError = [](NcclHandle) -> const char * {
      return lastError.c_str();
    };
    return filled;
  }();
  return api;
}

NcclId rota::test::fakeId() {
  static std::atomic<int> last = 0;
  NcclId id = {};
  std::snprintf(id.bytes, sizeof id.bytes, "run %08d", ++last);
  return id;
}

int rota::test::fakeConnections() { return connections; }
void rota::test::breakFakeNccl(bool broken) { isBroken = broken; }
void rota::test::failFakeSplits(bool fail) { splitsFail = fail; }
int rota::test::openFakeHandles() { return openHandles; }
