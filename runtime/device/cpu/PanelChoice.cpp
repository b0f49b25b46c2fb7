// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/PanelKernels.h"

/// oneDNN makes more of AMX than kernels for AVX-512 do.
const rota::PanelKernels *rota::panelKernels() {
  static const PanelKernels *const kernels =
      __builtin_cpu_supports("amx-bf16") ? nullptr : panelKernelsOfAvx512();
  return kernels;
}
