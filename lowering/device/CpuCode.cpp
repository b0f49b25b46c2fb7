// SPDX-License-Identifier: Apache-2.0
//
// Kernels for the processor: functions beside the tasks.
#include "lowering/device/DeviceCode.h"
#include "lowering/executable/Trainer.h"

using namespace mlir;

namespace rota::lowering {
namespace {

class CpuCode : public DeviceCode {
public:
  explicit CpuCode(const llvm::TargetMachine &host)
      : kernelTarget(vectorTarget(vectorBits(host), pairProducts(host))) {}

  KernelTarget target() const override { return kernelTarget; }
  std::optional<std::string> codeOptions() const override { return "cpu"; }
  FailureOr<KernelObjects> emitKernels(KernelLibrary &library,
                                       llvm::TargetMachine &host) override {
    return emitCpuKernels(library, host);
  }
  LogicalResult addKernels(ModuleOp tasks,
                           KernelLibrary &library) const override {
    return addCpuKernels(tasks, library);
  }

private:
  KernelTarget kernelTarget;
};

} // namespace

std::unique_ptr<DeviceCode> makeCpuCode(const TargetOptions &,
                                        const llvm::TargetMachine &host) {
  return std::make_unique<CpuCode>(host);
}

} // namespace rota::lowering
