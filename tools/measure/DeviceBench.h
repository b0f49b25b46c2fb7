// SPDX-License-Identifier: Apache-2.0
//
// The time of work on a GPU, by the GPU's clock.
#ifndef ROTA_TOOLS_MEASURE_DEVICEBENCH_H
#define ROTA_TOOLS_MEASURE_DEVICEBENCH_H

#include "runtime/device/services/MakeDevice.h"

#include <array>
#include <deque>
#include <functional>

namespace rota {

/// Bytes of a trainer's workspace for products.
inline constexpr int64_t kProductWorkspace = (32 << 20) + 256;

/// Buffers on a device, and the time of work on them. On the emulated GPU work
/// is done twice, and its time says nothing of a GPU.
class DeviceBench {
public:
  struct Buffer {
    std::string element; // "bf16", "f32", "i32"; others are left alone
    int64_t bytes = 0;
    bool isGiven = false; // an operand, not a result
  };
  /// A launch of a kernel of the device's code.
  struct Launch {
    std::string kernel;
    std::array<int64_t, 3> grid;
    int64_t block, sharedBytes, ownSharedBytes;
    std::vector<int64_t> arguments; // numbers of buffers
  };
  using Run = std::function<void(int64_t set)>;
  /// Seconds of each measurement.
  struct Durations {
    double warmUp = 0.3; // until clocks are those of work
    double measured = 0.5;
  };

  DeviceBench(Device &device, bool isEmulated, Durations durations)
      : device(device), isEmulated(isEmulated), durations(durations) {}
  ~DeviceBench();

  /// Makes as many copies of the buffers as caches ask for, in the place of
  /// those before. Operands are in (0, 1], i32 from 0 to 15; results are NaNs.
  /// Throws RunError where the device has not that much memory.
  void allocate(std::vector<Buffer> described);

  /// The place of a buffer in that copy of all.
  void *at(int64_t set, size_t buffer) const {
    return arena->at(set * setBytes + offsets[buffer]);
  }

  /// Seconds of run(set), which asks the device for work on that copy: the
  /// median over groups of runs, each long enough to hide what the host does
  /// between two launches.
  double measure(const Run &run);

  /// Asks for the launches, one after another. It lives no longer than this
  /// object.
  Run runOf(std::vector<Launch> launches);

  /// Throws RunError where a result is not finite.
  void check();

private:
  std::vector<double> sample(const Run &run, int64_t group, double total);
  double time(const Run &run, int64_t group);
  void fill(const Buffer &buffer, char *place);

  Device &device;
  bool isEmulated;
  Durations durations;
  std::unique_ptr<Arena> arena;
  std::vector<Buffer> buffers;
  std::vector<int64_t> offsets;
  // Devices know the kernel of a description by its address, which is given to
  // no other one.
  struct Kernel {
    Launch launch;
    RotaGpuLaunch form;
  };
  std::deque<Kernel> kernels;
  int64_t setBytes = 0, sets = 1, next = 0;
};

/// Product `gemm` of one batch as buffers: a, b and c, which is given where the
/// product is added to it.
std::vector<DeviceBench::Buffer> buffersOf(const RotaGemm &gemm);

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_DEVICEBENCH_H
