// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl/NcclApi.h"
#include "runtime/Error.h"
#include "runtime/device/cuda/Libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace rota {

static constexpr const char *kInstall =
    "install NCCL 2.18 or later (Debian, Ubuntu: libnccl2; pip: "
    "nvidia-nccl-cu12) and name its folder in LD_LIBRARY_PATH";

void NcclApi::check(NcclResult result, const char *what) const {
  if (result == kNcclSuccess || result == kNcclInProgress)
    return;
  std::string detail = lastError(nullptr) ? lastError(nullptr) : "";
  while (!detail.empty() && detail.back() == '\n')
    detail.pop_back();
  throw RunError(fmt::format("NCCL: {}: {}{}{}", what, errorText(result),
                             detail.empty() ? "" : ": ", detail));
}

void checkNcclVersion(int version) {
  // Since 2.9 a version a.b.c is a * 10000 + b * 100 + c.
  if (version < 21800)
    throw InputError(fmt::format(
        "expected NCCL 2.18 or later, got {}.{}.{}: {}", version / 10000,
        version / 100 % 100, version % 100, kInstall));
}

template <typename T>
static void find(void *library, const char *symbol, T &place) {
  place = reinterpret_cast<T>(dlsym(library, symbol));
  if (!place)
    throw InputError(fmt::format(
        "expected '{}' in libnccl.so.2, which has none: {}", symbol, kInstall));
}

static NcclApi load() {
  constexpr const char *kNames[] = {"libnccl.so.2"};
  std::string faults;
  void *library = cuda::openLibrary(kNames, faults);
  if (!library)
    throw InputError(fmt::format("cannot load NCCL: {}{}", kInstall, faults));
  NcclApi api;
  find(library, "ncclGetVersion", api.version);
  int version = 0;
  api.version(&version);
  checkNcclVersion(version);
#define X(result, member, symbol, parameters) find(library, symbol, api.member);
  ROTA_NCCL_FUNCTIONS(X)
#undef X
  return api;
}

const NcclApi &loadNccl() {
  static const NcclApi api = load();
  return api;
}

} // namespace rota
