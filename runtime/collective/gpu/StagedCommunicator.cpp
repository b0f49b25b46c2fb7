// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gpu/StagedCommunicator.h"
#include "runtime/Error.h"

#include <fmt/format.h>

namespace rota {

static cuda::Address addressOf(const void *place) {
  return reinterpret_cast<cuda::Address>(place);
}

StagedCommunicator::StagedCommunicator(Communicator &host,
                                       cuda::CudaDevice &device)
    : host(host), device(device), gpu(device.gpu()), driver(gpu.api()),
      aside((gpu.use(), gpu)), events(gpu, /*timing=*/false), work(device, 1),
      buffers(gpu) {}

StagedCommunicator::~StagedCommunicator() { idle(); }

/// Runs the body. An error of the driver ends the run on all ranks.
template <typename Body> auto StagedCommunicator::attempt(Body &&body) {
  try {
    gpu.use();
    return body();
  } catch (const RunError &error) {
    std::string message =
        fmt::format("rank {}: {}: {}", rank(), position, error.what());
    fail(message);
    throw RunError(message);
  }
}

Request StagedCommunicator::start(Stream stream, const Collective &collective,
                                  const RankGroup &group, const void *source,
                                  void *destination) {
  if (group.ranks.size() == 1)
    return startAlone({stream, collective, group}, {source, destination});
  Open open = attempt(
      [&] { return openCollective(collective, group, source, destination); });
  open.inHost = host.start(stream, collective, group, open.source->data(),
                           open.result->buffer->data());
  return add(std::move(open));
}

StagedCommunicator::Open
StagedCommunicator::openCollective(const Collective &collective,
                                   const RankGroup &group, const void *source,
                                   void *destination) {
  int64_t elementBytes = byteSize(collective.type);
  int64_t bytes = sourceElements(collective, group) * elementBytes;
  Open open;
  open.result = resultAt(destination,
                         destinationElements(collective, group) * elementBytes,
                         collective.accumulate);
  open.source =
      collective.kind == Collective::Kind::AllReduce && source == destination
          ? open.result->buffer
          : buffers.take(bytes);
  toHost(source, *open.source, bytes);
  finishToHost();
  return open;
}

/// The host's buffer of a destination, with its old value where the transfer
/// adds to it.
std::shared_ptr<StagedCommunicator::Result>
StagedCommunicator::resultAt(void *place, int64_t bytes, bool accumulates) {
  if (accumulates)
    for (auto &[request, open] : requests)
      if (open.result && open.result->place == place &&
          open.result->last == request)
        return open.result;
  auto result = std::make_shared<Result>();
  result->buffer = buffers.take(bytes);
  result->place = place;
  result->bytes = bytes;
  if (accumulates)
    toHost(place, *result->buffer, bytes);
  return result;
}

Request StagedCommunicator::send(Stream stream, int peer, const void *source,
                                 int64_t bytes) {
  Open open = attempt([&] {
    Open sent;
    sent.source = buffers.take(bytes);
    toHost(source, *sent.source, bytes);
    finishToHost();
    return sent;
  });
  open.inHost = host.send(stream, peer, open.source->data(), bytes);
  return add(std::move(open));
}

Request StagedCommunicator::receive(Stream stream, int peer, void *destination,
                                    int64_t bytes) {
  Open open;
  open.result = attempt([&] { return resultAt(destination, bytes, false); });
  open.inHost = host.receive(stream, peer, open.result->buffer->data(), bytes);
  return add(std::move(open));
}

Request StagedCommunicator::copy(const void *source, void *destination,
                                 int64_t bytes) {
  return startAlone({Stream::Weights, rank(), rank(), bytes},
                    {source, destination});
}

/// Starts a transfer of this rank alone, on the GPU.
Request StagedCommunicator::startAlone(const Exchange &exchange,
                                       MemberBuffers places) {
  Open open;
  attempt([&] {
    EventPool::Event arrival = events.record(device.computeStream());
    gpu.check(driver.waitEvent(aside.get(), arrival->get(), 0),
              "waiting for the rank");
    work.enqueue(exchange, {places}, aside.get());
    open.onGpu = events.record(aside.get());
  });
  return add(std::move(open));
}

Request StagedCommunicator::add(Open open) {
  Request request = ++lastRequest;
  if (open.result)
    open.result->last = request;
  requests[request] = std::move(open);
  return request;
}

TransferTime StagedCommunicator::wait(Request request) {
  auto found = requests.find(request);
  if (found == requests.end())
    return {};
  TransferTime time;
  if (!found->second.onGpu) {
    try {
      time = host.wait(found->second.inHost);
    } catch (const RunError &) {
      idle(); // before memory is freed
      throw;
    }
  }
  Open open = std::move(found->second);
  requests.erase(found);
  attempt([&] {
    if (open.onGpu)
      gpu.check(driver.waitEvent(device.computeStream(), open.onGpu->get(), 0),
                "waiting for a transfer");
    // A later transfer that adds to the same place brings the result.
    else if (open.result && open.result->last == request)
      toDevice(*open.result);
  });
  return time;
}

bool StagedCommunicator::isDone(Request request) {
  auto found = requests.find(request);
  if (found == requests.end())
    return true;
  const Open &open = found->second;
  if (!open.onGpu)
    return host.isDone(open.inHost);
  return attempt([&] { return isComplete(gpu, *open.onGpu); });
}

void StagedCommunicator::toHost(const void *source,
                                const PinnedBuffers::Buffer &buffer,
                                int64_t bytes) {
  if (bytes > 0)
    gpu.check(driver.copy(addressOf(buffer.data()), addressOf(source),
                          static_cast<size_t>(bytes), device.computeStream()),
              "copying to the host");
}

/// Waits until the copies to the host are complete.
void StagedCommunicator::finishToHost() {
  gpu.check(driver.synchronizeStream(device.computeStream()),
            "copying to the host");
}

void StagedCommunicator::toDevice(const Result &result) {
  cuda::StreamHandle stream = device.computeStream();
  if (result.bytes > 0)
    gpu.check(driver.copy(addressOf(result.place),
                          addressOf(result.buffer->data()),
                          static_cast<size_t>(result.bytes), stream),
              "copying to the GPU");
  gpu.check(driver.recordEvent(result.buffer->lastUse.get(), stream),
            "copying to the GPU");
}

void StagedCommunicator::setPosition(const std::string &text) {
  position = text;
  host.setPosition(text);
}

void StagedCommunicator::fail(const std::string &message) {
  host.fail(message);
  idle();
}

/// Waits until the rank's work is done. A driver that has failed does nothing
/// any more.
void StagedCommunicator::idle() {
  gpu.enter();
  driver.synchronizeStream(aside.get());
  driver.synchronizeStream(device.computeStream());
}

} // namespace rota
