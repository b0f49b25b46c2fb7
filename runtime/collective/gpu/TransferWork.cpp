// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gpu/TransferWork.h"
#include "runtime/collective/gpu/RowKernels.h"

namespace rota {

/// Bytes of the largest element.
static constexpr size_t kElementBytes = 4;

static cuda::Address addressOf(const void *place) {
  return reinterpret_cast<cuda::Address>(place);
}

static char *at(const void *buffer, int64_t offset) {
  return static_cast<char *>(const_cast<void *>(buffer)) + offset;
}

/// The elements of a whole tensor.
static TransferRows wholeOf(const Collective &c) {
  int64_t count = c.outer * c.size * c.inner;
  return {0, 1, count, count};
}

/// True when every member's destination is the same in the end.
static bool isSameForAll(const Collective &collective) {
  return collective.kind == Collective::Kind::AllGather ||
         collective.kind == Collective::Kind::AllReduce;
}

TransferWork::TransferWork(cuda::CudaDevice &device, int ranks)
    : device(device), gpu(device.gpu()), tables(gpu, ranks) {
  gpu.use();
  const cuda::DriverApi &api = gpu.api();
  cuda::StreamHandle stream = device.computeStream();
  gpu.check(api.allocate(&zero, kElementBytes), "allocating an element");
  gpu.check(api.fill8(zero, 0, kElementBytes, stream), "clearing an element");
  gpu.check(api.synchronizeStream(stream), "clearing an element");
}

TransferWork::~TransferWork() {
  gpu.enter();
  gpu.api().free(zero);
}

void TransferWork::enqueue(const Exchange &exchange,
                           const std::vector<MemberBuffers> &members,
                           cuda::StreamHandle stream) {
  const Collective &collective = exchange.collective;
  if (exchange.isMessage)
    return copyBytes(members.front().source, members.back().destination,
                     collective.size, stream);
  int count = static_cast<int>(members.size());
  if (!isSameForAll(collective)) {
    for (int to = 0; to < count; ++to)
      collect(exchange, members, to, stream);
    return;
  }
  // One GPU gains nothing from dividing the work among the members.
  collect(exchange, members, 0, stream);
  TransferRows whole = wholeOf(collective);
  for (int to = 1; to < count; ++to)
    copy({whole, whole}, exchange.elementBytes, members[0].destination,
         members[to].destination, stream);
}

/// Makes the destination of one member.
void TransferWork::collect(const Exchange &exchange,
                           const std::vector<MemberBuffers> &members, int to,
                           cuda::StreamHandle stream) {
  const Collective &collective = exchange.collective;
  clear(paddingOf(collective, exchange.group, to), exchange.elementBytes,
        members[to].destination, stream);
  if (reduces(collective.kind))
    return sum(exchange, members, to, stream);
  for (int from = 0; from < static_cast<int>(members.size()); ++from)
    copy(blockOf(collective, exchange.group, from, to), exchange.elementBytes,
         members[from].source, members[to].destination, stream);
}

void TransferWork::sum(const Exchange &exchange,
                       const std::vector<MemberBuffers> &members, int to,
                       cuda::StreamHandle stream) {
  const Collective &c = exchange.collective;
  TransferBlock block = {wholeOf(c), wholeOf(c)};
  if (!isSameForAll(c))
    block = blockOf(c, exchange.group, to, to);
  int64_t count = block.count(), bytes = exchange.elementBytes;
  if (count == 0)
    return;
  std::vector<cuda::Term> list;
  for (const MemberBuffers &member : members)
    list.push_back(
        {at(member.source, block.source.offset * bytes), block.source.stride});
  const cuda::Term *table = tables.find(list);
  auto termCount = static_cast<int64_t>(members.size());
  char *out = at(members[to].destination, block.destination.offset * bytes);
  int32_t mode = combineModeOf(c);
  void *arguments[] = {&table,
                       &termCount,
                       &out,
                       &count,
                       &block.source.length,
                       &block.destination.length,
                       &block.destination.stride,
                       &mode};
  device.launchService(cuda::kCombineKernels[static_cast<int>(c.type)], count,
                       arguments, stream);
}

void TransferWork::copy(const TransferBlock &block, int64_t elementBytes,
                        const void *source, void *destination,
                        cuda::StreamHandle stream) {
  if (!block.source.isContiguous() || !block.destination.isContiguous())
    return copyRows(device, block, elementBytes, source, destination, stream);
  copyBytes(at(source, block.source.offset * elementBytes),
            at(destination, block.destination.offset * elementBytes),
            block.count() * elementBytes, stream);
}

void TransferWork::copyBytes(const void *source, void *destination,
                             int64_t bytes, cuda::StreamHandle stream) {
  if (bytes > 0 && source != destination)
    gpu.check(gpu.api().copy(addressOf(destination), addressOf(source),
                             static_cast<size_t>(bytes), stream),
              "copying between ranks");
}

void TransferWork::clear(const TransferRows &rows, int64_t elementBytes,
                         void *buffer, cuda::StreamHandle stream) {
  if (rows.count() == 0)
    return;
  // Rows of one element without a stride are that element again and again.
  if (!rows.isContiguous())
    return copyRows(device, {{0, rows.count(), 1, 0}, rows}, elementBytes,
                    reinterpret_cast<const void *>(zero), buffer, stream);
  gpu.check(gpu.api().fill8(addressOf(at(buffer, rows.offset * elementBytes)),
                            0, static_cast<size_t>(rows.count() * elementBytes),
                            stream),
            "clearing padding");
}

} // namespace rota
