// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/BlasLtApi.h"
#include "runtime/Error.h"
#include "runtime/device/cuda/Libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <string>

namespace rota::cuda {

static void *openBlasLt() {
  constexpr const char *kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  std::string faults;
  if (void *library = openLibrary(kNames, faults))
    return library;
  throw InputError("cannot load cuBLASLt of CUDA 13 or 12 (add its folder to "
                   "LD_LIBRARY_PATH)" +
                   faults);
}

template <typename F>
static void find(void *library, const char *name, F &place) {
  void *symbol = dlsym(library, name);
  if (!symbol)
    throw InputError(fmt::format(
        "expected cuBLASLt of CUDA 12 or newer, got one without '{}'", name));
  place = reinterpret_cast<F>(symbol);
}

const BlasLtApi &loadBlasLt() {
  static const BlasLtApi api = [] {
    void *library = openBlasLt();
    BlasLtApi found;
#define X(type, member, symbol, parameters)                                    \
  find(library, #symbol, found.member);
    ROTA_BLASLT_FUNCTIONS(X)
#undef X
    return found;
  }();
  return api;
}

} // namespace rota::cuda
