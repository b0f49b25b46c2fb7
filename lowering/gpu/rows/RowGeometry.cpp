// SPDX-License-Identifier: Apache-2.0
//
// Threads by the width of rows and what is kept of them.
#include "lowering/gpu/rows/RowGeometry.h"

#include "lowering/gpu/GpuBuilder.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace rota::lowering {
namespace {

constexpr int64_t kNarrowThreads = 128;  // threads of a block of narrow rows
constexpr int64_t kMostRowThreads = 512; // leaves 128 registers to each
/// A thread takes two chunks of rows that have more chunks than this. Where
/// nothing is combined along a row, a block takes no more of it.
constexpr int64_t kMostSingleChunks = 256;
/// The most bytes of row operands and sums that a thread keeps in registers, of
/// one chunk or of several, which have more values on the way to results.
constexpr int64_t kMostKeptBytes = 160, kMostKeptBytesOfSeveral = 128;
/// The same of one chunk whose sums are in shared memory: a sum passes through
/// registers.
constexpr int64_t kMostBesideShared = 128;
/// The most bytes of sums of a thread in shared memory: 20 warps have 160 KB.
constexpr int64_t kMostSharedBytes = 256;
/// Threads that add rows up, over all slots, and the bounds of their slots.
constexpr int64_t kSummingThreads = 128 * 1024;
constexpr int64_t kLeastSlots = 128, kMostSlots = 4096;
constexpr int64_t kLeastRowsOfSlot = 8; // where there are more slots
/// Bytes that all threads together have on their way, if registers allow it:
/// what a GPU's memory delivers in the time of one access.
constexpr int64_t kBytesOnTheWay = int64_t(3) << 20;
/// The rows of a thread by those that it has on their way, which it may read
/// twice at the end.
constexpr int64_t kTripsByAhead = 8;

bool hasSums(const RowBody &body) {
  for (unsigned i = 0; i < body.getResults().size(); ++i)
    if (body.isSum(i))
      return true;
  return false;
}

bool hasReductions(const RowBody &body) {
  for (int pass = 0; pass < body.getPasses(); ++pass)
    if (!body.getReductions(pass).empty())
      return true;
  return false;
}

int64_t bitsOf(Value value) {
  return RowBody::elementOf(value).getIntOrFloatBitWidth();
}

/// Bytes of the operands that a thread keeps for each element of a row.
int64_t operandBytes(const RowBody &body) {
  int64_t bytes = 0;
  for (Value operand : body.getOperands())
    bytes += RowBody::rankOf(operand) * bitsOf(operand) / 8;
  return std::max<int64_t>(bytes, 1);
}

/// Bytes of the operands that each row has of its own, for each element.
int64_t ownBytes(const RowBody &body) {
  int64_t bytes = 0;
  for (BlockArgument operand : body.getOperands())
    if (body.getMap(operand.getArgNumber()).isIdentity())
      bytes += RowBody::rankOf(operand) * bitsOf(operand) / 8;
  return std::max<int64_t>(bytes, 1);
}

/// Bytes of the sums that a thread keeps for each column.
int64_t sumBytes(const RowBody &body) {
  int64_t bytes = 0;
  for (auto [i, result] : llvm::enumerate(body.getResults()))
    if (body.isSum(i))
      bytes += RowBody::rankOf(result) * 4;
  return bytes;
}

/// A result may lie on an operand of its type.
bool mayOverwriteScalars(const RowBody &body) {
  for (auto [i, result] : llvm::enumerate(body.getResults()))
    if (!body.isSum(i) && RowBody::rankOf(result) == 0)
      for (BlockArgument operand : body.getOperands())
        if (operand.getType() == result.getType() &&
            !body.getMap(operand.getArgNumber()).isConstant())
          return true;
  return false;
}

} // namespace

int64_t narrowestElement(const RowBody &body) {
  int64_t bits = 32;
  auto add = [&](Value value) {
    if (RowBody::rankOf(value) == 1)
      bits = std::min(bits, bitsOf(value));
  };
  llvm::for_each(body.getOperands(), add);
  llvm::for_each(body.getResults(), add);
  return bits;
}

RowGeometry::RowGeometry(const RowBody &body, int64_t rows) : slots(rows) {
  int64_t columns = body.getColumns();
  auto cut = [&](int64_t bits) {
    width = columns == 0 ? 0 : chunkWidth(body.getStride(), bits);
    chunks = columns == 0 ? 1 : columns / width;
    tail = columns == 0 ? 0 : columns % width;
  };
  // The chunks of a row that is combined do not depend on its types, so that
  // the order of its sums does not either.
  cut(/*bits=*/16);
  overwritesScalars = pieces() > 1 && mayOverwriteScalars(body);
  bool sumsRows = hasSums(body);
  if (!sumsRows && !hasReductions(body) && !overwritesScalars) {
    form = Form::Chunks;
    cut(narrowestElement(body));
    blockThreads = kAloneThreads;
    blocks = llvm::divideCeil(rows * pieces(), blockThreads);
    return;
  }
  assert(tail == 0 && "rows with gaps are combined nowhere");

  // The order of a row's sums follows from the threads: equal rows have equal
  // sums, whatever else the kernel does.
  if (!hasReductions(body) && !overwritesScalars)
    parts = llvm::divideCeil(chunks, kMostSingleChunks);
  int64_t ofBlock = llvm::divideCeil(chunks, parts);
  threads = std::min<int64_t>(
      ofBlock > kMostSingleChunks ? llvm::divideCeil(ofBlock, 2) : ofBlock,
      kMostRowThreads);
  threads = threads <= kWarp ? int64_t(llvm::PowerOf2Ceil(threads))
                             : int64_t(llvm::alignTo(threads, kWarp));
  perThread = llvm::divideCeil(chunks, rowThreads());
  placeValues(body);
  if (threads <= kWarp && form == Form::Registers)
    rowsPerBlock = kNarrowThreads / threads;
  blockThreads = threads * rowsPerBlock;
  if (sumsRows) {
    slots = std::min(kSummingThreads / rowThreads(), rows / kLeastRowsOfSlot);
    slots = std::clamp<int64_t>(llvm::bit_floor(uint64_t(slots)),
                                std::max<int64_t>(kLeastSlots / parts, 1),
                                kMostSlots);
    slots = std::min<int64_t>(slots, llvm::alignTo(rows, rowsPerBlock));
    ahead = rowsAhead(body, llvm::divideCeil(rows, slots));
  }
  blocks = llvm::divideCeil(slots, rowsPerBlock) * parts;
}

int64_t RowGeometry::rowsAhead(const RowBody &body, int64_t trips) const {
  int64_t elements = perThread * std::max<int64_t>(width, 1);
  int64_t row = elements * ownBytes(body);
  int64_t kept = elements * operandBytes(body);
  if (sums == Sums::Registers)
    kept += elements * sumBytes(body);
  int64_t fit = 1 + std::max<int64_t>(kMostKeptBytes - kept, 0) / row;
  int64_t needed = llvm::divideCeil(kBytesOnTheWay, slots * rowThreads() * row);
  return std::clamp<int64_t>(
      needed, 1, std::clamp<int64_t>(trips / kTripsByAhead, 1, fit));
}

void RowGeometry::placeValues(const RowBody &body) {
  int64_t elements = perThread * std::max<int64_t>(width, 1);
  int64_t ofOperands = elements * operandBytes(body);
  int64_t ofSums = elements * sumBytes(body);
  int64_t most = perThread == 1 ? kMostKeptBytes : kMostKeptBytesOfSeveral;
  bool fits = ofOperands + ofSums <= most;
  if (ofSums > 0 && !fits)
    sums = ofSums <= kMostSharedBytes ? Sums::Shared : Sums::Memory;
  bool isKept = fits || (sums == Sums::Shared && perThread == 1 &&
                         ofOperands <= kMostBesideShared);
  form = isKept ? Form::Registers : Form::Loop;
}

} // namespace rota::lowering
