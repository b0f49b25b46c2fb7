// SPDX-License-Identifier: Apache-2.0
#include "test/lowering/simt/EmulatedKernels.h"

#include "lowering/cpu/Object.h"
#include "lowering/gpu/NvvmModule.h"
#include "lowering/gpu/ServiceKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Target/TargetMachine.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace rota::test {

EmulatedKernels::EmulatedKernels(std::unique_ptr<bench::LinkedCode> code)
    : code(std::move(code)) {}

std::unique_ptr<EmulatedKernels>
EmulatedKernels::compile(Location loc, const llvm::Module &gpu,
                         const lowering::HostKernelOptions &options,
                         const std::string &processor,
                         llvm::CodeGenOptLevel level) {
  lowering::TargetOptions target;
  target.cpu = processor;
  auto host = lowering::createTargetMachine(loc, target);
  if (failed(host))
    return nullptr;
  (*host)->setOptLevel(level);
  auto hostModule = lowering::makeHostKernels(loc, gpu, **host, options);
  if (failed(hostModule))
    return nullptr;
  auto object = lowering::emitObject(loc, **hostModule, **host);
  if (failed(object))
    return nullptr;
  auto code = bench::LinkedCode::link(*object);
  if (!code)
    return nullptr;
  return std::unique_ptr<EmulatedKernels>(new EmulatedKernels(std::move(code)));
}

const RotaSimtKernel *EmulatedKernels::find(StringRef name) {
  auto *kernel =
      code->find<const RotaSimtKernel *>(lowering::descriptionSymbol(name));
  EXPECT_TRUE(kernel) << name.str();
  return kernel;
}

void EmulatedKernels::leaveOut(lowering::WaitingInstruction instruction) {
  auto *variable = code->find<uint32_t *>(lowering::kLeftOutVariable);
  ASSERT_TRUE(variable);
  *variable = lowering::leftOutNumber(instruction);
}

GpuKernels::GpuKernels()
    : mlirContext(MLIRContext::Threading::DISABLED),
      handler(&mlirContext, [this](Diagnostic &diagnostic) {
        diagnostics += diagnostic.str() + "\n";
        return success();
      }) {
  mlirContext
      .loadDialect<arith::ArithDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                   math::MathDialect, NVVM::NVVMDialect, scf::SCFDialect,
                   vector::VectorDialect>();
}

void GpuKernels::translate(ModuleOp source) {
  if (source)
    module = lowering::translateForGpu(
        *source.getOps<gpu::GPUModuleOp>().begin(), context);
}

std::unique_ptr<GpuKernels> GpuKernels::parse(StringRef text) {
  std::unique_ptr<GpuKernels> kernels(new GpuKernels());
  OwningOpRef<ModuleOp> source = parseSourceString<ModuleOp>(
      text, &kernels->mlirContext, /*sourceName=*/"test.mlir");
  kernels->translate(source.get());
  return kernels;
}

std::unique_ptr<GpuKernels> GpuKernels::parseFile(StringRef path) {
  std::unique_ptr<GpuKernels> kernels(new GpuKernels());
  OwningOpRef<ModuleOp> source =
      parseSourceFile<ModuleOp>(path, &kernels->mlirContext);
  kernels->translate(source.get());
  return kernels;
}

std::unique_ptr<GpuKernels> GpuKernels::services() {
  std::unique_ptr<GpuKernels> kernels(new GpuKernels());
  OpBuilder builder(&kernels->mlirContext);
  OwningOpRef<ModuleOp> source = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(source->getBody());
  auto module =
      gpu::GPUModuleOp::create(builder, builder.getUnknownLoc(), "kernels");
  kernels->module = lowering::translateTrainerKernels(module, kernels->context,
                                                      /*chip=*/"sm_80");
  return kernels;
}

std::unique_ptr<EmulatedKernels>
GpuKernels::compile(const lowering::HostKernelOptions &options,
                    const std::string &processor) {
  return EmulatedKernels::compile(UnknownLoc::get(&mlirContext), *module,
                                  options, processor);
}

std::string GpuKernels::takeDiagnostics() { return std::move(diagnostics); }

} // namespace rota::test
