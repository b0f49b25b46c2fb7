// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/device/cpu/EmulatedTiles.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <type_traits>
#include <ucontext.h>
#include <utility>

namespace rota::tiles {

constexpr int kElements = 2, kElementBytes = 2;
constexpr int kLanes = 16, kWords = 16;
typedef float Floats __attribute__((ext_vector_type(kLanes)));
typedef uint32_t Words __attribute__((ext_vector_type(kLanes)));

struct Tiles {
  static test::TileRegisters &registers() { return test::TileRegisters::get(); }
  static void configure(const void *shapes) { registers().configure(shapes); }
  static void release() { registers().release(); }
  template <int kTile> static void zero() { registers().zero(kTile); }
  template <int kTile> static void load(const void *from, int64_t stride) {
    registers().load(kTile, from, stride);
  }
  template <int kTile> static void store(void *to, int64_t stride) {
    registers().store(kTile, to, stride);
  }
  template <int kSums, int kA, int kB> static void addProducts() {
    registers().addProducts(kSums, kA, kB);
  }
};

#include "runtime/device/cpu/PanelMemory.inc"
#include "runtime/device/cpu/PanelTiles.inc"

} // namespace rota::tiles

namespace rota::test {

const PanelKernels &panelKernelsOfTiles() { return tiles::kKernels; }

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

TileRegisters &TileRegisters::get() {
  thread_local TileRegisters registers;
  return registers;
}

void TileRegisters::configure(const void *shapes) {
  constexpr int kRowBytes = 16, kRows = 48; // offsets
  auto *bytes = static_cast<const uint8_t *>(shapes);
  if (bytes[0] != 1 || bytes[1] != 0)
    std::abort();
  for (int i = 0; i < 8; ++i) {
    tiles[i] = {};
    uint16_t rowBytes;
    std::memcpy(&rowBytes, bytes + kRowBytes + 2 * i, sizeof rowBytes);
    tiles[i].bytes = rowBytes;
    tiles[i].rows = bytes[kRows + i];
    if (tiles[i].rows > 16 || tiles[i].bytes > 64 || tiles[i].bytes % 4 != 0)
      std::abort();
  }
}

void TileRegisters::release() { tiles = {}; }

bool TileRegisters::isConfigured() const { return tiles[0].rows != 0; }

const TileRegisters::Tile &TileRegisters::checked(int tile) const {
  if (tiles[tile].rows == 0)
    std::abort();
  return tiles[tile];
}

TileRegisters::Tile &TileRegisters::cleared(int tile) {
  checked(tile);
  tiles[tile].data = {};
  return tiles[tile];
}

void TileRegisters::zero(int tile) { cleared(tile); }

void TileRegisters::load(int tile, const void *from, int64_t stride) {
  Tile &to = cleared(tile);
  for (int row = 0; row < to.rows; ++row)
    std::memcpy(&to.data[row], static_cast<const char *>(from) + row * stride,
                to.bytes);
}

void TileRegisters::store(int tile, void *to, int64_t stride) const {
  const Tile &from = checked(tile);
  for (int row = 0; row < from.rows; ++row)
    std::memcpy(static_cast<char *>(to) + row * stride, &from.data[row],
                from.bytes);
}

namespace {
typedef float Floats __attribute__((ext_vector_type(16)));
typedef uint32_t Lanes __attribute__((ext_vector_type(16)));

Floats flush(Lanes bits) {
  Lanes isZero = __builtin_bit_cast(Lanes, (bits & 0x7f800000) == 0);
  return __builtin_bit_cast(Floats, bits & (~isZero | 0x80000000));
}

Floats flush(Floats values) { return flush(__builtin_bit_cast(Lanes, values)); }
} // namespace

/// Products of bf16 are exact in f32.
void TileRegisters::addProducts(Row &sums, const Row &a, int pairs,
                                const Tile &b) {
  Floats even = 0.0f, odd = 0.0f;
  for (int pair = 0; pair < pairs; ++pair) {
    Lanes left = a[pair], right = b.data[pair];
    even = flush(even + flush(left << 16) * flush(right << 16));
    odd = flush(odd + flush(left & 0xffff0000) * flush(right & 0xffff0000));
  }
  sums = __builtin_bit_cast(Row, flush(flush(sums) + flush(even + odd)));
}

void TileRegisters::addProducts(int sums, int a, int b) {
  const Tile &left = checked(a), &right = checked(b);
  Tile &to = tiles[sums];
  bool fits = sums != a && sums != b && a != b && to.rows == left.rows &&
              to.bytes == right.bytes && left.bytes == 4 * right.rows;
  if (!fits)
    std::abort();
  for (int row = 0; row < to.rows; ++row)
    addProducts(to.data[row], left.data[row], right.rows, right);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

namespace {

using Registers = gregset_t;

/// Registers of the processor by their numbers in instructions.
constexpr int kGeneral[] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

template <typename T> T read(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// An instruction with a VEX prefix of three bytes.
struct Instruction {
  int kind;         // prefix pp, and the opcode
  int reg, rm, vex; // registers; rm where isRegister
  bool isRegister;
  int64_t address, stride; // else of memory
  int64_t size;            // bytes
};

/// Reads what follows the byte ModR/M at `at` and names memory.
void readAddress(const uint8_t *start, const uint8_t *at, int extend,
                 const Registers &registers, Instruction &to) {
  int mode = *at >> 6, base = *at & 7;
  bool hasIndex = base == 4;
  ++at;
  if (hasIndex) {
    int index = (*at >> 3 & 7) + (extend & 2 ? 8 : 0);
    if (index != 4)
      to.stride = registers[kGeneral[index]] << (*at >> 6);
    base = *at & 7;
    ++at;
  }
  bool hasBase = mode != 0 || base != 5;
  if (hasBase)
    to.address = registers[kGeneral[base + (extend & 1 ? 8 : 0)]];
  if (mode == 1) {
    to.address += read<int8_t>(at);
    at += 1;
  } else if (mode == 2 || !hasBase) {
    to.address += read<int32_t>(at);
    at += 4;
  }
  to.size = at - start;
  if (!hasBase && !hasIndex)
    to.address += registers[REG_RIP] + to.size;
}

std::optional<Instruction> decode(const uint8_t *at,
                                  const Registers &registers) {
  constexpr int kVex = 0xc4, kMap0f38 = 2;
  int extend = ~at[1] >> 5 & 7; // R, X, B
  if (at[0] != kVex || (at[1] & 31) != kMap0f38)
    return std::nullopt;
  Instruction to = {};
  to.kind = (at[2] & 3) << 8 | at[3];
  to.vex = ~at[2] >> 3 & 15;
  to.reg = (at[4] >> 3 & 7) + (extend & 4 ? 8 : 0);
  to.rm = at[4] & 7;
  to.isRegister = at[4] >> 6 == 3;
  to.size = 5;
  if (!to.isRegister)
    readAddress(at, at + 4, extend, registers, to);
  return to;
}

bool run(const Instruction &it) {
  TileRegisters &tiles = TileRegisters::get();
  auto *memory = reinterpret_cast<void *>(it.address);
  switch (it.kind) {
  case 0x049:
    it.isRegister ? tiles.release() : tiles.configure(memory);
    return true;
  case 0x349:
    tiles.zero(it.reg);
    return true;
  case 0x34b:
    tiles.load(it.reg, memory, it.stride);
    return true;
  case 0x24b:
    tiles.store(it.reg, memory, it.stride);
    return true;
  case 0x25c:
    tiles.addProducts(it.reg, it.rm, it.vex);
    return true;
  default:
    return false;
  }
}

void onUnknownInstruction(int, siginfo_t *, void *context) {
  auto &registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  auto *at = reinterpret_cast<const uint8_t *>(registers[REG_RIP]);
  std::optional<Instruction> instruction = decode(at, registers);
  if (!instruction || !run(*instruction)) {
    signal(SIGILL, SIG_DFL); // it is raised again
    return;
  }
  registers[REG_RIP] += instruction->size;
}

} // namespace

EmulatedAmx::EmulatedAmx() {
  struct sigaction action = {};
  action.sa_sigaction = onUnknownInstruction;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &before);
}

EmulatedAmx::~EmulatedAmx() { sigaction(SIGILL, &before, nullptr); }

} // namespace rota::test
