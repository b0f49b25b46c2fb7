// SPDX-License-Identifier: Apache-2.0
//
// GPU kernels as functions of the host, for the emulator.
#include "lowering/device/GpuDeviceCode.h"
#include "lowering/simt/TrainerKernels.h"

#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;

namespace rota::lowering {
namespace {

class SimtCode : public GpuDeviceCode {
public:
  SimtCode(const llvm::TargetMachine &host, const TargetOptions &target)
      : host(host), chip(target.gpus.empty() ? "sm_90" : target.gpus.front()) {
    options.checks = !target.unchecked;
  }

  std::optional<std::string> codeOptions() const override {
    return "simt " + chip + (options.checks ? "" : " unchecked");
  }

protected:
  KernelForms forms() const override {
    return chip == kWarpgroupChip ? KernelForms::All : KernelForms::Common;
  }
  FailureOr<std::vector<GpuCode>>
  makeCode(Location loc, llvm::Module &trainer,
           const llvm::Module &gpu) const override {
    std::unique_ptr<llvm::Module> kernels = llvm::CloneModule(gpu);
    selectForms(*kernels, chip);
    auto code = linkHostKernels(loc, trainer, *kernels, host, options);
    if (failed(code))
      return failure();
    return std::vector<GpuCode>{*code};
  }

private:
  const llvm::TargetMachine &host;
  std::string chip; // whose forms of kernels run
  HostKernelOptions options;
};

} // namespace

std::unique_ptr<DeviceCode> makeSimtCode(const TargetOptions &target,
                                         const llvm::TargetMachine &host) {
  return std::make_unique<SimtCode>(host, target);
}

} // namespace rota::lowering
