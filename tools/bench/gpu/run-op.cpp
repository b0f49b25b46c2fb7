// SPDX-License-Identifier: Apache-2.0
//
// The time of GPU work, on the GPU's clock: the launches that
// bench-gpu-compile wrote, a product of matrices, or a copy.
//   bench-gpu CODE.so op LAUNCHES.json
//   bench-gpu CODE.so gemm M N K TRANSPOSE-A TRANSPOSE-B ACCUMULATE
//   bench-gpu CODE.so copy BYTES
// The form of the code says whether the GPU is NVIDIA's or emulated. Prints a
// line of JSON: seconds (the median) and the GPU's name. Fails where a result
// is not finite; results are NaN before the run.
#include "runtime/Error.h"
#include "runtime/device/services/MakeDevice.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;

constexpr int64_t kPieceBytes = 8 << 20; // size of fills and checks
/// Inputs of the repetitions together exceed every cache.
constexpr int64_t kRotatedBytes = int64_t(256) << 20;
constexpr int64_t kMostSets = 8;
constexpr double kWarmUpSeconds = 0.3; // until clocks are those of work
constexpr double kMeasuredSeconds = 0.5;
constexpr int64_t kWorkspaceBytes = (32 << 20) + 256; // a trainer's

struct Buffer {
  std::string element; // "bf16", "f32", "i32"; others are left alone
  int64_t bytes = 0;
  bool given = false; // an operand, not a result
};

template <typename T> T *symbolOf(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  if (!symbol)
    throw rota::InputError(std::string("expected '") + name + "' in the code");
  return static_cast<T *>(symbol);
}

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

class Bench {
public:
  Bench(std::span<const RotaGpuCode> code) {
    emulated = code.front().form == ROTA_GPU_HOST;
    device = std::move(rota::makeDevices(emulated ? rota::DeviceKind::Simt
                                                  : rota::DeviceKind::Cuda,
                                         1, code, {})
                           .ranks.front());
  }

  /// Makes as many copies of the buffers as caches ask for.
  void allocate(std::vector<Buffer> described) {
    buffers = std::move(described);
    int64_t size = 0;
    for (const Buffer &buffer : buffers) {
      offsets.push_back(size);
      size += (buffer.bytes + 255) / 256 * 256;
    }
    setBytes = size;
    sets =
        emulated ? 1 : std::clamp<int64_t>(kRotatedBytes / size, 1, kMostSets);
    workspaceAt = sets * size;
    arena = device->makeArena(workspaceAt + kWorkspaceBytes);
    void *workspace = arena->at(workspaceAt);
    device->useWorkspace(workspace, workspace, kWorkspaceBytes);
    for (int64_t set = 0; set < sets; ++set)
      for (size_t i = 0; i < buffers.size(); ++i)
        fill(buffers[i], static_cast<char *>(at(set, i)));
  }

  void *at(int64_t set, size_t buffer) const {
    return arena->at(set * setBytes + offsets[buffer]);
  }

  /// Seconds of one run(set): the median over groups of runs, each long
  /// enough to hide what the host does between two launches.
  template <typename F> double measure(F run) {
    for (int64_t set = 0; set < sets; ++set)
      run(set); // loads code and chooses products
    if (emulated)
      return time(run, 1);
    double once = median(sample(run, 1, kWarmUpSeconds));
    int64_t group = std::clamp<int64_t>(2e-3 / once, 1, 100);
    return median(sample(run, group, kMeasuredSeconds));
  }

  /// Throws RunError where a result is not finite.
  void check() {
    std::vector<uint32_t> words;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Buffer &buffer = buffers[i];
      if (buffer.given || (buffer.element != "f32" && buffer.element != "bf16"))
        continue;
      for (int64_t from = 0; from < buffer.bytes; from += kPieceBytes) {
        int64_t bytes = std::min(kPieceBytes, buffer.bytes - from);
        words.assign((bytes + 3) / 4, 0);
        device->read(static_cast<char *>(at(0, i)) + from, words.data(), bytes);
        if (!isFinite(buffer.element, words))
          throw rota::RunError("buffer " + std::to_string(i) +
                               " has a value that is not finite");
      }
    }
  }

  rota::Device &getDevice() { return *device; }

private:
  /// Seconds of a run in each group, of groups that take `total` together.
  template <typename F>
  std::vector<double> sample(F run, int64_t group, double total) {
    std::vector<double> samples;
    for (double taken = 0; taken < total;
         taken += samples.back() * double(group))
      samples.push_back(time(run, group));
    return samples;
  }

  static double median(std::vector<double> samples) {
    auto middle = samples.begin() + samples.size() / 2;
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
  }

  template <typename F> double time(F run, int64_t group) {
    rota::Device::TimePoint begin = device->mark();
    for (int64_t i = 0; i < group; ++i)
      run(next++ % sets);
    rota::Device::TimePoint end = device->mark();
    double seconds = device->secondsAt(end) - device->secondsAt(begin);
    device->forget(end);
    return seconds / double(group);
  }

  void fill(const Buffer &buffer, char *place) {
    std::vector<uint32_t> words(kPieceBytes / 4, 0xffffffffu); // NaNs
    if (buffer.given)
      fillPiece(buffer.element, words);
    for (int64_t from = 0; from < buffer.bytes; from += kPieceBytes)
      device->write(words.data(), place + from,
                    std::min(kPieceBytes, buffer.bytes - from));
  }

  bool emulated;
  std::unique_ptr<rota::Device> device;
  std::unique_ptr<rota::Arena> arena; // gone before the device
  std::vector<Buffer> buffers;
  std::vector<int64_t> offsets;
  int64_t setBytes = 0, sets = 1, workspaceAt = 0, next = 0;
};

double runLaunches(Bench &bench, const char *path) {
  std::ifstream file(path);
  Json plan = Json::parse(file);
  std::vector<Buffer> buffers;
  for (const Json &item : plan["buffers"])
    buffers.push_back({item["element"], item["bytes"], item["given"]});
  struct Launch {
    std::string name;
    RotaGpuLaunch shape;
    std::vector<int64_t> arguments;
  };
  std::vector<Launch> launches;
  for (const Json &item : plan["launches"]) {
    Launch launch{item["kernel"], {}, item["arguments"]};
    for (int i = 0; i < 3; ++i)
      launch.shape.grid[i] = item["grid"][i];
    launch.shape.block = item["block"];
    launch.shape.sharedBytes = item["shared"];
    launch.shape.arguments = int64_t(launch.arguments.size());
    launches.push_back(std::move(launch));
  }
  for (Launch &launch : launches)
    launch.shape.name = launch.name.c_str();
  bench.allocate(std::move(buffers));
  return bench.measure([&](int64_t set) {
    for (const Launch &launch : launches) {
      std::vector<void *> pointers;
      for (int64_t argument : launch.arguments)
        pointers.push_back(bench.at(set, argument));
      bench.getDevice().launch(nullptr, &launch.shape, pointers.data(), 1, 1);
    }
  });
}

double runGemm(Bench &bench, char **arguments) {
  RotaGemm g = {};
  g.batch = 1;
  g.m = std::atoll(arguments[0]);
  g.n = std::atoll(arguments[1]);
  g.k = std::atoll(arguments[2]);
  g.transposeA = std::atoi(arguments[3]);
  g.transposeB = std::atoi(arguments[4]);
  g.accumulate = std::atoi(arguments[5]);
  g.lda = g.transposeA ? g.m : g.k;
  g.ldb = g.transposeB ? g.k : g.n;
  g.ldc = g.n;
  g.typeA = g.typeB = ROTA_BF16;
  g.typeC = g.accumulate ? ROTA_F32 : ROTA_BF16; // as gradients of weights
  // The matrix that is added to is given; it stays finite.
  bench.allocate({{"bf16", 2 * g.m * g.k, true},
                  {"bf16", 2 * g.k * g.n, true},
                  {g.accumulate ? "f32" : "bf16",
                   (g.accumulate ? 4 : 2) * g.m * g.n, g.accumulate != 0}});
  return bench.measure([&](int64_t set) {
    bench.getDevice().multiply(nullptr, g, bench.at(set, 0), bench.at(set, 1),
                               bench.at(set, 2));
  });
}

double runCopy(Bench &bench, int64_t bytes) {
  bench.allocate({{"f32", bytes, true}, {"f32", bytes, false}});
  return bench.measure([&](int64_t set) {
    bench.getDevice().copy(nullptr, bench.at(set, 0), bench.at(set, 1), bytes);
  });
}

int run(int argc, char **argv) {
  std::string what = argc > 2 ? argv[2] : "";
  int count = what == "gemm" ? 9 : what == "op" || what == "copy" ? 4 : 0;
  if (argc != count)
    throw rota::InputError("expected CODE.so op LAUNCHES.json, CODE.so gemm "
                           "M N K TA TB ACCUMULATE, or CODE.so copy BYTES");
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library)
    throw rota::InputError(dlerror());
  Bench bench({symbolOf<const RotaGpuCode>(library, "rotaGpuCode"),
               size_t(*symbolOf<int64_t>(library, "rotaGpuCodeCount"))});
  double seconds = what == "op"     ? runLaunches(bench, argv[3])
                   : what == "gemm" ? runGemm(bench, argv + 3)
                                    : runCopy(bench, std::atoll(argv[3]));
  bench.check();
  std::printf("%s\n",
              Json{{"seconds", seconds}, {"device", bench.getDevice().name()}}
                  .dump()
                  .c_str());
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
