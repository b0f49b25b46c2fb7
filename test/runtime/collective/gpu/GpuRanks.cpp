// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/collective/gpu/GpuRanks.h"
#include "runtime/collective/Blocks.h"
#include "test/runtime/collective/TransferKernels.h"

#include <cstring>
#include <thread>

namespace rota::test {

static constexpr unsigned char kSpoiled = 0xa5;

const cuda::DriverApi &driverWithoutLaunches() {
  static const cuda::DriverApi api = [] {
    cuda::DriverApi changed = simt::emulatedDriver();
    changed.launch = [](cuda::FunctionHandle, unsigned, unsigned, unsigned,
                        unsigned, unsigned, unsigned, unsigned,
                        cuda::StreamHandle, void **,
                        void **) { return cuda::kLaunchFailed; };
    return changed;
  }();
  return api;
}

GpuRanks::GpuRanks(int ranks, uint64_t seed, const cuda::DriverApi &driver) {
  simt::setEmulatedDriverOptions({.threads = 1, .seed = seed});
  gpu = std::make_shared<cuda::Gpu>(driver, 0, std::span(&transferCode(), 1));
  for (int rank = 0; rank < ranks; ++rank)
    devices.push_back(std::make_unique<cuda::CudaDevice>(gpu, nullptr));
}

std::vector<cuda::CudaDevice *> GpuRanks::all() {
  std::vector<cuda::CudaDevice *> all;
  for (const std::unique_ptr<cuda::CudaDevice> &device : devices)
    all.push_back(device.get());
  return all;
}

void GpuRanks::run(const std::function<void(int)> &body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < static_cast<int>(devices.size()); ++rank)
    threads.emplace_back([&, rank] {
      gpu->use();
      body(rank);
    });
  for (std::thread &thread : threads)
    thread.join();
}

GpuBuffer::GpuBuffer(cuda::CudaDevice &device, int64_t bytes)
    : device(device), size(bytes) {
  device.gpu().check(device.gpu().api().allocate(&address, bytes), "allocate");
}

GpuBuffer::~GpuBuffer() {
  device.gpu().api().synchronizeStream(device.computeStream());
  device.gpu().api().free(address);
}

/// Not as a copy of the driver, which the emulated one makes from and to its
/// own memory alone.
void GpuBuffer::write(const void *host) {
  simt::enqueueHost(device.computeStream(), {"write", {}, [=, this] {
                                               std::memcpy(place(), host, size);
                                             }});
}

void GpuBuffer::read(void *host) {
  simt::enqueueHost(device.computeStream(), {"read", {}, [=, this] {
                                               std::memcpy(host, place(), size);
                                             }});
  device.gpu().api().synchronizeStream(device.computeStream());
}

void GpuBuffer::fill(unsigned char value) {
  device.gpu().api().fill8(address, value, size, device.computeStream());
}

ThroughGpu::Buffer ThroughGpu::moved(const void *host, int64_t bytes) {
  auto buffer = std::make_unique<GpuBuffer>(device, bytes);
  buffer->write(host);
  return buffer;
}

Request ThroughGpu::add(Request request, Moved moved) {
  open[request] = std::move(moved);
  return request;
}

Request ThroughGpu::start(Stream stream, const Collective &collective,
                          const RankGroup &group, const void *source,
                          void *destination) {
  int64_t elementBytes = byteSize(collective.type);
  Moved both;
  both.host = destination;
  both.destination =
      moved(destination, destinationElements(collective, group) * elementBytes);
  if (collective.kind != Collective::Kind::AllReduce || source != destination)
    both.source =
        moved(source, sourceElements(collective, group) * elementBytes);
  const GpuBuffer &from = both.source ? *both.source : *both.destination;
  Request request = inner.start(stream, collective, group, from.place(),
                                both.destination->place());
  return add(request, std::move(both));
}

Request ThroughGpu::send(Stream stream, int peer, const void *source,
                         int64_t bytes) {
  Moved sent{moved(source, bytes), nullptr, nullptr};
  return add(inner.send(stream, peer, sent.source->place(), bytes),
             std::move(sent));
}

Request ThroughGpu::receive(Stream stream, int peer, void *destination,
                            int64_t bytes) {
  Moved received{nullptr, moved(destination, bytes), destination};
  return add(inner.receive(stream, peer, received.destination->place(), bytes),
             std::move(received));
}

Request ThroughGpu::copy(const void *source, void *destination, int64_t bytes) {
  Moved both{moved(source, bytes), moved(destination, bytes), destination};
  return add(inner.copy(both.source->place(), both.destination->place(), bytes),
             std::move(both));
}

TransferTime ThroughGpu::wait(Request request) {
  TransferTime time = inner.wait(request);
  auto found = open.find(request);
  if (found == open.end())
    return time;
  Moved moved = std::move(found->second);
  open.erase(found);
  if (moved.source)
    moved.source->fill(kSpoiled);
  if (moved.destination) {
    moved.destination->read(moved.host);
    moved.destination->fill(kSpoiled);
  }
  closed.push_back(std::move(moved));
  return time;
}

} // namespace rota::test
