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
  SimtCode(const llvm::TargetMachine &host, const TargetOptions &target)
      : host(host), gpu(target.gpus.empty() ? "sm_90" : target.gpus.front()) {
    options.checks = !target.unchecked;
  }

  std::optional<std::string> codeOptions() const override {
    return "simt " + gpu + (options.checks ? "" : " unchecked");
  }

protected:
  StringRef chip() const override { return gpu; }
  FailureOr<std::vector<GpuCode>>
  makeCode(Location loc, llvm::Module &trainer,
           const llvm::Module &kernels) const override {
    auto code = linkHostKernels(loc, trainer, kernels, host, options);
    if (failed(code))
      return failure();
    return std::vector<GpuCode>{*code};
  }

private:
  const llvm::TargetMachine &host;
  std::string gpu; // whose forms of kernels run
  HostKernelOptions options;
};

} // namespace

std::unique_ptr<DeviceCode> makeSimtCode(const TargetOptions &target,
                                         const llvm::TargetMachine &host) {
  return std::make_unique<SimtCode>(host, target);
}

} // namespace rota::lowering
