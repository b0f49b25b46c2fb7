// SPDX-License-Identifier: Apache-2.0
//
// From explicit vector code to LLVM's dialect, LLVM IR text and a native object
// file, for this machine or a named one.
#ifndef ROTA_LOWERING_CPU_OBJECT_H
#define ROTA_LOWERING_CPU_OBJECT_H

#include "lowering/kernels/PairProducts.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/program/DeviceKind.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
} // namespace llvm

namespace rota::lowering {

/// The machine that code is made for.
struct TargetOptions {
  std::string cpu = "native"; // as clang's -march names it: "x86-64-v3"
  DeviceKind device = DeviceKind::Cpu;
  // GPU architectures, as ptxas names them; empty: all that trainers are made
  // for.
  std::vector<std::string> gpus = {};
  bool unchecked = false; // simt: kernels without the emulator's checks
};

/// A description of the processor for code generation. Fails with an error at
/// `loc` when the name is not known.
llvm::FailureOr<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(mlir::Location loc, const TargetOptions &options);

/// Those of ROTA_PROCESSOR_FEATURES (runtime/ProcessorAbi.h) that the machine
/// has, with commas in between: "sse3,avx2".
std::string processorFeatures(const llvm::TargetMachine &machine);

/// Bits in a vector register of the machine: 512, 256 or 128.
unsigned vectorBits(const llvm::TargetMachine &machine);

/// How the machine adds products of bf16 fastest.
PairProducts pairProducts(const llvm::TargetMachine &machine);

/// Turns a module of func, scf, cf, vector, arith, math and llvm ops into one
/// of llvm ops alone.
llvm::LogicalResult lowerToLLVMDialect(mlir::ModuleOp module);

/// The module, which holds llvm ops alone, as optimized LLVM IR for `machine`.
llvm::FailureOr<std::unique_ptr<llvm::Module>>
translateToLLVM(mlir::ModuleOp module, llvm::LLVMContext &context,
                llvm::TargetMachine &machine);

/// LLVM IR as text.
std::string emitLLVM(const llvm::Module &module);

/// The bytes of a position-independent object file of `module`, which is made
/// for `machine`. Code generation changes the module.
llvm::FailureOr<std::string> emitObject(mlir::Location loc,
                                        llvm::Module &module,
                                        llvm::TargetMachine &machine);

/// The bytes of an object file of a module that holds llvm ops alone.
llvm::FailureOr<std::string> emitObject(mlir::ModuleOp module,
                                        llvm::TargetMachine &machine);

} // namespace rota::lowering

#endif // ROTA_LOWERING_CPU_OBJECT_H
