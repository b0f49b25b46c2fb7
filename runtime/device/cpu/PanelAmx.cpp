// SPDX-License-Identifier: Apache-2.0
//
// Tiles are registers of a thread, 8 KiB of them. PanelProduct sets them up for
// a run and frees them at its end, so that no later switch of threads saves
// them.
#include "runtime/device/cpu/PanelKernels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>
#include <sys/syscall.h>
#include <type_traits>
#include <unistd.h>
#include <utility>

#pragma clang attribute push(                                                  \
    __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl"))),    \
    apply_to = function)

namespace rota::amx {

constexpr int kElements = 2, kElementBytes = 2;
constexpr int kLanes = 16, kWords = 16;
typedef float Floats __attribute__((ext_vector_type(kLanes)));
typedef uint32_t Words __attribute__((ext_vector_type(kLanes)));

struct Tiles {
  static void configure(const void *shapes) { _tile_loadconfig(shapes); }
  static void release() { _tile_release(); }
  template <int kTile> static void zero() { _tile_zero(kTile); }
  template <int kTile> static void load(const void *from, int64_t stride) {
    _tile_loadd(kTile, from, stride);
  }
  template <int kTile> static void store(void *to, int64_t stride) {
    _tile_stored(kTile, to, stride);
  }
  template <int kSums, int kA, int kB> static void addProducts() {
    _tile_dpbf16ps(kSums, kA, kB);
  }
};

#include "runtime/device/cpu/PanelMemory.inc"
#include "runtime/device/cpu/PanelTiles.inc"

} // namespace rota::amx

#pragma clang attribute pop

bool rota::hasAmx() {
  return __builtin_cpu_supports("amx-tile") &&
         __builtin_cpu_supports("amx-bf16") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

/// Linux gives tiles to a process that asks, since they make the frames of its
/// signals larger; it refuses where a thread's signal stack is too small.
bool rota::mayUseAmx() {
  constexpr long kAskPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;          // XFEATURE_XTILE_DATA
  static const bool isGranted =
      hasAmx() && syscall(SYS_arch_prctl, kAskPermission, kTileData) == 0;
  return isGranted;
}

const rota::PanelKernels &rota::panelKernelsOfAmx() { return amx::kKernels; }
