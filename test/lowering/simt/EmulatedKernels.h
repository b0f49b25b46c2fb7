// SPDX-License-Identifier: Apache-2.0
//
// GPU kernels in MLIR text, compiled for this machine and linked in memory.
#ifndef ROTA_TEST_LOWERING_SIMT_EMULATEDKERNELS_H
#define ROTA_TEST_LOWERING_SIMT_EMULATEDKERNELS_H

#include "lowering/simt/HostKernels.h"
#include "runtime/device/simt/Services.h"
#include "tools/bench/LinkedCode.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"

namespace rota::test {

/// Kernels on the host; they live as long as this object.
class EmulatedKernels {
public:
  /// The kernels of `gpu`, the LLVM IR that becomes PTX, for a processor as
  /// -march names it. Null, with diagnostics at `loc`, when the emulator does
  /// not know an instruction.
  static std::unique_ptr<EmulatedKernels>
  compile(mlir::Location loc, const llvm::Module &gpu,
          const lowering::HostKernelOptions &options,
          const std::string &processor = "native",
          llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Default);
  /// The description of a kernel; fails the test when there is none.
  const RotaSimtKernel *find(llvm::StringRef name);
  /// Kernels that are compiled for it run without that instruction from now on.
  void leaveOut(lowering::WaitingInstruction instruction);

private:
  explicit EmulatedKernels(std::unique_ptr<bench::LinkedCode> code);

  std::unique_ptr<bench::LinkedCode> code;
};

/// A gpu.module as the optimized LLVM IR that becomes PTX.
class GpuKernels {
public:
  /// Null module, and diagnostics, when the text cannot be translated.
  static std::unique_ptr<GpuKernels> parse(llvm::StringRef text);
  static std::unique_ptr<GpuKernels> parseFile(llvm::StringRef path);
  /// The kernels that the runtime launches by itself.
  static std::unique_ptr<GpuKernels> services();

  explicit operator bool() const { return bool(module); }
  llvm::Module &get() { return *module; }

  /// Null, and diagnostics, when the emulator does not know an instruction.
  std::unique_ptr<EmulatedKernels>
  compile(const lowering::HostKernelOptions &options = {},
          const std::string &processor = "native");

  /// The messages since the last call, one a line.
  std::string takeDiagnostics();

private:
  GpuKernels();
  void translate(mlir::ModuleOp source);

  mlir::MLIRContext mlirContext;
  mlir::ScopedDiagnosticHandler handler;
  std::string diagnostics;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_SIMT_EMULATEDKERNELS_H
