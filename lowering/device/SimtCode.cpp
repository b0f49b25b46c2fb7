// SPDX-License-Identifier: Apache-2.0
//
// GPU kernels as functions of the host, for the emulator.
#include "lowering/device/GpuDeviceCode.h"
#include "lowering/executable/CodeCache.h"
#include "lowering/gpu/GpuBuilder.h"
#include "lowering/simt/TrainerKernels.h"

#include "llvm/IR/Module.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// A module with `kernel`, in all its forms, and the symbols that it uses.
OwningOpRef<ModuleOp> isolate(gpu::GPUFuncOp kernel) {
  auto source = kernel->getParentOfType<gpu::GPUModuleOp>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(source.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto target =
      gpu::GPUModuleOp::create(builder, source.getLoc(), source.getName());
  builder.setInsertionPointToEnd(target.getBody());
  std::string form = (kernel.getName() + kWarpgroupForm).str();
  for (Operation &op : *source.getBody()) {
    auto function = dyn_cast<gpu::GPUFuncOp>(op);
    if (!function || function == kernel || function.getName() == form)
      builder.clone(op);
  }
  for (Operation &op : llvm::make_early_inc_range(*target.getBody()))
    if (!isa<gpu::GPUFuncOp>(op) &&
        SymbolTable::symbolKnownUseEmpty(&op, target.getOperation()))
      op.erase();
  return module;
}

class SimtCode : public GpuDeviceCode {
public:
  SimtCode(const llvm::TargetMachine &host, const TargetOptions &target)
      : host(host), gpu(target.gpus.empty() ? "sm_90" : target.gpus.front()) {
    options.checks = !target.unchecked;
  }

  std::optional<std::string> codeOptions() const override {
    std::string text = "simt " + gpu + (options.checks ? "" : " unchecked");
    for (const std::string &kernel : apart)
      text += " " + kernel;
    return text;
  }

  FailureOr<KernelObjects> emitKernels(KernelLibrary &library,
                                       llvm::TargetMachine &machine) override {
    KernelObjects result;
    std::optional<std::string> source = codeOptions();
    gpu::GPUModuleOp kernels = gpuModuleOf(library);
    auto add = [&](const std::string &name, auto translate) {
      CodeCache cache(*source + " " + name, machine);
      auto object = cache.findOrMake(
          [&] { return emitKernels(kernels.getLoc(), machine, translate); });
      if (failed(object))
        return failure();
      result.objects[name] = std::move(*object);
      return success();
    };
    for (auto kernel : kernels.getOps<gpu::GPUFuncOp>()) {
      if (kernel.getName().ends_with(kWarpgroupForm))
        continue;
      OwningOpRef<ModuleOp> alone = isolate(kernel);
      auto translate = [&](llvm::LLVMContext &context) {
        return translateForGpu(*alone->getOps<gpu::GPUModuleOp>().begin(),
                               context, gpu);
      };
      if (failed(add(digestOf(alone->getOperation()), translate)))
        return failure();
      apart.push_back(kernel.getName().str());
    }
    kernels.getBody()->clear();
    isApart = true;
    if (failed(add("services", [&](llvm::LLVMContext &context) {
          return translateTrainerKernels(kernels, context, gpu);
        })))
      return failure();
    return result;
  }

protected:
  StringRef chip() const override { return gpu; }
  FailureOr<std::vector<GpuCode>>
  makeCode(Location loc, llvm::Module &trainer,
           const llvm::Module &kernels) const override {
    if (isApart) {
      SmallVector<std::string> names(apart);
      llvm::append_range(names, kernelsOf(kernels)); // those of the runtime
      return std::vector<GpuCode>{hostCode(trainer, names)};
    }
    auto code = linkHostKernels(loc, trainer, kernels, host, options);
    if (failed(code))
      return failure();
    return std::vector<GpuCode>{*code};
  }

private:
  /// The object file of kernels, with their descriptions as its symbols.
  FailureOr<std::string> emitKernels(
      Location loc, llvm::TargetMachine &machine,
      llvm::function_ref<std::unique_ptr<llvm::Module>(llvm::LLVMContext &)>
          translate) const {
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> kernels = translate(context);
    if (!kernels)
      return failure();
    auto code = makeHostKernels(loc, *kernels, host, options);
    if (failed(code))
      return failure();
    hideEntries(**code, kernelsOf(*kernels));
    return emitObject(loc, **code, machine);
  }

  const llvm::TargetMachine &host;
  std::string gpu; // whose forms of kernels run
  HostKernelOptions options;
  SmallVector<std::string> apart; // kernels with objects of their own
  bool isApart = false;           // all are, and those of the runtime
};

} // namespace

std::unique_ptr<DeviceCode> makeSimtCode(const TargetOptions &target,
                                         const llvm::TargetMachine &host) {
  return std::make_unique<SimtCode>(host, target);
}

} // namespace rota::lowering
