// SPDX-License-Identifier: Apache-2.0
//
// GPU kernels for a machine without a GPU: the LLVM IR that becomes PTX, with
// calls of the emulator (runtime/device/simt/Services.h) in place of what only
// a GPU has.
#ifndef ROTA_LOWERING_SIMT_HOSTKERNELS_H
#define ROTA_LOWERING_SIMT_HOSTKERNELS_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include <memory>
#include <string>
#include <utility>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace rota::lowering {

/// Instructions by which threads wait for each other or for their copies.
enum class GpuSynchronization { Barrier, WarpBarrier, CopyWait, WarpgroupWait };

struct HostKernelOptions {
  /// Every access of memory is checked, and races in shared memory are found.
  /// Without checks the results have the same bits.
  bool checks = true;
  /// Threads pass over the instruction that the variable `kLeftOutVariable` of
  /// the module names. Tests show so, with kernels that are compiled once, that
  /// each instruction is needed and that the checks see it.
  bool mayLeaveOut = false;
};

/// An instruction by which threads wait: its kind, and its number among those
/// of the kind in the order of the module.
using WaitingInstruction = std::pair<GpuSynchronization, unsigned>;

/// The number of such instructions in the module.
unsigned countSynchronizations(const llvm::Module &gpu,
                               GpuSynchronization kind);

/// The symbol of an i32: the leftOutNumber() of an instruction, or 0.
inline constexpr llvm::StringLiteral kLeftOutVariable = "rota.left_out";
uint32_t leftOutNumber(WaitingInstruction instruction);

/// The name of the RotaSimtKernel that describes a kernel.
std::string descriptionSymbol(llvm::StringRef kernel);

/// The kernels of `gpu`, a module for NVPTX whose kernels have the calling
/// convention `ptx_kernel` and which stays as it is, as a module for `host` in
/// the same context. For each kernel @k the result has a function
/// `void @k(void *const *arguments)`, which runs one thread, and its
/// description @"k.simt", a RotaSimtKernel. An instruction that the emulator
/// does not know is an error at `loc` that names it and its function.
llvm::FailureOr<std::unique_ptr<llvm::Module>>
makeHostKernels(mlir::Location loc, const llvm::Module &gpu,
                const llvm::TargetMachine &host,
                const HostKernelOptions &options);

} // namespace rota::lowering

#endif // ROTA_LOWERING_SIMT_HOSTKERNELS_H
