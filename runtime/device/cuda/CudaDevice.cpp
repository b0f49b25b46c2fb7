// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/Context.h"
#include "runtime/device/cuda/CudaArena.h"
#include "runtime/device/cuda/ServiceKernels.h"
#include "runtime/program/RuntimeMemory.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace rota::cuda {

/// Bytes of a piece of a long read or write.
static constexpr int64_t kPieceBytes = 4 << 20;
/// Elements of a piece of a host loop, and those that one thread takes.
static constexpr int64_t kLoopElements = 1 << 20, kThreadElements = 1 << 16;

static Address addressOf(const void *place) {
  return reinterpret_cast<Address>(place);
}

/// Calls `body` and reports what it throws to the context: compiled code, which
/// may be the caller, cannot be unwound. Without a context the exception goes
/// on.
template <typename F> static void guard(RotaContext *context, F body) {
  try {
    body();
  } catch (const std::exception &error) {
    if (!context)
      throw;
    reportFailure(context, error.what());
  }
}

CudaDevice::CudaDevice(std::shared_ptr<Gpu> gpu,
                       std::unique_ptr<Products> products)
    : ownGpu(std::move(gpu)), compute(*ownGpu), fork(*ownGpu, false),
      join(*ownGpu, false), products(std::move(products)),
      staging(*ownGpu, kStagingBytes), reads(*ownGpu), clock(*ownGpu),
      progress(*ownGpu, sizeof(int32_t)), notes(*ownGpu, sizeof(FullExperts)) {
  *reinterpret_cast<int32_t *>(progress.data()) = -1;
}

Device::Memory CudaDevice::memory() const {
  size_t free = 0, total = 0;
  ownGpu->use();
  ownGpu->check(ownGpu->api().memoryInfo(&free, &total),
                "asking for its memory");
  return {static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

std::unique_ptr<Arena> CudaDevice::makeArena(int64_t bytes) {
  return std::make_unique<CudaArena>(*this, bytes);
}

std::unique_ptr<Arena> CudaDevice::makeHostArena(int64_t bytes) {
  return std::make_unique<PinnedArena>(*ownGpu, bytes);
}

void CudaDevice::copy(RotaContext *context, const void *source,
                      void *destination, int64_t bytes) {
  guard(context, [&] {
    Gpu::CallLock held = ownGpu->oneAtATime();
    ownGpu->use();
    if (bytes > 0 && !asked)
      ownGpu->check(
          ownGpu->api().copy(addressOf(destination), addressOf(source),
                             static_cast<size_t>(bytes), computeStream()),
          "copying");
  });
}

void CudaDevice::zero(RotaContext *context, void *place, int64_t bytes) {
  guard(context, [&] {
    Gpu::CallLock held = ownGpu->oneAtATime();
    ownGpu->use();
    if (bytes <= 0)
      return;
    ++launchCount;
    ownGpu->check(ownGpu->api().fill8(addressOf(place), 0,
                                      static_cast<size_t>(bytes),
                                      computeStream()),
                  "zeroing");
  });
}

void CudaDevice::read(const void *source, void *host, int64_t bytes) {
  auto *from = static_cast<const char *>(source);
  auto *to = static_cast<char *>(host);
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    auto piece = reads.start(from + at, std::min(kPieceBytes, bytes - at),
                             computeStream());
    std::span<const char> got = piece->wait();
    std::copy(got.begin(), got.end(), to + at);
  }
}

void CudaDevice::write(const void *host, void *destination, int64_t bytes) {
  ownGpu->use();
  auto *from = static_cast<const char *>(host);
  auto *to = static_cast<char *>(destination);
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    int64_t count = std::min(kPieceBytes, bytes - at);
    char *room = staging.take(count);
    std::copy(from + at, from + at + count, room);
    copy(nullptr, room, to + at, count);
    staging.release(computeStream());
  }
}

std::unique_ptr<HostRead> CudaDevice::startRead(const void *source,
                                                int64_t bytes) {
  return reads.start(source, bytes, computeStream());
}

void CudaDevice::hostLoop(
    RotaContext *context, int64_t count, std::span<const HostOperand> operands,
    FunctionRef<void(int64_t, int64_t, char *const *)> body) {
  std::vector<char> buffers[kMostHostOperands];
  for (int64_t begin = 0; begin < count; begin += kLoopElements) {
    int64_t end = std::min(count, begin + kLoopElements);
    for (size_t i = 0; i < operands.size(); ++i) {
      const HostOperand &operand = operands[i];
      buffers[i].resize(
          static_cast<size_t>((end - begin) * operand.elementBytes));
      if (operand.access != HostOperand::Access::Write)
        read(static_cast<char *>(operand.place) + begin * operand.elementBytes,
             buffers[i].data(), static_cast<int64_t>(buffers[i].size()));
    }
    int64_t pieces = (end - begin + kThreadElements - 1) / kThreadElements;
    parallelPieces(context, pieces, [&](int64_t piece) {
      int64_t first = begin + piece * kThreadElements;
      char *hosts[kMostHostOperands];
      for (size_t i = 0; i < operands.size(); ++i)
        hosts[i] =
            buffers[i].data() + (first - begin) * operands[i].elementBytes;
      body(first, std::min(end, first + kThreadElements), hosts);
    });
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i].access != HostOperand::Access::Read)
        write(buffers[i].data(),
              static_cast<char *>(operands[i].place) +
                  begin * operands[i].elementBytes,
              static_cast<int64_t>(buffers[i].size()));
  }
}

void CudaDevice::add(RotaContext *context, ElementType type, void *sum,
                     const void *terms, int64_t count) {
  void *arguments[] = {&sum, &terms, &count};
  const char *kernel = kAddKernels[static_cast<int>(type)];
  guard(context, [&] { computeService(kernel, count, arguments); });
}

void CudaDevice::round(RotaContext *context, const float *values,
                       uint16_t *rounded, int64_t count) {
  void *arguments[] = {&rounded, &values, &count};
  guard(context, [&] { computeService(kRoundKernel, count, arguments); });
}

void CudaDevice::sum(RotaContext *context, const float *values, int64_t count,
                     double *sum) {
  if (gathered)
    return gathered->add({values, count, sum});
  void *arguments[] = {&sum, &values, &count};
  guard(context, [&] { computeService(kSumKernel, 1, arguments); });
}

void CudaDevice::finishStep(const StepNumbers &numbers) {
  StepNumbers n = numbers;
  void *arguments[] = {&n.squares,        &n.order,       &n.orderCount,
                       &n.losses.values,  &n.losses.rows, &n.losses.calls,
                       &n.losses.numbers, &n.clip,        &n.scale,
                       &n.result};
  computeService(kFinishStepKernel, 1, arguments);
}

void CudaDevice::decideStep(const StepDecision &decision) {
  StepDecision d = decision;
  void *arguments[] = {&d.losses.values,  &d.losses.rows, &d.losses.calls,
                       &d.losses.numbers, &d.deviations,  &d.history,
                       &d.scalars,        &d.scalarCount, &d.scaleNumber,
                       &d.skipNumber,     &d.stepScalars, &d.result};
  computeService(kDecideStepKernel, 1, arguments);
}

void CudaDevice::findCotangents(const CotangentNumbers &numbers) {
  CotangentNumbers n = numbers;
  void *arguments[] = {&n.losses.values,  &n.losses.rows, &n.losses.calls,
                       &n.losses.numbers, &n.factors,     &n.count,
                       &n.cotangents};
  computeService(kCotangentsKernel, 1, arguments);
}

void CudaDevice::launch(RotaContext *context, RotaKernel kernel,
                        void *const *args, int64_t, int64_t) {
  auto &form = *static_cast<const RotaGpuLaunch *>(kernel);
  if (gathered && form.table)
    return gathered->add(form, args);
  guard(context, [&] {
    Gpu::CallLock held = ownGpu->oneAtATime();
    ownGpu->use();
    FunctionHandle function = functionOf(form);
    if (asked) {
      if (form.table)
        functionOf(*form.table);
      return;
    }
    std::vector<void *> addresses; // addresses of the arguments
    for (int64_t i = 0; i < form.arguments; ++i)
      addresses.push_back(const_cast<void **>(&args[i]));
    char *place = notes.data();
    if (form.noteAt > 0) {
      addresses[static_cast<size_t>(form.noteAt)] = &place;
      addresses[static_cast<size_t>(form.noteAt) + 1] = &call;
    }
    ++launchCount;
    ownGpu->check(
        ownGpu->api().launch(function, form.grid[0], form.grid[1], form.grid[2],
                             form.block, 1, 1,
                             static_cast<unsigned>(ownGpu->sharedBytesOf(form)),
                             computeStream(), addresses.data(), nullptr),
        form.name);
  });
}

FunctionHandle CudaDevice::functionOf(const RotaGpuLaunch &form) {
  FunctionHandle &function = kernels[&form];
  if (!function)
    function = ownGpu->function(form.name, ownGpu->sharedBytesOf(form));
  return function;
}

void CudaDevice::launchTogether(RotaContext *context, TableMemory &memory,
                                int64_t count, FunctionRef<void(int64_t)> ask) {
  if (context && context->profile)
    return Device::launchTogether(context, memory, count, ask);
  GatheredLaunches launches;
  gathered = &launches;
  try {
    for (int64_t i = 0; i < count; ++i)
      ask(i);
  } catch (...) {
    gathered = nullptr;
    throw;
  }
  gathered = nullptr;

  std::vector<char> content = launches.layOut();
  auto bytes = static_cast<int64_t>(content.size());
  if (bytes > memory.bytes)
    throw RunError(fmt::format("expected tables of launches within {} bytes, "
                               "got {}",
                               memory.bytes, bytes));
  if (content != memory.content) {
    write(content.data(), memory.place, bytes);
    memory.content = std::move(content);
  }
  auto *place = static_cast<char *>(memory.place);
  for (const LaunchTable &table : launches.tables())
    launchTable(table, place);
  if (int64_t sums = launches.sumCount()) {
    void *rows = place + launches.sumsAt();
    void *arguments[] = {&rows, &sums};
    computeService(kSumRowsKernel, sums * int64_t(kServiceThreads), arguments);
  }
}

void CudaDevice::launchTable(const LaunchTable &table, char *memory) {
  void *first = memory + table.firstAt, *rows = memory + table.rowsAt;
  int64_t count = table.count(), trips = table.trips();
  void *arguments[] = {&first, &rows, &count, &trips};
  const RotaGpuLaunch &form = *table.kernel;
  Gpu::CallLock held = ownGpu->oneAtATime();
  ownGpu->use();
  FunctionHandle function = functionOf(form);
  ++launchCount;
  ownGpu->check(
      ownGpu->api().launch(function, static_cast<unsigned>(table.blocks), 1, 1,
                           form.block, 1, 1,
                           static_cast<unsigned>(ownGpu->sharedBytesOf(form)),
                           computeStream(), arguments, nullptr),
      form.name);
}

void CudaDevice::multiply(RotaContext *context, const RotaGemm &gemm,
                          const void *a, const void *b, void *c) {
  if (asked)
    return asked->push_back({gemm, a, b, c});
  guard(context, [&] {
    Gpu::CallLock held = ownGpu->oneAtATime();
    ownGpu->use();
    ++launchCount;
    products->multiply(gemm, a, b, c, inSecond ? secondWorkspace : workspace,
                       workspaceBytes, computeStream());
  });
}

void CudaDevice::prepareTasks(RotaContext *,
                              FunctionRef<void(RotaContext *)> runTasks) {
  ownGpu->use();
  for (const char *kernel : kServiceKernels)
    ownGpu->function(kernel, 0);
  std::vector<AskedProduct> met;
  NoCollectives collectives;
  RotaContext preparing;
  preparing.device = this;
  preparing.collectives = &collectives;
  asked = &met;
  runTasks(&preparing); // compiled code throws nothing
  asked = nullptr;
  if (preparing.failed)
    throw RunError(preparing.failure);
  for (const AskedProduct &product : met)
    products->prepare(product.gemm, product.a, product.b, product.c, workspace,
                      workspaceBytes, compute.get());
}

void CudaDevice::useWorkspace(void *place, void *ofSecond, int64_t bytes) {
  workspace = place;
  secondWorkspace = ofSecond;
  workspaceBytes = bytes;
  if (ofSecond != place)
    second.emplace(*ownGpu);
}

void CudaDevice::runBeside(FunctionRef<void()> firstWork,
                           FunctionRef<void()> secondWork) {
  if (!second) {
    Device::runBeside(firstWork, secondWork);
    return;
  }
  auto order = [&](const OwnedEvent &event, StreamHandle before,
                   StreamHandle after) {
    Gpu::CallLock held = ownGpu->oneAtATime();
    ownGpu->use();
    ownGpu->check(ownGpu->api().recordEvent(event.get(), before),
                  "recording an event");
    ownGpu->check(ownGpu->api().waitEvent(after, event.get(), 0),
                  "waiting for the other half");
  };
  order(fork, compute.get(), second->get());
  firstWork();
  inSecond = true;
  try {
    secondWork();
  } catch (...) {
    inSecond = false;
    throw;
  }
  inSecond = false;
  order(join, second->get(), compute.get());
}

void CudaDevice::synchronize() {
  ownGpu->use();
  ownGpu->check(ownGpu->api().synchronizeStream(compute.get()),
                "waiting for the GPU");
}

void CudaDevice::setPosition(int number) {
  // Not a fill: CUDA documents no memset node on host memory.
  char *place = progress.data();
  void *arguments[] = {&place, &number};
  computeService(kNoteKernel, 1, arguments);
}

int CudaDevice::position() const {
  // Any thread may ask while the GPU writes.
  return __atomic_load_n(reinterpret_cast<const int32_t *>(progress.data()),
                         __ATOMIC_RELAXED);
}

void CudaDevice::setCall(int action, int layer) {
  call = static_cast<uint64_t>(action) << 32 | static_cast<uint32_t>(layer);
}

std::optional<FullExperts> CudaDevice::fullExperts() const {
  const char *place = notes.data();
  if (*reinterpret_cast<const volatile int32_t *>(place) == 0)
    return std::nullopt;
  return *reinterpret_cast<const FullExperts *>(place);
}

namespace {
/// The captured graph.
class GraphRecording : public Recording {
public:
  GraphRecording(CudaDevice &device, GraphHandle graph) : device(device) {
    Gpu &gpu = device.gpu();
    Result result = gpu.api().instantiateGraph(&executable, graph, 0);
    gpu.api().destroyGraph(graph);
    gpu.check(result, "making a graph of the step");
  }
  ~GraphRecording() override {
    device.gpu().enter();
    device.gpu().api().destroyGraphExec(executable);
  }
  void run() override {
    Gpu &gpu = device.gpu();
    gpu.use();
    gpu.check(gpu.api().launchGraph(executable, device.computeStream()),
              "launching the step");
  }

private:
  CudaDevice &device;
  GraphExecHandle executable = nullptr;
};
} // namespace

void CudaDevice::beginRecording() {
  ownGpu->use();
  // cuStreamEndCapture: "If the mode argument to cuStreamBeginCapture was not
  // CU_STREAM_CAPTURE_MODE_RELAXED, this call must be from the same thread as
  // cuStreamBeginCapture." Ranks that share a GPU capture together, and the
  // last of them to come ends the capture.
  ownGpu->check(ownGpu->api().beginCapture(compute.get(), kRelaxedCapture),
                "recording the step");
}

std::unique_ptr<Recording> CudaDevice::endRecording() {
  GraphHandle graph = nullptr;
  ownGpu->use();
  ownGpu->check(ownGpu->api().endCapture(compute.get(), &graph),
                "recording the step");
  return std::make_unique<GraphRecording>(*this, graph);
}

void CudaDevice::abandonRecording() {
  const DriverApi &api = ownGpu->api();
  int status = kNoCapture;
  if (ownGpu->enter() != kSuccess ||
      api.captureStatus(compute.get(), &status) != kSuccess ||
      status == kNoCapture)
    return;
  // This takes all streams of the capture out of it, an invalid one included.
  GraphHandle graph = nullptr;
  if (api.endCapture(compute.get(), &graph) == kSuccess)
    api.destroyGraph(graph);
}

void CudaDevice::launchService(const char *kernel, int64_t count,
                               void **arguments, StreamHandle stream) {
  // Blocks that all run at once; each thread takes several elements.
  constexpr int64_t kBlocksOfProcessor = 8;
  int64_t blocks =
      std::min<int64_t>((count + kServiceThreads - 1) / kServiceThreads,
                        ownGpu->multiprocessors() * kBlocksOfProcessor);
  if (blocks <= 0)
    return;
  // Transfers of a recording launch under the lock of their network.
  Gpu::CallLock held = ownGpu->oneAtATime();
  ownGpu->use();
  ownGpu->check(ownGpu->api().launch(
                    ownGpu->function(kernel, 0), static_cast<unsigned>(blocks),
                    1, 1, kServiceThreads, 1, 1, 0, stream, arguments, nullptr),
                kernel);
}

void CudaDevice::computeService(const char *kernel, int64_t count,
                                void **arguments) {
  launchCount += count > 0 ? 1 : 0;
  launchService(kernel, count, arguments, computeStream());
}

} // namespace rota::cuda
