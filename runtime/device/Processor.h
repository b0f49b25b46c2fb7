// SPDX-License-Identifier: Apache-2.0
//
// What the processor can do, beside what compiled code needs.
#ifndef ROTA_RUNTIME_DEVICE_PROCESSOR_H
#define ROTA_RUNTIME_DEVICE_PROCESSOR_H

#include <string>
#include <string_view>

namespace rota {

/// The features in `needed`, a list as rotaFeatures (runtime/ProcessorAbi.h),
/// that this processor lacks or the operating system does not let it use:
/// "avx512f, avx512bw". Empty: it has all.
std::string missingFeatures(std::string_view needed);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_PROCESSOR_H
