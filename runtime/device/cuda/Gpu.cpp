// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Gpu.h"
#include "runtime/device/Device.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota::cuda {

/// Dynamic shared memory that a kernel has without asking.
static constexpr int64_t kFreeSharedBytes = 48 << 10;

static int attributeOf(const DriverApi &api, int attribute, Ordinal device) {
  int value = 0;
  api.deviceAttribute(&value, attribute, device);
  return value;
}

Gpu::Gpu(const DriverApi &api, int ordinal, std::span<const RotaGpuCode> code)
    : driver(api), number(ordinal) {
  check(driver.init(0), "starting the driver");
  int count = 0;
  driver.deviceCount(&count);
  if (ordinal >= count)
    throw InputError(fmt::format("expected GPU {} on this machine, it has {} "
                                 "(CUDA_VISIBLE_DEVICES may hide others)",
                                 ordinal, count));
  check(driver.device(&device, ordinal), "opening the GPU");
  char text[256] = "";
  driver.deviceName(text, sizeof text, device);
  deviceName = text;
  capability = 10 * attributeOf(driver, kCapabilityMajor, device) +
               attributeOf(driver, kCapabilityMinor, device);
  processors = attributeOf(driver, kMultiprocessorCount, device);
  mostSharedBytes = attributeOf(driver, kMostSharedBytesByChoice, device);
  check(driver.retainContext(&context, device), "opening the GPU");
  try {
    use();
    load(code);
  } catch (...) {
    driver.releaseContext(device);
    throw;
  }
}

Gpu::~Gpu() {
  driver.setContext(context);
  if (module)
    driver.unloadModule(module);
  driver.releaseContext(device);
}

Result Gpu::enter() const { return driver.setContext(context); }

void Gpu::use() const { check(enter(), "using the GPU"); }

Gpu::CallLock Gpu::oneAtATime() const {
  return isRecordingShared ? CallLock(calls) : CallLock();
}

/// PTX runs on its architecture and later ones; a cubin on those with the same
/// first digit and a second one that is at least as high; other code on its
/// architecture alone.
static bool fits(const RotaGpuCode &code, int architecture) {
  switch (code.form) {
  case ROTA_GPU_PTX:
    return code.architecture <= architecture;
  case ROTA_GPU_CUBIN:
    return code.architecture <= architecture &&
           code.architecture / 10 == architecture / 10;
  default:
    return code.architecture == architecture;
  }
}

static std::string architecturesOf(std::span<const RotaGpuCode> code) {
  std::string text;
  for (const RotaGpuCode &form : code)
    text += fmt::format(
        "{}{} for sm_{}{}", text.empty() ? "" : ", ",
        form.form == ROTA_GPU_PTX || form.form == ROTA_GPU_OWN_PTX ? "PTX"
                                                                   : "code",
        form.architecture,
        form.form == ROTA_GPU_OWN_PTX || form.form == ROTA_GPU_OWN_CUBIN ? "a"
                                                                         : "");
  return text;
}

/// The newest code comes first; of one architecture that with instructions of
/// its own, and a cubin before PTX.
void Gpu::load(std::span<const RotaGpuCode> code) {
  std::vector<RotaGpuCode> forms(code.begin(), code.end());
  std::erase_if(forms,
                [&](const RotaGpuCode &f) { return !fits(f, capability); });
  std::sort(forms.begin(), forms.end(),
            [](const RotaGpuCode &a, const RotaGpuCode &b) {
              return std::pair(a.architecture, a.form) >
                     std::pair(b.architecture, b.form);
            });
  if (forms.empty())
    throw InputError(fmt::format(
        "GPU {} ({}) is an sm_{}: expected code for it in this trainer, which "
        "has {}; compile with --target-gpu",
        number, deviceName, capability, architecturesOf(code)));
  Result result = kSuccess;
  for (const RotaGpuCode &form : forms) {
    result = driver.loadModule(&module, form.data, 0, nullptr, nullptr);
    loadedForm = form.form;
    if (result == kSuccess)
      return;
  }
  int version = 0;
  driver.driverVersion(&version);
  if (result == kUnsupportedPtxVersion || result == kInvalidPtx ||
      result == kNoBinaryForGpu)
    throw InputError(fmt::format(
        "GPU {} ({}): the driver, for CUDA {}.{}, is too old for this "
        "trainer's code ({})",
        number, deviceName, version / 1000, version % 1000 / 10,
        architecturesOf(forms)));
  check(result, "loading the kernels");
}

int64_t Gpu::sharedBytesOf(const RotaGpuLaunch &launch) const {
  bool isOwn = launch.ownSharedBytes > 0;
  switch (loadedForm) {
  case ROTA_GPU_OWN_PTX:
  case ROTA_GPU_OWN_CUBIN:
    return isOwn ? launch.ownSharedBytes : launch.sharedBytes;
  case ROTA_GPU_HOST: // was compiled in either form
    return std::max(launch.sharedBytes, launch.ownSharedBytes);
  default:
    return launch.sharedBytes;
  }
}

FunctionHandle Gpu::function(const char *name, int64_t sharedBytes) {
  if (sharedBytes > mostSharedBytes)
    throw InputError(fmt::format(
        "GPU {} ({}): expected at most {} bytes of shared memory for a block, "
        "as much as it has; '{}' needs {}",
        number, deviceName, mostSharedBytes, name, sharedBytes));
  std::lock_guard lock(mutex);
  auto found = functions.find(name);
  if (found == functions.end()) {
    FunctionHandle handle = nullptr;
    check(driver.moduleFunction(&handle, module, name), name);
    found = functions.emplace(name, handle).first;
  }
  if (sharedBytes > kFreeSharedBytes)
    check(driver.setFunctionAttribute(found->second, kMostDynamicSharedBytes,
                                      static_cast<int>(sharedBytes)),
          name);
  return found->second;
}

void Gpu::check(Result result, const char *what) const {
  if (result == kSuccess)
    return;
  const char *report = driver.failureReport ? driver.failureReport() : "";
  if (*report)
    throw DeviceError(report);
  const char *text = "unknown error", *name = "CUDA_ERROR_UNKNOWN";
  driver.errorText(result, &text);
  driver.errorName(result, &name);
  throw DeviceError(fmt::format(
      "GPU {}{}: {}: {} ({})", number,
      deviceName.empty() ? "" : " (" + deviceName + ")", what, text, name));
}

OwnedStream::OwnedStream(Gpu &gpu) : gpu(gpu) {
  gpu.use();
  gpu.check(gpu.api().createStream(&stream, kNonBlockingStream),
            "making a stream");
}

OwnedStream::~OwnedStream() {
  gpu.enter();
  gpu.api().synchronizeStream(stream);
  gpu.api().destroyStream(stream);
}

OwnedEvent::OwnedEvent(Gpu &gpu, bool timing) : gpu(gpu) {
  gpu.use();
  gpu.check(gpu.api().createEvent(&event,
                                  timing ? kTimingEvent : kEventWithoutTiming),
            "making an event");
}

OwnedEvent::~OwnedEvent() {
  gpu.enter();
  gpu.api().destroyEvent(event);
}

} // namespace rota::cuda
