// SPDX-License-Identifier: Apache-2.0
//
// The code that a device's kernels become in a trainer. A device is a file here
// and a line in DeviceCode.cpp; the rest of the lowering knows none.
#ifndef ROTA_LOWERING_DEVICE_DEVICECODE_H
#define ROTA_LOWERING_DEVICE_DEVICECODE_H

#include "lowering/cpu/Object.h"
#include "lowering/executable/Link.h"
#include "lowering/gpu/TrainerCode.h"

#include "mlir/Pass/PassManager.h"

#include <optional>

namespace rota::lowering {

class DeviceCode {
public:
  virtual ~DeviceCode() = default;

  /// Adds the passes that prepare formed kernels for the device.
  virtual void addPasses(mlir::OpPassManager &manager) const {}
  /// The target for which kernels are planned and emitted.
  virtual KernelTarget target() const = 0;
  /// What the code of tasks and kernels depends on besides their modules and
  /// the host; nothing where that has no description, such as another program.
  virtual std::optional<std::string> codeOptions() const = 0;
  /// Adds the launches of GPU kernels to `tasks`.
  virtual void addLaunches(mlir::ModuleOp tasks, KernelLibrary &library) const {
  }
  /// Takes the kernels that are object files of their own in a trainer for
  /// `host` out of `library`.
  virtual llvm::FailureOr<KernelObjects>
  emitKernels(KernelLibrary &library, llvm::TargetMachine &host) {
    return KernelObjects();
  }
  /// Adds the code of the kernels of `library` that are functions of the host
  /// to `tasks`.
  virtual llvm::LogicalResult addKernels(mlir::ModuleOp tasks,
                                         KernelLibrary &library) const {
    return llvm::success();
  }
  /// Finds the tools that `makeCode` runs; it leaves them out otherwise. Errors
  /// are at `loc`.
  virtual llvm::LogicalResult findTools(mlir::Location loc,
                                        const LinkOptions &options) {
    return llvm::success();
  }
  /// The forms of the code of GPU kernels, as data of `trainer`.
  virtual llvm::FailureOr<std::vector<GpuCode>>
  makeCode(llvm::Module &trainer, KernelLibrary &library) const {
    return std::vector<GpuCode>();
  }
};

/// Makes the code of `target`'s device. `host` is the machine of the trainer,
/// and must outlive the result.
using MakeDeviceCode = std::unique_ptr<DeviceCode>(
    const TargetOptions &target, const llvm::TargetMachine &host);
MakeDeviceCode makeDeviceCode, makeCpuCode, makeSimtCode, makeCudaCode;

} // namespace rota::lowering

#endif // ROTA_LOWERING_DEVICE_DEVICECODE_H
