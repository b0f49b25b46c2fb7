// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/collective/gpu/FakeDriver.h"
#include "runtime/collective/Blocks.h"
#include "runtime/device/cuda/ServiceKernels.h"

#include <cstring>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <random>

namespace rota::test {

using namespace cuda;

namespace {

/// One record of an event. A stream waits for the record that was the last one
/// when it was told to wait.
struct Record {
  bool done = true;
  float milliseconds = 0.0f;
};
struct Event {
  std::shared_ptr<Record> last = std::make_shared<Record>();
};

struct Operation {
  std::function<void()> work;
  std::shared_ptr<Record> awaited;
  bool isRunnable() const { return !awaited || awaited->done; }
};

using Queue = std::deque<Operation>;
using Lock = std::lock_guard<std::mutex>;

/// Events and streams live to the end of the program: a stream may wait for an
/// event that its owner has destroyed.
struct Machine {
  std::mutex mutex;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::unique_ptr<Event>> events;
  int64_t operations = 0; // that have run
  bool launchesFail = false;

  /// Runs one operation. False: there is none that can run.
  bool step() {
    std::vector<Queue *> runnable;
    for (const std::unique_ptr<Queue> &queue : queues)
      if (!queue->empty() && queue->front().isRunnable())
        runnable.push_back(queue.get());
    if (runnable.empty())
      return false;
    Queue &queue = *runnable[random() % runnable.size()];
    Operation operation = std::move(queue.front());
    queue.pop_front();
    ++operations;
    if (operation.work)
      operation.work();
    return true;
  }
  Result runUntil(const std::function<bool()> &isDone) {
    while (!isDone())
      if (!step()) {
        ADD_FAILURE() << "streams wait for each other";
        return kLaunchFailed;
      }
    return kSuccess;
  }
};

Machine &machine() {
  static Machine theMachine;
  return theMachine;
}

Queue &queueOf(StreamHandle stream) {
  return *reinterpret_cast<Queue *>(stream);
}
Event &eventOf(EventHandle event) { return *reinterpret_cast<Event *>(event); }
char *addressOf(Address address) { return reinterpret_cast<char *>(address); }

Result ask(StreamHandle stream, std::function<void()> work) {
  Lock lock(machine().mutex);
  queueOf(stream).push_back({std::move(work), nullptr});
  return kSuccess;
}

template <typename T> T argument(void **arguments, int number) {
  return *static_cast<const T *>(arguments[number]);
}

int64_t offsetOf(int64_t element, int64_t length, int64_t stride) {
  return element / length * stride + element % length;
}

template <ElementType kType>
std::function<void()> bindCombine(void **arguments) {
  auto terms = argument<const Term *>(arguments, 0);
  auto termCount = argument<int64_t>(arguments, 1);
  auto out = argument<char *>(arguments, 2);
  auto count = argument<int64_t>(arguments, 3);
  auto termLength = argument<int64_t>(arguments, 4);
  auto outLength = argument<int64_t>(arguments, 5);
  auto outStride = argument<int64_t>(arguments, 6);
  auto mode = argument<int32_t>(arguments, 7);
  return [=] {
    Collective collective;
    collective.kind = Collective::Kind::ReduceScatter;
    collective.type = kType;
    collective.accumulate = mode == kAccumulate;
    collective.maximum = mode == kMaximum;
    int64_t bytes = byteSize(kType);
    std::vector<const void *> places(termCount);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t t = 0; t < termCount; ++t)
        places[t] = static_cast<const char *>(terms[t].data) +
                    offsetOf(i, termLength, terms[t].stride) * bytes;
      combine(collective, places,
              out + offsetOf(i, outLength, outStride) * bytes, 1);
    }
  };
}

template <int64_t kBytes> std::function<void()> bindCopy(void **arguments) {
  auto source = argument<const char *>(arguments, 0);
  auto destination = argument<char *>(arguments, 1);
  auto count = argument<int64_t>(arguments, 2);
  auto sourceLength = argument<int64_t>(arguments, 3);
  auto sourceStride = argument<int64_t>(arguments, 4);
  auto length = argument<int64_t>(arguments, 5);
  auto stride = argument<int64_t>(arguments, 6);
  return [=] {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(destination + offsetOf(i, length, stride) * kBytes,
                  source + offsetOf(i, sourceLength, sourceStride) * kBytes,
                  kBytes);
  };
}

/// A kernel takes its arguments when it is asked for, and runs later.
struct Kernel {
  const char *name;
  std::function<void()> (*bind)(void **arguments);
};
constexpr Kernel kKernels[] = {
    {kCombineKernels[0], bindCombine<ElementType::F32>},
    {kCombineKernels[1], bindCombine<ElementType::BF16>},
    {kCombineKernels[2], bindCombine<ElementType::I32>},
    {kCopyKernels[0], bindCopy<2>},
    {kCopyKernels[1], bindCopy<4>},
};

Result moduleFunction(FunctionHandle *function, ModuleHandle,
                      const char *name) {
  for (const Kernel &kernel : kKernels)
    if (std::strcmp(kernel.name, name) == 0) {
      *function =
          reinterpret_cast<FunctionHandle>(const_cast<Kernel *>(&kernel));
      return kSuccess;
    }
  return kNotFound;
}

Result launch(FunctionHandle function, unsigned, unsigned, unsigned, unsigned,
              unsigned, unsigned, unsigned, StreamHandle stream,
              void **arguments, void **) {
  if (machine().launchesFail)
    return kLaunchFailed;
  return ask(stream,
             reinterpret_cast<const Kernel *>(function)->bind(arguments));
}

void addDevice(DriverApi &api) {
  api.init = [](unsigned) { return kSuccess; };
  api.driverVersion = [](int *version) {
    *version = 13000;
    return kSuccess;
  };
  api.deviceCount = [](int *count) {
    *count = 1;
    return kSuccess;
  };
  api.device = [](Ordinal *device, int) {
    *device = 0;
    return kSuccess;
  };
  api.deviceName = [](char *name, int length, Ordinal) {
    std::strncpy(name, "Fake", length);
    return kSuccess;
  };
  api.deviceAttribute = [](int *value, int, Ordinal) {
    *value = 1;
    return kSuccess;
  };
  api.retainContext = [](ContextHandle *, Ordinal) { return kSuccess; };
  api.releaseContext = [](Ordinal) { return kSuccess; };
  api.setContext = [](ContextHandle) { return kSuccess; };
  api.errorName = [](Result, const char **text) {
    *text = "CUDA_ERROR_LAUNCH_FAILED";
    return kSuccess;
  };
  api.errorText = [](Result, const char **text) {
    *text = "unspecified launch failure";
    return kSuccess;
  };
}

void addMemory(DriverApi &api) {
  api.allocate = [](Address *address, size_t bytes) {
    *address = reinterpret_cast<Address>(std::malloc(bytes));
    return kSuccess;
  };
  api.free = [](Address address) {
    std::free(addressOf(address));
    return kSuccess;
  };
  api.allocateHost = [](void **address, size_t bytes, unsigned) {
    *address = std::malloc(bytes);
    return kSuccess;
  };
  api.freeHost = [](void *address) {
    std::free(address);
    return kSuccess;
  };
  api.copy = [](Address destination, Address source, size_t bytes,
                StreamHandle stream) {
    return ask(stream, [=] {
      std::memcpy(addressOf(destination), addressOf(source), bytes);
    });
  };
  api.fill8 = [](Address destination, unsigned char value, size_t count,
                 StreamHandle stream) {
    return ask(stream,
               [=] { std::memset(addressOf(destination), value, count); });
  };
}

void addCode(DriverApi &api) {
  api.loadModule = [](ModuleHandle *, const void *, unsigned, int *, void **) {
    return kSuccess;
  };
  api.unloadModule = [](ModuleHandle) { return kSuccess; };
  api.moduleFunction = moduleFunction;
  api.setFunctionAttribute = [](FunctionHandle, int, int) { return kSuccess; };
  api.launch = launch;
}

void addStreams(DriverApi &api) {
  api.createStream = [](StreamHandle *stream, unsigned) {
    Lock lock(machine().mutex);
    machine().queues.push_back(std::make_unique<Queue>());
    *stream = reinterpret_cast<StreamHandle>(machine().queues.back().get());
    return kSuccess;
  };
  api.destroyStream = [](StreamHandle) { return kSuccess; };
  api.synchronizeStream = [](StreamHandle stream) {
    Lock lock(machine().mutex);
    return machine().runUntil([&] { return queueOf(stream).empty(); });
  };
  api.waitEvent = [](StreamHandle stream, EventHandle event, unsigned) {
    Lock lock(machine().mutex);
    queueOf(stream).push_back({nullptr, eventOf(event).last});
    return kSuccess;
  };
}

void addEvents(DriverApi &api) {
  api.createEvent = [](EventHandle *event, unsigned) {
    Lock lock(machine().mutex);
    machine().events.push_back(std::make_unique<Event>());
    *event = reinterpret_cast<EventHandle>(machine().events.back().get());
    return kSuccess;
  };
  api.destroyEvent = [](EventHandle) { return kSuccess; };
  api.recordEvent = [](EventHandle handle, StreamHandle stream) {
    Lock lock(machine().mutex);
    auto record = std::make_shared<Record>(Record{.done = false});
    eventOf(handle).last = record;
    queueOf(stream).push_back({[record] {
                                 record->done = true;
                                 record->milliseconds =
                                     static_cast<float>(machine().operations);
                               },
                               nullptr});
    return kSuccess;
  };
  // Some other operation may run meanwhile.
  api.queryEvent = [](EventHandle event) {
    Lock lock(machine().mutex);
    machine().step();
    return eventOf(event).last->done ? kSuccess : kNotReady;
  };
  api.synchronizeEvent = [](EventHandle handle) {
    Lock lock(machine().mutex);
    std::shared_ptr<Record> record = eventOf(handle).last;
    return machine().runUntil([&] { return record->done; });
  };
  api.elapsedTime = [](float *milliseconds, EventHandle begin,
                       EventHandle end) {
    Lock lock(machine().mutex);
    *milliseconds =
        eventOf(end).last->milliseconds - eventOf(begin).last->milliseconds;
    return kSuccess;
  };
}

} // namespace

const DriverApi &fakeDriver(uint64_t seed) {
  static const DriverApi kApi = [] {
    DriverApi api;
    addDevice(api);
    addMemory(api);
    addCode(api);
    addStreams(api);
    addEvents(api);
    return api;
  }();
  Lock lock(machine().mutex);
  machine().random.seed(seed);
  machine().queues.clear();
  return kApi;
}

int64_t pendingOperations() {
  Lock lock(machine().mutex);
  int64_t count = 0;
  for (const std::unique_ptr<Queue> &queue : machine().queues)
    count += static_cast<int64_t>(queue->size());
  return count;
}

void failLaunches(bool fail) { machine().launchesFail = fail; }

} // namespace rota::test
