// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Processor.h"
#include "runtime/ProcessorAbi.h"

#include <algorithm>

namespace rota {

static bool hasFeature(std::string_view name) {
#define X(feature)                                                             \
  if (name == feature)                                                         \
    return __builtin_cpu_supports(feature);
  ROTA_PROCESSOR_FEATURES(X)
#undef X
  return false;
}

std::string missingFeatures(std::string_view needed) {
  std::string missing;
  while (!needed.empty()) {
    std::string_view name = needed.substr(0, needed.find(','));
    needed.remove_prefix(std::min(needed.size(), name.size() + 1));
    if (!hasFeature(name))
      missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  return missing;
}

} // namespace rota
