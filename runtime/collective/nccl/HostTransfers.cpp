// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl/HostTransfers.h"
#include "runtime/Error.h"

#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace rota {

static int64_t alignedUp(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// Elements of a member's source and destination.
static std::pair<int64_t, int64_t> elementsOf(const Collective &c,
                                              int64_t members) {
  int64_t whole = c.outer * c.size * c.inner;
  int64_t part = c.outer * ((c.size + members - 1) / members) * c.inner;
  switch (c.kind) {
  case Collective::Kind::AllGather:
    return {part, whole};
  case Collective::Kind::ReduceScatter:
  case Collective::Kind::Slice:
    return {whole, part};
  case Collective::Kind::AllToAll:
    return {c.splitOuter * c.splitSize * c.splitInner, whole};
  case Collective::Kind::AllReduce:
  case Collective::Kind::Permute:
    break;
  }
  return {whole, whole};
}

HostTransfers::HostTransfers(NcclCommunicator &tensors,
                             cuda::CudaDevice &device, void *staging,
                             int64_t bytes)
    : tensors(tensors), device(device), staging(static_cast<char *>(staging)),
      capacity(bytes) {}

/// Room for two buffers.
std::pair<char *, char *> HostTransfers::reserve(int64_t first,
                                                 int64_t second) {
  int64_t bytes = alignedUp(first) + alignedUp(second);
  if (bytes > capacity)
    throw RunError(fmt::format(
        "expected transfers of host memory of at most {} bytes, got {}",
        capacity, bytes));
  if (used + bytes > capacity)
    for (auto &[request, open] : opens)
      complete(std::exchange(open, {}));
  bool isFree = std::all_of(opens.begin(), opens.end(), [](const auto &entry) {
    return entry.second.request == 0;
  });
  if (isFree)
    used = 0;
  char *place = staging + used;
  used += bytes;
  return {place, place + alignedUp(first)};
}

Request HostTransfers::add(Open open) {
  opens[++lastRequest] = open;
  return lastRequest;
}

void HostTransfers::complete(const Open &open) {
  tensors.finish(open.request);
  if (open.host && open.bytes > 0)
    device.read(open.staged, open.host, open.bytes);
}

Request HostTransfers::start(Stream stream, const Collective &collective,
                             const RankGroup &group, const void *source,
                             void *destination) {
  auto [sources, results] =
      elementsOf(collective, static_cast<int64_t>(group.ranks.size()));
  int64_t elementBytes = byteSize(collective.type);
  auto [from, to] = reserve(sources * elementBytes, results * elementBytes);
  device.write(source, from, sources * elementBytes);
  if (collective.accumulate)
    device.write(destination, to, results * elementBytes);
  return add({tensors.start(stream, collective, group, from, to), to,
              destination, results * elementBytes});
}

Request HostTransfers::send(Stream stream, int peer, const void *source,
                            int64_t bytes) {
  char *from = reserve(bytes, 0).first;
  if (bytes > 0)
    device.write(source, from, bytes);
  return add({tensors.send(stream, peer, from, bytes)});
}

Request HostTransfers::receive(Stream stream, int peer, void *destination,
                               int64_t bytes) {
  char *to = reserve(bytes, 0).first;
  return add(
      {tensors.receive(stream, peer, to, bytes), to, destination, bytes});
}

Request HostTransfers::copy(const void *source, void *destination,
                            int64_t bytes) {
  if (bytes > 0)
    std::memcpy(destination, source, static_cast<size_t>(bytes));
  return 0;
}

TransferTime HostTransfers::wait(Request request) {
  auto found = opens.find(request);
  if (found == opens.end())
    return {};
  complete(found->second);
  opens.erase(found);
  return {};
}

bool HostTransfers::isDone(Request request) {
  auto found = opens.find(request);
  return found == opens.end() || tensors.isDone(found->second.request);
}

} // namespace rota
