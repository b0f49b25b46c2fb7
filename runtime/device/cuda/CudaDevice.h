// SPDX-License-Identifier: Apache-2.0
//
// A rank's share of a GPU: NVIDIA's through its driver, or the emulated one.
// The rank's thread asks for work, which the GPU does in this order on the
// rank's compute stream.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
#define ROTA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H

#include "runtime/device/Device.h"
#include "runtime/device/cuda/EventClock.h"
#include "runtime/device/cuda/GatheredLaunches.h"
#include "runtime/device/cuda/PinnedMemory.h"
#include "runtime/device/cuda/Products.h"

#include <optional>
#include <unordered_map>

namespace rota::cuda {

class CudaDevice : public Device {
public:
  CudaDevice(std::shared_ptr<Gpu> gpu, std::unique_ptr<Products> products);

  std::string name() const override { return ownGpu->name(); }
  Memory memory() const override;
  /// Throws RunError with the bytes that are needed and free.
  std::unique_ptr<Arena> makeArena(int64_t bytes) override;
  std::unique_ptr<Arena> makeHostArena(int64_t bytes) override;

  void copy(RotaContext *context, const void *source, void *destination,
            int64_t bytes) override;
  void zero(RotaContext *context, void *place, int64_t bytes) override;
  void read(const void *source, void *host, int64_t bytes) override;
  void write(const void *host, void *destination, int64_t bytes) override;
  std::unique_ptr<HostRead> startRead(const void *source,
                                      int64_t bytes) override;
  void
  hostLoop(RotaContext *context, int64_t count,
           std::span<const HostOperand> operands,
           FunctionRef<void(int64_t, int64_t, char *const *)> body) override;
  void add(RotaContext *context, ElementType type, void *sum, const void *terms,
           int64_t count) override;
  void round(RotaContext *context, const float *values, uint16_t *rounded,
             int64_t count) override;
  void sum(RotaContext *context, const float *values, int64_t count,
           double *sum) override;
  void finishStep(const StepNumbers &numbers) override;
  void decideStep(const StepDecision &decision) override;
  void findCotangents(const CotangentNumbers &numbers) override;
  /// With a profile, which measures each launch, all are apart.
  void launchTogether(RotaContext *context, TableMemory &memory, int64_t count,
                      FunctionRef<void(int64_t)> ask) override;
  void launch(RotaContext *context, RotaKernel kernel, void *const *args,
              int64_t rows, int64_t grain) override;
  void multiply(RotaContext *context, const RotaGemm &gemm, const void *a,
                const void *b, void *c) override;
  /// Nothing: readers of data have checked it, and kernels leave out what is
  /// out of bounds.
  void checkIndices(RotaContext *, const int32_t *, int64_t, int64_t,
                    int64_t) override {}
  /// Gets all functions of the trainer's code, which loads them, and prepares
  /// the products.
  void prepareTasks(RotaContext *context,
                    FunctionRef<void(RotaContext *)> runTasks) override;
  void useWorkspace(void *place, void *second, int64_t bytes) override;
  /// The host asks for one after the other, on two streams.
  void runBeside(FunctionRef<void()> first,
                 FunctionRef<void()> second) override;
  void synchronize() override;
  int64_t launches() const override { return launchCount; }
  bool isAsynchronous() const override { return true; }
  void setPosition(int number) override;
  int position() const override;
  void setCall(int action, int layer) override;
  std::optional<FullExperts> fullExperts() const override;
  TimePoint mark() override { return clock.mark(computeStream()); }
  double secondsAt(TimePoint point) override { return clock.secondsAt(point); }
  void forget(TimePoint point) override { clock.forget(point); }

  // For communicators.
  /// Between the two calls the compute stream captures a graph instead of doing
  /// what it is asked for; so does each stream that waits for an event of the
  /// capture. The compute stream has to wait for all of these streams before
  /// the capture ends. Any thread may make either call. Throws RunError.
  void beginRecording();
  std::unique_ptr<Recording> endRecording();
  /// Ends a capture after a failure, so that its streams do what they are asked
  /// for again. Without a capture it does nothing.
  void abandonRecording();
  Gpu &gpu() const { return *ownGpu; }
  /// That of the work that is asked for now.
  StreamHandle computeStream() const {
    return inSecond ? second->get() : compute.get();
  }
  /// Launches a kernel of ServiceKernels.h for `count` elements on `stream`;
  /// arguments[i] is the address of argument i. Throws RunError.
  void launchService(const char *kernel, int64_t count, void **arguments,
                     StreamHandle stream);

private:
  struct AskedProduct {
    RotaGemm gemm;
    const void *a, *b;
    void *c;
  };
  /// The kernel of a launch.
  FunctionHandle functionOf(const RotaGpuLaunch &form);
  void launchTable(const LaunchTable &table, char *memory);
  /// launchService on the compute stream; in one block where `count` is 1.
  void computeService(const char *kernel, int64_t count, void **arguments);

  std::shared_ptr<Gpu> ownGpu;
  OwnedStream compute;
  // The second work of runBeside: its stream, where there is any; and the
  // events at which it begins and ends.
  std::optional<OwnedStream> second;
  OwnedEvent fork, join;
  bool inSecond = false;
  std::unique_ptr<Products> products;
  PinnedRing staging; // staging of writes
  PinnedReads reads;
  EventClock clock;
  PinnedBuffer progress; // i32: the position that the GPU has come to
  PinnedBuffer notes;    // a FullExperts
  uint64_t call = 0;     // action and layer of the work that is asked for
  int64_t launchCount = 0;
  GatheredLaunches *gathered = nullptr; // inside of launchTogether
  // Inside of prepareTasks, where nothing is done.
  std::vector<AskedProduct> *asked = nullptr;
  std::unordered_map<RotaKernel, FunctionHandle> kernels;
  void *workspace = nullptr, *secondWorkspace = nullptr;
  int64_t workspaceBytes = 0;
};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
