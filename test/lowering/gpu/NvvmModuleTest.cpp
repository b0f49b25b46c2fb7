// SPDX-License-Identifier: Apache-2.0
//
// One module of LLVM IR serves every chip, and keeps the lines of its source.
#include "lowering/gpu/NvvmModule.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace ::rota::lowering;

namespace {

const char *const kTwice = R"(
  gpu.module @kernels {
    gpu.func @twice(%x: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %lane = nvvm.read.ptx.sreg.tid.x : i32
      %at = llvm.getelementptr %x[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %v = llvm.load %at : !llvm.ptr<1> -> f32
      %w = arith.addf %v, %v : f32
      llvm.store %w, %at : f32, !llvm.ptr<1>
      gpu.return
    }
  })";

class NvvmModule : public testing::Test {
protected:
  NvvmModule() {
    mlirContext.loadDialect<arith::ArithDialect, gpu::GPUDialect,
                            LLVM::LLVMDialect, NVVM::NVVMDialect>();
    module = parseSourceString<ModuleOp>(kTwice, &mlirContext);
    kernels = *module->getOps<gpu::GPUModuleOp>().begin();
    translated = translateForGpu(kernels, context);
  }

  MLIRContext mlirContext{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  gpu::GPUModuleOp kernels;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated;
};

TEST_F(NvvmModule, KernelsKeepTheirLines) {
  ASSERT_TRUE(translated);
  llvm::Function *twice = translated->getFunction("twice");
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->getCallingConv(), llvm::CallingConv::PTX_Kernel);
  for (llvm::Instruction &instruction : llvm::instructions(*twice))
    if (isa<llvm::StoreInst>(instruction)) {
      ASSERT_TRUE(instruction.getDebugLoc());
      EXPECT_EQ(instruction.getDebugLoc().getLine(), 8u);
    }
}

TEST_F(NvvmModule, TheSourceStays) {
  ASSERT_TRUE(translated);
  EXPECT_FALSE(kernels.getOps<gpu::GPUFuncOp>().empty());
}

TEST_F(NvvmModule, EveryChipFromOneModule) {
  ASSERT_TRUE(translated);
  for (const char *chip : {"sm_80", "sm_90", "sm_90a", "sm_100"}) {
    auto text = emitPtx(kernels.getLoc(), *translated, chip);
    ASSERT_TRUE(succeeded(text));
    EXPECT_NE(text->find(std::string(".target ") + chip + "\n"),
              std::string::npos)
        << *text;
    EXPECT_NE(text->find(".entry twice"), std::string::npos);
    EXPECT_EQ(text->find(".loc"), std::string::npos);
  }
}

} // namespace
