// SPDX-License-Identifier: Apache-2.0
//
// Code that the devices with GPU kernels share.
#ifndef ROTA_LOWERING_DEVICE_GPUDEVICECODE_H
#define ROTA_LOWERING_DEVICE_GPUDEVICECODE_H

#include "lowering/device/DeviceCode.h"
#include "lowering/gpu/GpuEmitters.h"
#include "lowering/gpu/Passes.h"
#include "lowering/gpu/ServiceKernels.h"

namespace rota::lowering {

class GpuDeviceCode : public DeviceCode {
public:
  void addPasses(mlir::OpPassManager &manager) const override {
    manager.addPass(createPadRows());
  }
  KernelTarget target() const override { return gpuTarget(); }
  void addLaunches(mlir::ModuleOp tasks,
                   KernelLibrary &library) const override {
    addGpuLaunches(tasks, library);
  }
  llvm::FailureOr<std::vector<GpuCode>>
  makeCode(llvm::Module &trainer, KernelLibrary &library) const override {
    auto kernels = gpuModuleOf(library);
    auto gpu = translateTrainerKernels(kernels, trainer.getContext(), chip());
    if (!gpu)
      return llvm::failure();
    return makeCode(kernels.getLoc(), trainer, *gpu);
  }

protected:
  /// The chip whose forms of kernels the code is made of; empty for all forms.
  virtual llvm::StringRef chip() const = 0;
  /// The code of kernels that are LLVM IR.
  virtual llvm::FailureOr<std::vector<GpuCode>>
  makeCode(mlir::Location loc, llvm::Module &trainer,
           const llvm::Module &gpu) const = 0;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_DEVICE_GPUDEVICECODE_H
