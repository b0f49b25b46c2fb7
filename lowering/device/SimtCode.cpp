// SPDX-License-Identifier: Apache-2.0
//
// GPU kernels as functions of the host, for the emulator.
#include "lowering/device/GpuDeviceCode.h"
#include "lowering/simt/TrainerKernels.h"

using namespace mlir;

namespace rota::lowering {
namespace {

class SimtCode : public GpuDeviceCode {
public:
  SimtCode(const llvm::TargetMachine &host, bool checks) : host(host) {
    options.checks = checks;
  }

  std::optional<std::string> codeOptions() const override {
    return options.checks ? "simt" : "simt unchecked";
  }

protected:
  FailureOr<std::vector<GpuCode>>
  makeCode(Location loc, llvm::Module &trainer,
           const llvm::Module &gpu) const override {
    auto code = linkHostKernels(loc, trainer, gpu, host, options);
    if (failed(code))
      return failure();
    return std::vector<GpuCode>{*code};
  }

private:
  const llvm::TargetMachine &host;
  HostKernelOptions options;
};

} // namespace

std::unique_ptr<DeviceCode> makeSimtCode(const TargetOptions &target,
                                         const llvm::TargetMachine &host) {
  return std::make_unique<SimtCode>(host, !target.unchecked);
}

} // namespace rota::lowering
