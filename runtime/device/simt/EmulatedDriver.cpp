// SPDX-License-Identifier: Apache-2.0
//
// The table of functions, and the life of the context.
#include "runtime/device/simt/EmulatedDriver.h"
#include "runtime/Error.h"
#include "runtime/device/simt/DriverResults.h"
#include "runtime/device/simt/EmulatedContext.h"

#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <string_view>

namespace rota::simt {

using cuda::ContextHandle;
using cuda::Result;

static constexpr int kVersion = 13000; // version of CUDA, times 1000
static constexpr int kMultiprocessors = 4;

namespace {

/// The driver's state in a process.
struct Process {
  std::atomic<bool> initialized{false};
  std::mutex mutex;
  EmulatedDriverOptions options;
  int retained = 0;
  uintptr_t contexts = 0; // retained so far; the handle of the latest
  std::shared_ptr<EmulatedContext> context;

  static Process &get() {
    static Process process;
    return process;
  }
  ContextHandle handle() const {
    return reinterpret_cast<ContextHandle>(contexts);
  }
};

thread_local ContextHandle current = nullptr;

Result init(unsigned flags) {
  Process::get().initialized = true;
  return flags == 0 ? cuda::kSuccess : cuda::kInvalidValue;
}

Result driverVersion(int *version) {
  *version = kVersion;
  return cuda::kSuccess;
}

Result checkDevice(int device) {
  if (!Process::get().initialized)
    return kNotInitialized;
  return device == 0 ? cuda::kSuccess : kInvalidDevice;
}

Result deviceCount(int *count) {
  *count = 1;
  return checkDevice(0);
}

Result deviceOf(cuda::Ordinal *device, int ordinal) {
  *device = ordinal;
  return checkDevice(ordinal);
}

Result deviceName(char *name, int length, cuda::Ordinal device) {
  if (length <= 0)
    return cuda::kInvalidValue;
  std::string_view text = "emulated GPU";
  name[text.copy(name, length - 1)] = '\0';
  return checkDevice(device);
}

Result deviceAttribute(int *value, int attribute, cuda::Ordinal device) {
  switch (attribute) {
  case cuda::kMultiprocessorCount:
    *value = kMultiprocessors;
    break;
  case cuda::kCapabilityMajor:
  case cuda::kCapabilityMinor:
    *value = 0;
    break;
  case cuda::kMostSharedBytesByChoice:
    *value = kMaxSharedBytes;
    break;
  default:
    return cuda::kInvalidValue;
  }
  return checkDevice(device);
}

Result retainContext(ContextHandle *context, cuda::Ordinal device) {
  if (Result result = checkDevice(device))
    return result;
  Process &process = Process::get();
  std::lock_guard lock(process.mutex);
  if (process.retained++ == 0) {
    ++process.contexts;
    process.context = std::make_shared<EmulatedContext>(process.options);
  }
  *context = process.handle();
  return cuda::kSuccess;
}

Result releaseContext(cuda::Ordinal device) {
  if (Result result = checkDevice(device))
    return result;
  Process &process = Process::get();
  std::shared_ptr<EmulatedContext> released; // ends without the lock
  std::lock_guard lock(process.mutex);
  if (process.retained == 0)
    return kInvalidContext;
  if (--process.retained == 0)
    released = std::move(process.context);
  return cuda::kSuccess;
}

Result setContext(ContextHandle context) {
  Process &process = Process::get();
  std::lock_guard lock(process.mutex);
  if (context && (process.retained == 0 || context != process.handle()))
    return kInvalidContext;
  current = context;
  return cuda::kSuccess;
}

Result errorName(Result result, const char **text) {
  const ResultWords *words = findWords(result);
  *text = words ? words->name : nullptr;
  return words ? cuda::kSuccess : cuda::kInvalidValue;
}

Result errorText(Result result, const char **text) {
  const ResultWords *words = findWords(result);
  *text = words ? words->text : nullptr;
  return words ? cuda::kSuccess : cuda::kInvalidValue;
}

const char *failureReport() {
  std::shared_ptr<EmulatedContext> context = currentContext();
  return context ? context->streams.failureReport() : "";
}

/// Whether a function may wait for the whole GPU, which a thread that captures
/// must not.
enum class Waits { No, Perhaps };

/// The context that a function may use.
Result enter(std::shared_ptr<EmulatedContext> &context, Waits waits) {
  context = currentContext();
  if (!context)
    return kInvalidContext;
  if (context->streams.hasFailed())
    return cuda::kLaunchFailed;
  if (waits == Waits::Perhaps && context->streams.forbidsWaiting())
    return kCaptureUnsupported;
  return cuda::kSuccess;
}

/// A method of the current context, as a function of the table.
template <auto method, Waits waits> struct OfContext;
template <typename... Args, Result (EmulatedContext::*method)(Args...),
          Waits waits>
struct OfContext<method, waits> {
  static Result call(Args... args) {
    std::shared_ptr<EmulatedContext> context;
    Result result = enter(context, waits);
    return result == cuda::kSuccess ? ((*context).*method)(args...) : result;
  }
};

/// A method of a part of the current context.
template <auto part, auto method, Waits waits> struct OfPart;
template <typename T, T EmulatedContext::*part, typename... Args,
          Result (T::*method)(Args...), Waits waits>
struct OfPart<part, method, waits> {
  static Result call(Args... args) {
    std::shared_ptr<EmulatedContext> context;
    Result result = enter(context, waits);
    return result == cuda::kSuccess ? ((*context).*part.*method)(args...)
                                    : result;
  }
};

template <auto method, Waits waits = Waits::No>
constexpr auto ofContext = OfContext<method, waits>::call;
template <auto method, Waits waits = Waits::No>
constexpr auto ofMemory = OfPart<&EmulatedContext::memory, method, waits>::call;
template <auto method, Waits waits = Waits::No>
constexpr auto ofModules =
    OfPart<&EmulatedContext::modules, method, waits>::call;
template <auto method, Waits waits = Waits::No>
constexpr auto ofStreams =
    OfPart<&EmulatedContext::streams, method, waits>::call;

void addWork(cuda::DriverApi &api) {
  using Context = EmulatedContext;
  using Memory = EmulatedMemory;
  using Modules = EmulatedModules;
  api.memoryInfo = ofMemory<&Memory::info>;
  api.allocate = ofMemory<&Memory::allocate, Waits::Perhaps>;
  api.allocateHost = ofMemory<&Memory::allocateHost, Waits::Perhaps>;
  api.free = ofContext<&Context::free, Waits::Perhaps>;
  api.allocateInStream = ofContext<&Context::allocateInStream>;
  api.freeInStream = ofContext<&Context::freeInStream>;
  api.freeHost = ofContext<&Context::freeHost, Waits::Perhaps>;
  api.copy = ofContext<&Context::copy>;
  api.fill8 = ofContext<&Context::fill8>;
  api.launch = ofContext<&Context::launch>;
  api.loadModule = ofModules<&Modules::load, Waits::Perhaps>;
  api.unloadModule = ofContext<&Context::unloadModule, Waits::Perhaps>;
  api.moduleFunction = ofModules<&Modules::function>;
  api.setFunctionAttribute = ofModules<&Modules::setAttribute>;
}

void addOrder(cuda::DriverApi &api) {
  using Streams = EmulatedStreams;
  api.createStream = ofStreams<&Streams::createStream>;
  api.destroyStream = ofStreams<&Streams::destroyStream>;
  api.synchronizeStream = ofStreams<&Streams::synchronizeStream>;
  api.waitEvent = ofStreams<&Streams::waitEvent>;
  api.createEvent = ofStreams<&Streams::createEvent>;
  api.destroyEvent = ofStreams<&Streams::destroyEvent>;
  api.recordEvent = ofStreams<&Streams::recordEvent>;
  api.queryEvent = ofStreams<&Streams::queryEvent, Waits::Perhaps>;
  api.synchronizeEvent = ofStreams<&Streams::synchronizeEvent>;
  api.elapsedTime = ofStreams<&Streams::elapsedTime>;
  api.beginCapture = ofStreams<&Streams::beginCapture>;
  api.captureStatus = ofStreams<&Streams::captureStatus>;
  api.endCapture = ofStreams<&Streams::endCapture>;
  api.instantiateGraph = ofStreams<&Streams::instantiateGraph>;
  api.launchGraph = ofStreams<&Streams::launchGraph>;
  api.destroyGraphExec = ofStreams<&Streams::destroyGraphExec>;
  api.destroyGraph = ofStreams<&Streams::destroyGraph>;
}

cuda::DriverApi makeTable() {
  cuda::DriverApi api;
  api.init = init;
  api.driverVersion = driverVersion;
  api.deviceCount = deviceCount;
  api.device = deviceOf;
  api.deviceName = deviceName;
  api.deviceAttribute = deviceAttribute;
  api.retainContext = retainContext;
  api.releaseContext = releaseContext;
  api.setContext = setContext;
  api.errorName = errorName;
  api.errorText = errorText;
  api.failureReport = failureReport;
  addWork(api);
  addOrder(api);
  return api;
}

} // namespace

std::shared_ptr<EmulatedContext> currentContext() {
  Process &process = Process::get();
  std::lock_guard lock(process.mutex);
  return current == process.handle() ? process.context : nullptr;
}

void setEmulatedDriverOptions(const EmulatedDriverOptions &options) {
  Process &process = Process::get();
  std::lock_guard lock(process.mutex);
  if (process.retained > 0)
    throw RunError("expected options of the emulated GPU before its context "
                   "is retained");
  process.options = options;
}

const cuda::DriverApi &emulatedDriver() {
  static const cuda::DriverApi api = makeTable();
  return api;
}

void enqueueHost(cuda::StreamHandle stream, HostWork work) {
  std::shared_ptr<EmulatedContext> context;
  Result result = enter(context, Waits::No);
  if (result == cuda::kSuccess)
    result = context->add(stream, std::move(work));
  if (result == cuda::kSuccess)
    return;
  const ResultWords *words = findWords(result);
  const char *report = failureReport();
  throw RunError(
      fmt::format("emulated GPU: {}", *report ? report : words->text));
}

} // namespace rota::simt
