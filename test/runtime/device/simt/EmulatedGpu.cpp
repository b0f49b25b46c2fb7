// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/device/simt/EmulatedGpu.h"

#include <cstring>

namespace rota::test {

static const char *const kSites[] = {"k.cpp:1 (load)", "k.cpp:2 (store)"};

template <typename T> static T &argument(void *const *arguments, int index) {
  return *static_cast<T *>(arguments[index]);
}

static int32_t load(const int32_t *place) {
  rotaSimtRead(place, 4, 4, 1);
  return *place;
}

static void store(int32_t *place, int32_t value) {
  rotaSimtWrite(place, 4, 4, &value, 2);
  *place = value;
}

/// (i32 *place, i32 value): *place = value.
static void storeValue(void *const *arguments) {
  store(argument<int32_t *>(arguments, 0), argument<int32_t>(arguments, 1));
}

/// (i32 *to, const i32 *from): *to = *from.
static void move(void *const *arguments) {
  store(argument<int32_t *>(arguments, 0),
        load(argument<int32_t *>(arguments, 1)));
}

/// (i32 *out): out[i] = i for each thread of the grid.
static void number(void *const *arguments) {
  uint32_t i =
      rotaSimtBlockIndex(0) * rotaSimtBlockSize(0) + rotaSimtThreadIndex(0);
  store(argument<int32_t *>(arguments, 0) + i, i);
}

/// (i32 *const *table, i32 index, i32 value): *table[index] = value.
static void storeByTable(void *const *arguments) {
  auto *const *place = argument<int32_t *const *>(arguments, 0) +
                       argument<int32_t>(arguments, 1);
  rotaSimtRead(place, 8, 8, 1);
  store(*place, argument<int32_t>(arguments, 2));
}

static void nothing(void *const *) {}

static const int32_t kBytes[] = {8, 4, 4}; // sizes of the arguments
static const int32_t kPlaces[] = {8, 8};

static const RotaSimtKernel kKernels[] = {
    {storeValue, "store", kSites, 2, 0, 1, 2, kBytes, 0},
    {move, "move", kSites, 2, 0, 1, 2, kPlaces, 64},
    {number, "number", kSites, 2, 0, 1, 1, kBytes, 0},
    {storeByTable, "store_by_table", kSites, 2, 0, 1, 3, kBytes, 0},
    {nothing, "nothing", kSites, 2, 1024, 1, 0, nullptr, 0}};

static const RotaSimtKernel *const kImage[] = {&kKernels[0], &kKernels[1],
                                               &kKernels[2], &kKernels[3],
                                               &kKernels[4], nullptr};

EmulatedGpu::EmulatedGpu(const simt::EmulatedDriverOptions &options)
    : api(simt::emulatedDriver()) {
  simt::setEmulatedDriverOptions(options);
  EXPECT_SUCCESS(api.init(0));
  EXPECT_SUCCESS(api.retainContext(&context, 0));
  EXPECT_SUCCESS(api.setContext(context));
  EXPECT_SUCCESS(api.loadModule(&module, kImage, 0, nullptr, nullptr));
}

EmulatedGpu::~EmulatedGpu() {
  EXPECT_SUCCESS(api.releaseContext(0));
  EXPECT_SUCCESS(api.setContext(nullptr));
}

cuda::StreamHandle EmulatedGpu::stream() {
  cuda::StreamHandle stream = nullptr;
  EXPECT_SUCCESS(api.createStream(&stream, cuda::kNonBlockingStream));
  streams.push_back(stream);
  return stream;
}

cuda::EventHandle EmulatedGpu::event(unsigned flags) {
  cuda::EventHandle event = nullptr;
  EXPECT_SUCCESS(api.createEvent(&event, flags));
  return event;
}

void *EmulatedGpu::allocateBytes(size_t bytes) {
  cuda::Address address = 0;
  EXPECT_SUCCESS(api.allocate(&address, bytes));
  return std::memset(reinterpret_cast<void *>(address), 0, bytes);
}

void *EmulatedGpu::allocateHostBytes(size_t bytes) {
  void *address = nullptr;
  EXPECT_SUCCESS(api.allocateHost(&address, bytes, cuda::kPortableHostMemory));
  return address;
}

cuda::FunctionHandle EmulatedGpu::function(const char *name) {
  cuda::FunctionHandle function = nullptr;
  EXPECT_SUCCESS(api.moduleFunction(&function, module, name));
  return function;
}

cuda::Result EmulatedGpu::launch(const char *kernel,
                                 std::vector<void *> arguments,
                                 cuda::StreamHandle stream) {
  return api.launch(function(kernel), 1, 1, 1, 1, 1, 1, 0, stream,
                    arguments.data(), nullptr);
}

void EmulatedGpu::append(int32_t value, cuda::StreamHandle stream) {
  simt::enqueueHost(stream,
                    {"append", {}, [=, this] { entries.push_back(value); }});
}

void EmulatedGpu::order(cuda::StreamHandle earlier, cuda::StreamHandle later) {
  cuda::EventHandle done = event();
  EXPECT_SUCCESS(api.recordEvent(done, earlier));
  EXPECT_SUCCESS(api.waitEvent(later, done, 0));
  EXPECT_SUCCESS(api.destroyEvent(done));
}

std::vector<int32_t> EmulatedGpu::log() {
  for (cuda::StreamHandle stream : streams)
    EXPECT_SUCCESS(api.synchronizeStream(stream));
  return entries;
}

std::string EmulatedGpu::reportOf(cuda::StreamHandle stream) {
  api.synchronizeStream(stream);
  return api.failureReport();
}

} // namespace rota::test
