// SPDX-License-Identifier: Apache-2.0
//
// The devices that trainers are compiled for: one of each
// DeviceKind, in that order.
#include "lowering/device/DeviceCode.h"

namespace rota::lowering {

std::unique_ptr<DeviceCode> makeDeviceCode(const TargetOptions &target,
                                           const llvm::TargetMachine &host) {
  static constexpr MakeDeviceCode *makers[] = {makeCpuCode, makeSimtCode,
                                               makeCudaCode};
  return makers[size_t(target.device)](target, host);
}

} // namespace rota::lowering
