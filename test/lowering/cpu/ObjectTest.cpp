// SPDX-License-Identifier: Apache-2.0
//
// Processors by name, and what comes out of code generation for them.
#include "lowering/cpu/Object.h"
#include "test/interpreter/TestModule.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <gtest/gtest.h>

using namespace rota::lowering;
using rota::interpreter::TestModule;

namespace {

const char *const kScale = R"(
  func.func @scale(%x: f32) -> f32 {
    %y = arith.mulf %x, %x : f32
    return %y : f32
  })";

unsigned bitsOf(const char *cpu) {
  TestModule module("");
  auto machine = createTargetMachine(module.get().getLoc(), {cpu});
  return succeeded(machine) ? vectorBits(**machine) : 0;
}

TEST(Object, VectorRegistersOfProcessors) {
  if (!llvm::Triple(llvm::sys::getDefaultTargetTriple()).isX86())
    GTEST_SKIP() << "names of x86 processors";
  EXPECT_EQ(bitsOf("x86-64"), 128u);
  EXPECT_EQ(bitsOf("x86-64-v3"), 256u);
  EXPECT_EQ(bitsOf("x86-64-v4"), 512u);
}

std::string featuresOf(const char *cpu) {
  TestModule module("");
  auto machine = createTargetMachine(module.get().getLoc(), {cpu});
  return succeeded(machine) ? processorFeatures(**machine) : "";
}

/// The names are those of LLVM: it takes an unknown one for missing.
TEST(Object, FeaturesOfProcessors) {
  if (!llvm::Triple(llvm::sys::getDefaultTargetTriple()).isX86())
    GTEST_SKIP() << "names of x86 processors";
  EXPECT_EQ(featuresOf("x86-64"), "");
  EXPECT_EQ(featuresOf("haswell"),
            "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,"
            "f16c,fma");
  EXPECT_EQ(featuresOf("bdver2"),
            "sse3,ssse3,sse4.1,sse4.2,sse4a,popcnt,lzcnt,bmi,avx,f16c,fma,fma4,"
            "xop");
  EXPECT_EQ(featuresOf("znver4"), featuresOf("znver3") +
                                      ",gfni,avx512f,avx512cd,avx512bw,"
                                      "avx512dq,avx512vl,avx512ifma,avx512vbmi,"
                                      "avx512vbmi2,avx512vnni,avx512bitalg,"
                                      "avx512vpopcntdq,avx512bf16");
}

TEST(Object, UnknownProcessorIsAnError) {
  TestModule module("");
  auto machine = createTargetMachine(module.get().getLoc(), {"abacus"});
  EXPECT_TRUE(failed(machine));
  EXPECT_NE(
      module.takeDiagnostics().find("expected a processor that LLVM knows for"),
      std::string::npos);
}

TEST(Object, TextNamesTheProcessor) {
  if (!llvm::Triple(llvm::sys::getDefaultTargetTriple()).isX86())
    GTEST_SKIP() << "names of x86 processors";
  TestModule module(kScale);
  ASSERT_TRUE(succeeded(lowerToLLVMDialect(module.get())));
  auto machine = createTargetMachine(module.get().getLoc(), {"x86-64-v3"});
  ASSERT_TRUE(succeeded(machine));
  llvm::LLVMContext context;
  auto code = translateToLLVM(module.get(), context, **machine);
  ASSERT_TRUE(succeeded(code)) << module.takeDiagnostics();
  std::string text = emitLLVM(**code);
  EXPECT_NE(text.find("define float @scale(float"), std::string::npos);
  EXPECT_NE(text.find("\"target-cpu\"=\"x86-64-v3\""), std::string::npos);
}

TEST(Object, BytesAreAnObjectFile) {
  TestModule module(kScale);
  ASSERT_TRUE(succeeded(lowerToLLVMDialect(module.get())));
  auto machine = createTargetMachine(module.get().getLoc(), {});
  ASSERT_TRUE(succeeded(machine));
  auto object = emitObject(module.get(), **machine);
  ASSERT_TRUE(succeeded(object)) << module.takeDiagnostics();
  EXPECT_EQ(object->substr(0, 4), "\x7f"
                                  "ELF");
  EXPECT_NE(object->find("scale"), std::string::npos);
}

/// Code that is not lowered is an error, not a crash.
TEST(Object, OtherOpsAreAnError) {
  TestModule module(kScale);
  auto machine = createTargetMachine(module.get().getLoc(), {});
  ASSERT_TRUE(succeeded(machine));
  EXPECT_TRUE(failed(emitObject(module.get(), **machine)));
}

} // namespace
