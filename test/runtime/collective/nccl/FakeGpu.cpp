// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/collective/nccl/FakeGpu.h"
#include "test/runtime/collective/TransferKernels.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <list>
#include <set>
#include <string_view>

namespace rota::test {

using namespace cuda;

namespace {

using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

// Results of the driver that are errors of captures.
constexpr Result kIllegalCapture = 900, kUnjoined = 904, kCapturedEvent = 907;

/// No test needs that long for its work: a stream that waits longer hangs.
constexpr auto kPatience = std::chrono::seconds(30);

using Work = std::function<bool()>;
using NodeSet = std::set<size_t>;

/// Work that is recorded, and the nodes that it comes after.
struct FakeNode {
  Work work;
  NodeSet after;
  bool isOver = false;
};
struct FakeCapture {
  StreamHandle origin;
  std::vector<FakeNode> nodes;
};
struct FakeStream {
  int ordinal; // of its GPU
  std::deque<Work> work;
  std::shared_ptr<FakeCapture> capture; // null: work is done
  NodeSet last;                         // what the next node comes after
};
struct FakeEvent {
  int64_t recorded = 0, reached = 0; // numbers of its records
  Clock::time_point time;
  std::shared_ptr<FakeCapture> capture; // capture of the last record, if any
  NodeSet last;
};
struct FakeMachine {
  std::mutex mutex;
  std::condition_variable change;
  std::list<FakeStream> streams;
  std::list<FakeEvent> events; // streams may wait for one that is gone
};

FakeMachine &machine() {
  static FakeMachine one;
  return one;
}
thread_local ContextHandle current = nullptr;

FakeStream &at(StreamHandle stream) {
  return *reinterpret_cast<FakeStream *>(stream);
}
FakeEvent &at(EventHandle event) {
  return *reinterpret_cast<FakeEvent *>(event);
}
char *bytesAt(Address address) { return reinterpret_cast<char *>(address); }

Result ask(StreamHandle stream, std::function<bool()> work) {
  Lock lock(machine().mutex);
  fakeAsk(stream, std::move(work));
  return kSuccess;
}

void fillDevice(DriverApi &api) {
  api.init = [](unsigned) { return kSuccess; };
  api.driverVersion = [](int *version) { return *version = 13000, kSuccess; };
  api.deviceCount = [](int *count) { return *count = 16, kSuccess; };
  api.device = [](Ordinal *device, int ordinal) {
    return *device = ordinal, kSuccess;
  };
  api.deviceName = [](char *name, int length, Ordinal) {
    std::snprintf(name, static_cast<size_t>(length), "fake GPU");
    return kSuccess;
  };
  api.deviceAttribute = [](int *value, int attribute, Ordinal) {
    *value = attribute == kCapabilityMajor   ? 9
             : attribute == kCapabilityMinor ? 0
                                             : 132;
    return kSuccess;
  };
  api.retainContext = [](ContextHandle *context, Ordinal device) {
    *context = reinterpret_cast<ContextHandle>(intptr_t(device) + 1);
    return kSuccess;
  };
  api.releaseContext = [](Ordinal) { return kSuccess; };
  api.setContext = [](ContextHandle context) {
    return current = context, kSuccess;
  };
  api.errorName = [](Result, const char **text) {
    return *text = "FAKE_ERROR", kSuccess;
  };
  api.errorText = [](Result, const char **text) {
    return *text = "an error of the fake GPU", kSuccess;
  };
}

/// NVIDIA's driver may wait for the whole GPU in a release: one between the
/// start of a transfer and what the other rank needs for its end hangs.
Result waitForGpu() {
  Lock lock(machine().mutex);
  auto isBusy = [] {
    fakePump();
    return std::any_of(machine().streams.begin(), machine().streams.end(),
                       [](const FakeStream &stream) {
                         return stream.ordinal == fakeOrdinal() &&
                                !stream.work.empty();
                       });
  };
  auto end = Clock::now() + kPatience;
  while (isBusy())
    if (machine().change.wait_until(lock, end) == std::cv_status::timeout) {
      ADD_FAILURE() << "a release of memory waits for work that does not end";
      return kLaunchFailed;
    }
  return kSuccess;
}

void fillMemory(DriverApi &api) {
  api.allocate = [](Address *address, size_t bytes) {
    *address = reinterpret_cast<Address>(std::calloc(bytes, 1));
    return kSuccess;
  };
  api.free = [](Address address) {
    Result result = waitForGpu();
    return std::free(bytesAt(address)), result;
  };
  api.allocateHost = [](void **address, size_t bytes, unsigned) {
    return *address = std::calloc(bytes, 1), kSuccess;
  };
  api.freeHost = [](void *address) {
    Result result = waitForGpu();
    return std::free(address), result;
  };
  api.copy = [](Address destination, Address source, size_t bytes,
                StreamHandle stream) {
    return ask(stream, [=] {
      std::memcpy(bytesAt(destination), bytesAt(source), bytes);
      return true;
    });
  };
  api.fill8 = [](Address destination, unsigned char value, size_t count,
                 StreamHandle stream) {
    return ask(stream, [=] {
      std::memset(bytesAt(destination), value, count);
      return true;
    });
  };
}

/// The stream waits for an event of a capture that is under way.
Result joinCapture(FakeStream &stream, const FakeEvent &event) {
  bool isOpen = at(event.capture->origin).capture == event.capture;
  if (!isOpen || (stream.capture && stream.capture != event.capture))
    return kCapturedEvent;
  stream.capture = event.capture;
  stream.last.insert(event.last.begin(), event.last.end());
  return kSuccess;
}

/// Whether all nodes are before `last` or in it.
bool isJoined(const FakeCapture &capture, NodeSet last) {
  for (size_t node = capture.nodes.size(); node-- > 0;)
    if (last.contains(node))
      last.insert(capture.nodes[node].after.begin(),
                  capture.nodes[node].after.end());
  return last.size() == capture.nodes.size();
}

/// A launch: independent nodes go on side by side.
bool advanceNodes(std::vector<FakeNode> &nodes) {
  bool isOver = true;
  for (FakeNode &node : nodes) {
    bool isReady =
        std::all_of(node.after.begin(), node.after.end(),
                    [&](size_t before) { return nodes[before].isOver; });
    node.isOver = node.isOver || (isReady && node.work());
    isOver &= node.isOver;
  }
  return isOver;
}

Result endCapture(StreamHandle stream, GraphHandle *graph) {
  Lock lock(machine().mutex);
  std::shared_ptr<FakeCapture> capture = at(stream).capture;
  *graph = nullptr;
  if (!capture || capture->origin != stream)
    return kIllegalCapture;
  bool joined = isJoined(*capture, at(stream).last);
  for (FakeStream &other : machine().streams)
    if (other.capture == capture) {
      other.capture = nullptr;
      other.last.clear();
    }
  if (!joined)
    return kUnjoined;
  *graph = reinterpret_cast<GraphHandle>(
      new std::vector<FakeNode>(std::move(capture->nodes)));
  return kSuccess;
}

void fillGraphs(DriverApi &api) {
  using Nodes = std::vector<FakeNode>;
  api.beginCapture = [](StreamHandle stream, int) {
    Lock lock(machine().mutex);
    if (at(stream).capture)
      return kIllegalCapture;
    at(stream).capture = std::make_shared<FakeCapture>(FakeCapture{stream, {}});
    return kSuccess;
  };
  api.captureStatus = [](StreamHandle stream, int *status) {
    Lock lock(machine().mutex);
    return *status = at(stream).capture ? 1 : kNoCapture, kSuccess;
  };
  api.endCapture = endCapture;
  api.instantiateGraph = [](GraphExecHandle *executable, GraphHandle graph,
                            unsigned long long) {
    *executable = reinterpret_cast<GraphExecHandle>(
        new Nodes(*reinterpret_cast<Nodes *>(graph)));
    return kSuccess;
  };
  api.launchGraph = [](GraphExecHandle executable, StreamHandle stream) {
    return ask(stream,
               [nodes = *reinterpret_cast<Nodes *>(executable)]() mutable {
                 return advanceNodes(nodes);
               });
  };
  api.destroyGraph = [](GraphHandle graph) {
    Lock lock(machine().mutex);
    delete reinterpret_cast<Nodes *>(graph);
    return kSuccess;
  };
  api.destroyGraphExec = [](GraphExecHandle executable) {
    Lock lock(machine().mutex);
    delete reinterpret_cast<Nodes *>(executable);
    machine().change.notify_all();
    return kSuccess;
  };
}

void fillStreams(DriverApi &api) {
  api.createStream = [](StreamHandle *stream, unsigned) {
    Lock lock(machine().mutex);
    *stream = reinterpret_cast<StreamHandle>(
        &machine().streams.emplace_back(fakeOrdinal()));
    return kSuccess;
  };
  api.destroyStream = [](StreamHandle stream) {
    Lock lock(machine().mutex);
    machine().streams.remove_if(
        [&](const FakeStream &other) { return &other == &at(stream); });
    return kSuccess;
  };
  api.synchronizeStream = [](StreamHandle stream) {
    Lock lock(machine().mutex);
    if (at(stream).capture)
      return kIllegalCapture;
    auto end = Clock::now() + kPatience;
    for (fakePump(); !at(stream).work.empty(); fakePump())
      if (machine().change.wait_until(lock, end) == std::cv_status::timeout)
        return kLaunchFailed;
    return kSuccess;
  };
  api.waitEvent = [](StreamHandle stream, EventHandle event, unsigned) {
    Lock lock(machine().mutex);
    if (at(event).capture)
      return joinCapture(at(stream), at(event));
    if (at(stream).capture && at(event).recorded > 0)
      return kIllegalCapture;
    fakeAsk(stream, [event, number = at(event).recorded] {
      return at(event).reached >= number;
    });
    return kSuccess;
  };
}

void fillEvents(DriverApi &api) {
  api.createEvent = [](EventHandle *event, unsigned) {
    Lock lock(machine().mutex);
    *event = reinterpret_cast<EventHandle>(&machine().events.emplace_back());
    return kSuccess;
  };
  api.destroyEvent = [](EventHandle) { return kSuccess; };
  api.recordEvent = [](EventHandle event, StreamHandle stream) {
    Lock lock(machine().mutex);
    at(event).capture = at(stream).capture;
    at(event).last = at(stream).last;
    if (at(stream).capture)
      return kSuccess;
    fakeAsk(stream, [event, number = ++at(event).recorded] {
      at(event).reached = number;
      at(event).time = Clock::now();
      return true;
    });
    return kSuccess;
  };
  api.queryEvent = [](EventHandle event) {
    Lock lock(machine().mutex);
    if (at(event).capture)
      return kCapturedEvent;
    fakePump();
    return at(event).reached == at(event).recorded ? kSuccess : kNotReady;
  };
  api.synchronizeEvent = [](EventHandle event) {
    Lock lock(machine().mutex);
    if (at(event).capture)
      return kCapturedEvent;
    auto end = Clock::now() + kPatience;
    for (fakePump(); at(event).reached != at(event).recorded; fakePump())
      if (machine().change.wait_until(lock, end) == std::cv_status::timeout)
        return kLaunchFailed;
    return kSuccess;
  };
  api.elapsedTime = [](float *milliseconds, EventHandle begin,
                       EventHandle end) {
    *milliseconds =
        std::chrono::duration<float, std::milli>(at(end).time - at(begin).time)
            .count();
    return kSuccess;
  };
}

/// A kernel takes its arguments when it is launched, and runs later.
Result launch(const TransferKernel &kernel, StreamHandle stream,
              void **arguments) {
  std::vector<int64_t> taken(kernel.argumentBytes.size());
  for (size_t n = 0; n < taken.size(); ++n)
    std::memcpy(&taken[n], arguments[n], kernel.argumentBytes[n]);
  return ask(stream, [&kernel, taken]() mutable {
    std::vector<void *> places;
    for (int64_t &argument : taken)
      places.push_back(&argument);
    for (int64_t i = 0; i < kernel.elements(places.data()); ++i)
      kernel.element(places.data(), i);
    return true;
  });
}

void fillKernels(DriverApi &api) {
  api.loadModule = [](ModuleHandle *module, const void *, unsigned, int *,
                      void **) { return *module = nullptr, kSuccess; };
  api.unloadModule = [](ModuleHandle) { return kSuccess; };
  api.moduleFunction = [](FunctionHandle *function, ModuleHandle,
                          const char *name) {
    for (const TransferKernel &kernel : transferKernels())
      if (kernel.name == std::string_view(name)) {
        *function = reinterpret_cast<FunctionHandle>(
            const_cast<TransferKernel *>(&kernel));
        return kSuccess;
      }
    return kNotFound;
  };
  api.setFunctionAttribute = [](FunctionHandle, int, int) { return kSuccess; };
  api.launch = [](FunctionHandle function, unsigned, unsigned, unsigned,
                  unsigned, unsigned, unsigned, unsigned, StreamHandle stream,
                  void **arguments, void **) {
    return launch(*reinterpret_cast<const TransferKernel *>(function), stream,
                  arguments);
  };
}

} // namespace

std::mutex &fakeMutex() { return machine().mutex; }
std::condition_variable &fakeChange() { return machine().change; }
int fakeOrdinal() {
  return static_cast<int>(reinterpret_cast<intptr_t>(current)) - 1;
}

bool fakeCaptures(StreamHandle stream) { return at(stream).capture != nullptr; }

void fakeAsk(StreamHandle stream, std::function<bool()> work) {
  if (FakeCapture *capture = at(stream).capture.get()) {
    capture->nodes.push_back({std::move(work), std::move(at(stream).last)});
    at(stream).last = {capture->nodes.size() - 1};
    return;
  }
  at(stream).work.push_back(std::move(work));
  machine().change.notify_all();
}

void fakePump() {
  bool hasMoved = false;
  for (bool moves = true; moves; hasMoved |= moves) {
    moves = false;
    for (FakeStream &stream : machine().streams)
      while (!stream.work.empty() && stream.work.front()()) {
        stream.work.pop_front();
        moves = true;
      }
  }
  if (hasMoved)
    machine().change.notify_all();
}

const DriverApi &fakeDriver() {
  static const DriverApi api = [] {
    DriverApi filled;
    for (auto *fill : {fillDevice, fillMemory, fillStreams, fillEvents,
                       fillGraphs, fillKernels})
      fill(filled);
    return filled;
  }();
  return api;
}

std::unique_ptr<CudaDevice> fakeDevice(int ordinal) {
  static const RotaGpuCode code = {ROTA_GPU_CUBIN, 90, "", 0};
  auto gpu = std::make_shared<Gpu>(fakeDriver(), ordinal,
                                   std::span<const RotaGpuCode>(&code, 1));
  gpu->use();
  return std::make_unique<CudaDevice>(gpu, nullptr);
}

} // namespace rota::test
