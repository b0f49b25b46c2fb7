// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/DeviceBench.h"
#include "runtime/Error.h"
#include "tools/Median.h"

#include <algorithm>
#include <cstring>

namespace rota {
namespace {

constexpr int64_t kPieceBytes = 8 << 20; // size of fills and checks
/// Inputs of the repetitions together exceed every cache.
constexpr int64_t kRotatedBytes = int64_t(256) << 20;
constexpr int64_t kMostSets = 8;
/// A group of runs takes so long, and has at most so many.
constexpr double kGroupSeconds = 2e-3;
constexpr int64_t kMostInGroup = 100;
/// Shorter work counts as so long when groups and samples are counted: events
/// are less exact, and may be at the same time.
constexpr double kLeastSeconds = 1e-6;

/// Values in (0, 1] without a pattern; i32: from 0 to 15, which are rows of
/// every table.
void fillPiece(const std::string &element, std::vector<uint32_t> &words) {
  for (size_t i = 0; i < words.size(); ++i) {
    uint32_t random = uint32_t(i) * 2654435761u;
    random = (random ^ random >> 15) * 2246822519u;
    auto value = [](uint32_t bits) { return float(bits % 4096 + 1) / 4096; };
    auto bitsOf = [](float value) {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      return bits;
    };
    if (element == "i32")
      words[i] = random >> 28;
    else if (element == "f32")
      words[i] = bitsOf(value(random));
    else
      words[i] = bitsOf(value(random)) >> 16 |
                 (bitsOf(value(random >> 12)) & 0xffff0000u);
  }
}

/// Whether every element of the words is finite: its exponent is not all ones.
bool isFinite(const std::string &element, std::span<const uint32_t> words) {
  uint32_t low = 0x7f80, high = 0x7f800000;
  bool halves = element == "bf16";
  return std::none_of(words.begin(), words.end(), [&](uint32_t word) {
    return (word & high) == high || (halves && (word & low) == low);
  });
}

} // namespace

/// Products of the device take no memory that is gone.
DeviceBench::~DeviceBench() { device.useWorkspace(nullptr, nullptr, 0); }

void DeviceBench::allocate(std::vector<Buffer> described) {
  buffers = std::move(described);
  offsets.clear();
  setBytes = 0;
  for (const Buffer &buffer : buffers) {
    offsets.push_back(setBytes);
    setBytes += (buffer.bytes + 255) / 256 * 256;
  }
  sets = isEmulated
             ? 1
             : std::clamp<int64_t>(kRotatedBytes / setBytes, 1, kMostSets);
  next = 0;
  arena.reset(); // so that there is room for the next
  arena = device.makeArena(sets * setBytes + kProductWorkspace);
  void *workspace = arena->at(sets * setBytes);
  device.useWorkspace(workspace, workspace, kProductWorkspace);
  for (int64_t set = 0; set < sets; ++set)
    for (size_t i = 0; i < buffers.size(); ++i)
      fill(buffers[i], static_cast<char *>(at(set, i)));
}

double DeviceBench::measure(const Run &run) {
  for (int64_t set = 0; set < sets; ++set)
    run(set); // loads code and chooses products
  if (isEmulated)
    return time(run, 1);
  double once =
      std::max(kLeastSeconds, median(sample(run, 1, durations.warmUp)));
  int64_t group =
      std::clamp<int64_t>(int64_t(kGroupSeconds / once), 1, kMostInGroup);
  return median(sample(run, group, durations.measured));
}

DeviceBench::Run DeviceBench::runOf(std::vector<Launch> launches) {
  std::vector<const Kernel *> asked;
  for (Launch &launch : launches) {
    Kernel &kernel = kernels.emplace_back(std::move(launch), RotaGpuLaunch{});
    kernel.form.name = kernel.launch.kernel.c_str();
    for (int i = 0; i < 3; ++i)
      kernel.form.grid[i] = uint32_t(kernel.launch.grid[i]);
    kernel.form.block = uint32_t(kernel.launch.block);
    kernel.form.sharedBytes = kernel.launch.sharedBytes;
    kernel.form.ownSharedBytes = kernel.launch.ownSharedBytes;
    kernel.form.arguments = int64_t(kernel.launch.arguments.size());
    asked.push_back(&kernel);
  }
  return [this, asked](int64_t set) {
    for (const Kernel *kernel : asked) {
      std::vector<void *> places;
      for (int64_t argument : kernel->launch.arguments)
        places.push_back(at(set, size_t(argument)));
      device.launch(nullptr, &kernel->form, places.data(), 1, 1);
    }
  };
}

void DeviceBench::check() {
  std::vector<uint32_t> words;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = buffers[i];
    if (buffer.isGiven || (buffer.element != "f32" && buffer.element != "bf16"))
      continue;
    for (int64_t from = 0; from < buffer.bytes; from += kPieceBytes) {
      int64_t bytes = std::min(kPieceBytes, buffer.bytes - from);
      words.assign(size_t(bytes + 3) / 4, 0);
      device.read(static_cast<char *>(at(0, i)) + from, words.data(), bytes);
      if (!isFinite(buffer.element, words))
        throw RunError("buffer " + std::to_string(i) +
                       " has a value that is not finite");
    }
  }
}

/// Seconds of a run in each group, of groups that take `total` together.
std::vector<double> DeviceBench::sample(const Run &run, int64_t group,
                                        double total) {
  std::vector<double> samples;
  for (double taken = 0; taken < total || samples.empty();
       taken += std::max(kLeastSeconds, samples.back()) * double(group))
    samples.push_back(time(run, group));
  return samples;
}

double DeviceBench::time(const Run &run, int64_t group) {
  Device::TimePoint begin = device.mark();
  for (int64_t i = 0; i < group; ++i)
    run(next++ % sets);
  Device::TimePoint end = device.mark();
  double seconds = device.secondsAt(end) - device.secondsAt(begin);
  device.forget(end);
  return seconds / double(group);
}

void DeviceBench::fill(const Buffer &buffer, char *place) {
  std::vector<uint32_t> words(size_t(std::min(kPieceBytes, buffer.bytes) + 3) /
                                  4,
                              0xffffffffu); // NaNs
  if (buffer.isGiven)
    fillPiece(buffer.element, words);
  for (int64_t from = 0; from < buffer.bytes; from += kPieceBytes)
    device.write(words.data(), place + from,
                 std::min(kPieceBytes, buffer.bytes - from));
}

std::vector<DeviceBench::Buffer> buffersOf(const RotaGemm &gemm) {
  auto buffer = [](int32_t type, int64_t count, bool isGiven) {
    bool isHalf = type == ROTA_BF16;
    return DeviceBench::Buffer{isHalf ? "bf16" : "f32",
                               (isHalf ? 2 : 4) * count, isGiven};
  };
  return {buffer(gemm.typeA, gemm.m * gemm.k, true),
          buffer(gemm.typeB, gemm.k * gemm.n, true),
          buffer(gemm.typeC, gemm.m * gemm.n, gemm.accumulate != 0)};
}

} // namespace rota
