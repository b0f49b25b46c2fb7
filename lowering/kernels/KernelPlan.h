// SPDX-License-Identifier: Apache-2.0
//
// Plans of native kernel calls: each op's functions, rows and buffers. A
// library holds each function once.
#ifndef ROTA_LOWERING_KERNELS_KERNELPLAN_H
#define ROTA_LOWERING_KERNELS_KERNELPLAN_H

#include "ir/rota/Rota.h"
#include "lowering/kernels/KernelEmitters.h"
#include "llvm/ADT/StringMap.h"

namespace rota::lowering {

/// A buffer that a kernel call gets a pointer to.
struct KernelArgument {
  enum class Kind { Operand, Result, Temporary } kind;
  unsigned index; // of the op's operand or result, or in `temporaries`
};

/// One rotaLaunch: kernel `symbol` over `rows` rows in pieces of multiples
/// of `grain`, with these arguments in this order (see RotaCpuKernel in
/// runtime/Abi.h).
struct KernelCall {
  std::string symbol;
  int64_t rows = 0;
  int64_t grain = 1;
  llvm::SmallVector<KernelArgument> arguments;
};

/// The calls that carry out one op, in order.
struct KernelPlan {
  llvm::SmallVector<KernelCall> calls;
  llvm::SmallVector<int64_t> temporaries; // bytes of each
};

/// The native kernels of a program: functions `void(ptr args, i64 begin, i64
/// end)` of explicit vector code in a module of their own. Two requests with
/// one key share one function.
class KernelLibrary {
public:
  /// `vectorBits` is the width of the target's vector registers.
  KernelLibrary(mlir::MLIRContext *context, unsigned vectorBits);

  mlir::ModuleOp getModule() { return *module; }
  unsigned getVectorBits() const { return vectorBits; }
  const KernelEmitters &getEmitters() const { return emitters; }

  /// The symbol of the kernel with this key; `emit` builds it as `symbol` when
  /// it is not there. The key must determine the code.
  llvm::FailureOr<std::string>
  getOrEmit(llvm::StringRef prefix, llvm::StringRef key,
            llvm::function_ref<llvm::LogicalResult(mlir::OpBuilder &builder,
                                                   llvm::StringRef symbol)>
                emit);

  /// Bytes that one row of the kernel reads and writes, for profiles; 0 where
  /// unknown.
  void setRowBytes(llvm::StringRef symbol, int64_t bytes) {
    rowBytes[symbol] = bytes;
  }
  int64_t getRowBytes(llvm::StringRef symbol) const {
    return rowBytes.lookup(symbol);
  }

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
  unsigned vectorBits;
  KernelEmitters emitters;
  llvm::StringMap<std::string> symbols;
  llvm::StringMap<int64_t> rowBytes;
};

/// Whether `op` becomes kernels of its own.
bool hasKernels(mlir::Operation *op);

/// Plans `op` with its emitter in `library`, which emits the functions that are
/// missing there. `accumulate` says for each result whether the op adds into
/// the buffer instead of overwriting it; an op that cannot is an error, as is
/// an op without an emitter.
llvm::FailureOr<KernelPlan> planKernels(mlir::Operation *op,
                                        llvm::ArrayRef<bool> accumulate,
                                        KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_KERNELPLAN_H
