// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/CublasLtProducts.h"
#include "runtime/Error.h"
#include "runtime/device/Device.h"
#include "runtime/device/GemmShape.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <string_view>
#include <type_traits>

namespace rota::cuda {
namespace {

/// Algorithms that are measured for a product.
constexpr int kProposals = 8;
/// Blocks of the arena have this alignment, so up to it the alignment of an
/// operand follows from its place in its tensor, whatever the memory plan.
constexpr uintptr_t kMostAlignment = 64;

Address addressOf(const void *pointer) {
  return reinterpret_cast<Address>(pointer);
}

int64_t alignmentOf(const void *pointer) {
  uintptr_t address = reinterpret_cast<uintptr_t>(pointer) | kMostAlignment;
  return int64_t(1) << std::countr_zero(address);
}

/// Without what makes no difference to the product.
RotaGemm normalized(RotaGemm g) {
  if (g.batch == 1)
    g.strideA = g.strideB = g.strideC = 0;
  g.transposeA = g.transposeA != 0;
  g.transposeB = g.transposeB != 0;
  g.accumulate = g.accumulate != 0;
  return g;
}

/// From the first element of C to its last, gaps included.
int64_t extentOfC(const RotaGemm &g) {
  int64_t elements = (g.batch - 1) * g.strideC + (g.m - 1) * g.ldc + g.n;
  return elements * elementBytes(g.typeC);
}

/// The workspace from its first aligned address on. The rest has the same size
/// wherever it begins.
void alignWorkspace(BlasLtOperands &operands) {
  uintptr_t begin = reinterpret_cast<uintptr_t>(operands.workspace);
  uintptr_t aligned =
      (begin + kWorkspaceAlignment - 1) & ~uintptr_t(kWorkspaceAlignment - 1);
  operands.workspace = reinterpret_cast<void *>(aligned);
  operands.workspaceBytes =
      std::max<int64_t>(operands.workspaceBytes - kWorkspaceAlignment, 0);
}

/// Memory of the GPU that is freed with its owner; null where there is none, or
/// where the GPU has no memory in the order of a stream. Other allocations and
/// releases may wait for the whole device: for transfers that wait for another
/// rank, which may be measuring, too.
class ScratchC {
public:
  ScratchC(const DriverApi &driver, int64_t bytes, StreamHandle stream)
      : driver(driver), stream(stream) {
    Result result = driver.allocateInStream(&address, size_t(bytes), stream);
    if (result == kOutOfMemory || result == kNotSupported)
      address = 0;
    else
      checkDriver(driver, result, "cuMemAllocAsync");
  }
  ~ScratchC() {
    if (address)
      driver.freeInStream(address, stream);
  }
  ScratchC(const ScratchC &) = delete;
  ScratchC &operator=(const ScratchC &) = delete;
  Address get() const { return address; }

private:
  const DriverApi &driver;
  StreamHandle stream;
  Address address = 0;
};

} // namespace

bool CublasLtProducts::Key::operator==(const Key &other) const {
  return std::memcmp(this, &other, sizeof other) == 0;
}

size_t CublasLtProducts::KeyHash::operator()(const Key &key) const {
  static_assert(std::has_unique_object_representations_v<Key>);
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char *>(&key), sizeof key});
}

CublasLtProducts::Key CublasLtProducts::keyOf(const RotaGemm &gemm,
                                              const BlasLtOperands &operands) {
  return {normalized(gemm),
          {alignmentOf(operands.a), alignmentOf(operands.b),
           alignmentOf(operands.c), operands.workspaceBytes}};
}

CublasLtProducts::CublasLtProducts(const DriverApi &driver, std::string device,
                                   BlasLtLoader load, CublasLtOptions options)
    : driver(driver), device(std::move(device)), load(std::move(load)),
      allowTf32(options.allowTf32), loadsAhead(options.loadsAhead),
      file(std::move(options.algorithmFile)) {}

CublasLtProducts::~CublasLtProducts() {
  entries.clear();
  if (api)
    api->destroy(context);
}

void CublasLtProducts::open() {
  if (api)
    return;
  const BlasLtApi &found = load();
  if (BlasStatus status = found.create(&context); status != kBlasSuccess)
    throw RunError(fmt::format("{}: cublasLtCreate: {}", device,
                               found.statusName(status)));
  api = &found;
}

std::string CublasLtProducts::nameOf(const Key &key) const {
  const RotaGemm &g = key.gemm;
  const BlasLtLimits &limits = key.limits;
  return fmt::format(
      "{}, cublasLt {}, {}{}{}{}{}, batch {}, rows {} {} {}, strides {} {} {}, "
      "aligned {} {} {}, workspace {}",
      device, api->version(), toString(g), allowTf32 ? ", tf32" : "",
      g.transposeA ? ", A transposed" : "",
      g.transposeB ? ", B transposed" : "", g.accumulate ? ", accumulated" : "",
      g.batch, g.lda, g.ldb, g.ldc, g.strideA, g.strideB, g.strideC,
      limits.alignmentA, limits.alignmentB, limits.alignmentC,
      limits.workspaceBytes);
}

Fastest CublasLtProducts::measure(
    const RotaGemm &gemm, bool changesC, size_t count,
    const std::function<BlasStatus(size_t, const BlasLtOperands &operands)>
        &start,
    BlasLtOperands operands, StreamHandle stream) {
  int capture = kNoCapture;
  checkDriver(driver, driver.captureStatus(stream, &capture),
              "cuStreamIsCapturing");
  if (count == 1 || capture != kNoCapture)
    return {.number = 0};
  std::string name = toString(gemm);
  auto startOne = [&](size_t number) { return start(number, operands); };
  if (!changesC)
    return findFastest(driver, name, count, startOne, stream);

  int64_t bytes = extentOfC(gemm);
  ScratchC copy(driver, bytes, stream);
  if (!copy.get())
    return {.number = 0};
  checkDriver(
      driver,
      driver.copy(copy.get(), addressOf(operands.c), size_t(bytes), stream),
      "cuMemcpyAsync");
  operands.c = reinterpret_cast<void *>(copy.get());
  return findFastest(driver, name, count, startOne, stream);
}

BlasLtAlgorithm CublasLtProducts::choose(const BlasLtProduct &product,
                                         const Key &key,
                                         const BlasLtOperands &operands,
                                         StreamHandle stream) {
  std::string name = nameOf(key);
  auto kept = file.find(name);
  if (kept && product.accepts(*kept, key.limits.workspaceBytes))
    return *kept;
  std::vector<BlasLtAlgorithm> proposals =
      product.findAlgorithms(key.limits, kProposals);
  if (kept)
    fmt::print(stderr,
               "warning: cuBLASLt refuses the algorithm in '{}' for {}\n",
               file.name(), name);
  if (kept || !file.isOpen())
    return proposals.front();
  Fastest fastest = measure(
      key.gemm, key.gemm.accumulate, proposals.size(),
      [&](size_t number, const BlasLtOperands &at) {
        return product.start(proposals[number], at, stream);
      },
      operands, stream);
  if (!fastest.number)
    product.check(fastest.status, "cublasLtMatmul");
  if (fastest.refused > 0)
    fmt::print(stderr, "note: {} of {} algorithms of {} fail: {}\n",
               fastest.refused, proposals.size(), name,
               api->statusName(fastest.status));
  // Without a file, all ranks choose the same.
  return file.keep(name, proposals[*fastest.number])
      .value_or(proposals[fastest.first]);
}

/// The operands of a part of their product.
static BlasLtOperands within(BlasLtOperands operands, const GemmPart &part) {
  operands.a = static_cast<const char *>(operands.a) + part.a;
  operands.b = static_cast<const char *>(operands.b) + part.b;
  operands.c = static_cast<char *>(operands.c) + part.c;
  return operands;
}

BlasStatus CublasLtProducts::Part::start(const BlasLtOperands &operands,
                                         StreamHandle stream) const {
  return product.start(algorithm, within(operands, place), stream);
}

CublasLtProducts::Parts
CublasLtProducts::chooseEach(std::span<const GemmPart> parts,
                             const BlasLtOperands &operands,
                             StreamHandle stream) {
  Parts chosen;
  for (const GemmPart &part : parts) {
    BlasLtOperands at = within(operands, part);
    BlasLtProduct product(*api, context, part.gemm, allowTf32);
    BlasLtAlgorithm algorithm =
        choose(product, keyOf(part.gemm, at), at, stream);
    chosen.push_back({std::move(product), algorithm, part});
  }
  return chosen;
}

CublasLtProducts::Parts
CublasLtProducts::chooseParts(const Key &key, const BlasLtOperands &operands,
                              StreamHandle stream) {
  GemmPart all{key.gemm, 0, 0, 0};
  Parts whole = chooseEach({&all, 1}, operands, stream);
  std::vector<GemmPart> cut = cutGemm(key.gemm);
  // The file has the number of parts in the place of an algorithm.
  std::string name = nameOf(key) + ", parts";
  auto kept = file.find(name);
  if (cut.empty() || !file.isOpen() || (kept && kept->data[0] == 1))
    return whole;
  Parts parts;
  try {
    parts = chooseEach(cut, operands, stream);
  } catch (const DeviceError &) {
    throw;
  } catch (const RunError &error) { // the library has no such product
    fmt::print(stderr, "note: {}; it is a part of {}, which stays whole\n",
               error.what(), nameOf(key));
    file.keep(name, {{whole.size()}});
    return whole;
  }
  if (!kept) {
    auto start = [&](size_t number, const BlasLtOperands &at) {
      for (const Part &part : number == 0 ? whole : parts)
        if (BlasStatus status = part.start(at, stream); status != kBlasSuccess)
          return status;
      return kBlasSuccess;
    };
    bool changesC = std::ranges::any_of(
        cut, [](const GemmPart &part) { return part.gemm.accumulate != 0; });
    Fastest fastest = measure(key.gemm, changesC, 2, start, operands, stream);
    kept =
        file.keep(name, {{fastest.number == 1 ? parts.size() : whole.size()}});
  }
  return kept && kept->data[0] == parts.size() ? std::move(parts)
                                               : std::move(whole);
}

void CublasLtProducts::clear(const RotaGemm &g, void *c, StreamHandle stream) {
  int64_t element = elementBytes(g.typeC), row = g.n * element;
  for (int64_t batch = 0; batch < g.batch; ++batch)
    for (int64_t i = 0; i < g.m; ++i)
      checkDriver(
          driver,
          driver.fill8(addressOf(c) + (batch * g.strideC + i * g.ldc) * element,
                       0, size_t(row), stream),
          "cuMemsetD8Async");
}

void CublasLtProducts::multiply(const RotaGemm &gemm, const void *a,
                                const void *b, void *c, void *workspace,
                                int64_t workspaceBytes, StreamHandle stream) {
  if (auto fault = findFault(gemm))
    throw RunError(toString(gemm) + ": " + *fault);
  if (gemm.batch == 0 || gemm.m == 0 || gemm.n == 0)
    return;
  if (gemm.k == 0) {
    if (!gemm.accumulate)
      clear(gemm, c, stream);
    return;
  }
  open();
  BlasLtOperands operands = {a, b, c, workspace, workspaceBytes};
  alignWorkspace(operands);
  Key key = keyOf(gemm, operands);
  auto it = entries.find(key);
  if (it == entries.end())
    it = entries.emplace(key, chooseParts(key, operands, stream)).first;
  for (const Part &part : it->second)
    part.product.check(part.start(operands, stream), "cublasLtMatmul");
}

void CublasLtProducts::prepare(const RotaGemm &gemm, const void *a,
                               const void *b, void *c, void *workspace,
                               int64_t workspaceBytes, StreamHandle stream) {
  open();
  if (loadsAhead)
    multiply(gemm, a, b, c, workspace, workspaceBytes, stream);
}

} // namespace rota::cuda
