// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl/EmulatedNccl.h"
#include "runtime/Error.h"
#include "runtime/collective/nccl/NcclMembers.h"
#include "runtime/device/simt/EmulatedDriver.h"

#include <condition_variable>
#include <fmt/format.h>
#include <mutex>

namespace rota {
namespace {

struct Common : NcclMembers<Common> {};

/// What an NcclHandle points to. Calls in streams may outlive the handle.
struct Member {
  std::shared_ptr<Common> common;
  int rank;
  bool isAborted = false;
  std::shared_ptr<Member> handle = nullptr; // itself, until it is ended
};

struct NcclCall {
  std::shared_ptr<Member> member;
  cuda::StreamHandle stream;
  MemberTransfer transfer;
};

/// Guards members and what they have in common.
std::mutex mutex;
std::condition_variable change;
bool isAbandoned = false; // the start of the present run

struct Group {
  int depth = 0;
  std::vector<NcclCall> calls;
};
Group &group() {
  thread_local Group own;
  return own;
}

std::shared_ptr<Member> memberOf(NcclHandle handle) {
  return reinterpret_cast<Member *>(handle)->handle;
}
NcclHandle makeMember(std::shared_ptr<Common> common, int rank) {
  auto member = std::make_shared<Member>(std::move(common), rank);
  member->handle = member;
  return reinterpret_cast<NcclHandle>(member.get());
}

/// Waits for all members; `body` runs once, when they are there. False where a
/// rank of the run does not connect.
bool meet(std::unique_lock<std::mutex> &lock, Common &common, int rank,
          std::pair<int, int> value, const std::function<void()> &body) {
  int64_t generation = common.generation;
  if (common.arrive(rank, value, body))
    change.notify_all();
  change.wait(lock,
              [&] { return common.generation != generation || isAbandoned; });
  return common.generation != generation;
}

/// The ranks of a process connect once; the next run finds nothing of it.
NcclResult connect(NcclHandle *result, int ranks, NcclId, int rank,
                   NcclConfig *) {
  static std::shared_ptr<Common> coming;
  std::unique_lock lock(mutex);
  if (!coming) {
    coming = std::make_shared<Common>();
    coming->size = ranks;
  }
  std::shared_ptr<Common> common = coming;
  if (!meet(lock, *common, rank, {0, 0}, [] { coming = nullptr; })) {
    coming = nullptr;
    return kNcclInvalidUsage;
  }
  *result = makeMember(std::move(common), rank);
  return kNcclSuccess;
}

NcclResult split(NcclHandle parent, int color, int key, NcclHandle *result,
                 NcclConfig *) {
  std::unique_lock lock(mutex);
  std::shared_ptr<Member> member = memberOf(parent);
  Common &common = *member->common;
  if (!meet(lock, common, member->rank, {color, key}, [&] { common.divide(); }))
    return kNcclInvalidUsage;
  if (color != kNcclNoColor)
    *result = makeMember(common.parts[color], common.numbers[member->rank]);
  return kNcclSuccess;
}

/// Does what the call can do now; whether it is over.
bool advance(NcclCall &call, std::string &wrong) {
  MemberTransfer &transfer = call.transfer;
  return call.member->isAborted ||
         call.member->common->advance(
             call.member->rank, transfer, [&](const NcclMessage &message) {
               if (message.bytes != transfer.bytes)
                 wrong =
                     fmt::format("expected {} bytes from member {} of a "
                                 "communicator, got {}",
                                 transfer.bytes, transfer.peer, message.bytes);
             });
}

/// The calls of a group on one stream. They pass bytes on as soon as that
/// stream has come to them.
simt::HostWork workOf(std::vector<NcclCall> calls) {
  struct State {
    std::vector<NcclCall> calls;
    std::string wrong;
  };
  simt::HostWork work;
  work.what = fmt::format("{} calls of NCCL", calls.size());
  for (const auto &[member, stream, transfer] : calls)
    work.uses.push_back(
        {transfer.source ? transfer.source : transfer.destination,
         transfer.bytes, /*isWrite=*/!transfer.source});
  auto state = std::make_shared<State>(std::move(calls), "");
  work.isReady = [state] {
    std::lock_guard lock(mutex);
    bool isOver = true;
    for (NcclCall &call : state->calls)
      isOver &= advance(call, state->wrong);
    return isOver;
  };
  work.run = [state] {
    if (!state->wrong.empty())
      throw RunError(state->wrong);
  };
  return work;
}

NcclResult endGroup() {
  if (--group().depth > 0)
    return kNcclSuccess;
  std::map<cuda::StreamHandle, std::vector<NcclCall>> streams;
  for (NcclCall &call : std::exchange(group().calls, {}))
    streams[call.stream].push_back(std::move(call));
  for (auto &[stream, calls] : streams)
    simt::enqueueHost(stream, workOf(std::move(calls)));
  return kNcclSuccess;
}

NcclResult add(NcclCall call) {
  ++group().depth;
  group().calls.push_back(std::move(call));
  return endGroup();
}

NcclResult send(const void *source, size_t bytes, int, int peer,
                NcclHandle handle, cuda::StreamHandle stream) {
  return add({memberOf(handle),
              stream,
              {peer, static_cast<const char *>(source), nullptr, bytes}});
}

NcclResult receive(void *destination, size_t bytes, int, int peer,
                   NcclHandle handle, cuda::StreamHandle stream) {
  return add({memberOf(handle),
              stream,
              {peer, nullptr, static_cast<char *>(destination), bytes}});
}

/// A member sends its block to itself, too.
NcclResult allGather(const void *source, void *destination, size_t bytes,
                     int type, NcclHandle handle, cuda::StreamHandle stream) {
  ++group().depth;
  for (int peer = 0; peer < memberOf(handle)->common->size; ++peer) {
    char *place = static_cast<char *>(destination) + size_t(peer) * bytes;
    if (peer == memberOf(handle)->rank && place == source)
      continue;
    send(source, bytes, type, peer, handle, stream);
    receive(place, bytes, type, peer, handle, stream);
  }
  return endGroup();
}

} // namespace

EmulatedNcclStart::~EmulatedNcclStart() {
  std::lock_guard lock(mutex);
  isAbandoned = false;
}

void EmulatedNcclStart::abandon() {
  std::lock_guard lock(mutex);
  isAbandoned = true;
  change.notify_all();
}

const NcclApi &emulatedNccl() {
  static const NcclApi api = [] {
    NcclApi filled;
    filled.version = [](int *version) {
      return *version = 21800, kNcclSuccess;
    };
    filled.uniqueId = [](NcclId *id) { return *id = {}, kNcclSuccess; };
    filled.connect = connect;
    filled.split = split;
    filled.destroy = [](NcclHandle handle) {
      memberOf(handle)->handle = nullptr;
      return kNcclSuccess;
    };
    filled.abort = [](NcclHandle handle) {
      std::lock_guard lock(mutex);
      std::shared_ptr<Member> member = memberOf(handle);
      member->isAborted = true;
      member->common->hasLost = true;
      member->handle = nullptr;
      return kNcclSuccess;
    };
    filled.asyncError = [](NcclHandle handle, NcclResult *error) {
      std::lock_guard lock(mutex);
      bool hasLost = memberOf(handle)->common->hasLost;
      return *error = hasLost ? kNcclInvalidUsage : kNcclSuccess, kNcclSuccess;
    };
    filled.beginGroup = [] { return ++group().depth, kNcclSuccess; };
    filled.endGroup = endGroup;
    filled.send = send;
    filled.receive = receive;
    filled.allGather = allGather;
    filled.errorText = [](NcclResult) { return "a rank has left"; };
    filled.lastError = [](NcclHandle) { return ""; };
    return filled;
  }();
  return api;
}

} // namespace rota
