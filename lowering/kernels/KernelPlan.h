// SPDX-License-Identifier: Apache-2.0
//
// Plans of native kernel calls: each op's functions, rows and buffers. A
// library holds each function once.
#ifndef ROTA_LOWERING_KERNELS_KERNELPLAN_H
#define ROTA_LOWERING_KERNELS_KERNELPLAN_H

#include "ir/rota/Rota.h"
#include "lowering/kernels/KernelEmitters.h"
#include "lowering/kernels/PairProducts.h"
#include "llvm/ADT/StringMap.h"
#include <array>
#include <optional>

namespace rota::lowering {

/// A buffer that a kernel call gets a pointer to, or a number.
struct KernelArgument {
  /// Number: the index itself, an i32 that the kernel reads; on CPUs. Scalar:
  /// the index in place of a pointer; on GPUs. Tiles: a RotaTiles
  /// (runtime/TileAbi.h) that the runtime chooses; on CPUs.
  enum class Kind { Operand, Result, Temporary, Number, Scalar, Tiles } kind;
  unsigned index; // number of the op's operand or result, or in `temporaries`
};

/// `rows` rows of `columns` f32 become one row of `element`, which replaces the
/// result or is added to it.
struct SummedRows {
  int64_t rows, columns;
  mlir::Type element;
  bool accumulate;
  bool operator==(const SummedRows &) const = default;
};

/// One rotaLaunch: kernel `symbol` over `rows` rows in pieces of multiples
/// of `grain`, with these arguments in this order. On a GPU one launch, with
/// the LaunchShape of the symbol.
struct KernelCall {
  std::string symbol;
  int64_t rows = 0;
  int64_t grain = 1;
  llvm::SmallVector<KernelArgument> arguments;
  /// Of a call that sums the rows of a temporary, its first argument, into its
  /// second one.
  std::optional<SummedRows> sum = {};
};

/// The calls that carry out one op, in order.
struct KernelPlan {
  llvm::SmallVector<KernelCall> calls;
  llvm::SmallVector<int64_t> temporaries; // bytes of each
};

class KernelLibrary;
class RowBuilder;
struct RowForm;

/// emitRowCode (RowBuilder.h) on a device.
using EmitRows = llvm::FailureOr<std::string>(
    KernelLibrary &library, mlir::Location loc, llvm::StringRef prefix,
    llvm::StringRef key, unsigned arguments, const RowForm &space,
    llvm::function_ref<void(RowBuilder &k, mlir::Value row)> body);
EmitRows emitVectorRows;

/// The symbol of a kernel that does `count` sums of one form at once. Its
/// arguments are rows and result of each.
using EmitSums = llvm::FailureOr<std::string>(KernelLibrary &library,
                                              mlir::Location loc,
                                              const SummedRows &sum,
                                              unsigned count);

/// The device that kernels are made for.
struct KernelTarget {
  KernelEmitters emitters;
  EmitRows *emitRows = nullptr;
  unsigned vectorBits = 0;      // size of a vector register; 0: not used
  EmitSums *emitSums = nullptr; // null: sums follow what they sum
  PairProducts pairs = PairProducts::None;
};

/// A CPU whose vector registers have `vectorBits`.
inline KernelTarget vectorTarget(unsigned vectorBits,
                                 PairProducts pairs = PairProducts::None) {
  return {vectorEmitters(), emitVectorRows, vectorBits, nullptr, pairs};
}

/// The threads that run a kernel on a GPU.
struct LaunchShape {
  std::array<int64_t, 3> grid = {1, 1, 1}; // blocks
  int64_t block = 0;                       // threads of a block
  int64_t sharedBytes = 0;                 // dynamic shared memory of a block
  // The kernel for a table of such launches: RotaGpuLaunch::table.
  std::string table = {};
  int64_t tableRows = 0, tableBlocks = 0;
  int64_t noteAt = 0;         // RotaGpuLaunch::noteAt
  int64_t ownSharedBytes = 0; // RotaGpuLaunch::ownSharedBytes
  /// Of the kernel's form for chips with instructions of warpgroups, or of all.
  int64_t sharedBytesOf(bool isOwn) const {
    return isOwn && ownSharedBytes > 0 ? ownSharedBytes : sharedBytes;
  }
};

/// A CPU with vectors of 512 bits and an emulated kind of products, for code
/// that any CPU runs.
inline KernelTarget emulatedTarget(PairProducts pairs) {
  return vectorTarget(512, pairs);
}

/// The native kernels of a program in a module of their own: on a CPU functions
/// `void(ptr args, i64 begin, i64 end)` of explicit vector code, on a GPU the
/// kernels of one `gpu.module` (see lowering/gpu). Two requests with one key
/// share one function.
class KernelLibrary {
public:
  KernelLibrary(mlir::MLIRContext *context, KernelTarget target);
  /// For a CPU whose vector registers have `vectorBits`.
  KernelLibrary(mlir::MLIRContext *context, unsigned vectorBits)
      : KernelLibrary(context, vectorTarget(vectorBits)) {}

  mlir::ModuleOp getModule() { return *module; }
  const KernelTarget &getTarget() const { return target; }
  unsigned getVectorBits() const { return target.vectorBits; }
  const KernelEmitters &getEmitters() const { return target.emitters; }

  /// Whether launches that are a whole function get a kernel for a table of
  /// them, where the device has such. So it is for a step's end.
  void setTables(bool makes) { makesTables = makes; }
  bool hasTables() const { return makesTables; }

  /// The symbol of the kernel with this key; `emit` builds it as `symbol` when
  /// it is not there. The key must determine the code.
  llvm::FailureOr<std::string>
  getOrEmit(llvm::StringRef prefix, llvm::StringRef key,
            llvm::function_ref<llvm::LogicalResult(mlir::OpBuilder &builder,
                                                   llvm::StringRef symbol)>
                emit);

  /// The symbols of all kernels, in the order in which they were emitted.
  const std::vector<std::string> &getSymbols() const { return ordered; }

  /// Bytes that one row of the kernel reads and writes, for profiles; 0 where
  /// unknown.
  void setRowBytes(llvm::StringRef symbol, int64_t bytes) {
    rowBytes[symbol] = bytes;
  }
  int64_t getRowBytes(llvm::StringRef symbol) const {
    return rowBytes.lookup(symbol);
  }

  /// The threads of a GPU's kernel; no block where the symbol is none.
  void setLaunchShape(llvm::StringRef symbol, const LaunchShape &shape) {
    launchShapes[symbol] = shape;
  }
  LaunchShape getLaunchShape(llvm::StringRef symbol) const {
    return launchShapes.lookup(symbol);
  }

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelTarget target;
  bool makesTables = false;
  llvm::StringMap<std::string> symbols; // by key
  std::vector<std::string> ordered;     // the names as they were emitted
  llvm::StringMap<int64_t> rowBytes;
  llvm::StringMap<LaunchShape> launchShapes;
};

/// Replaces the content of `module` by the kernels of its ops, planned in
/// `library`.
llvm::LogicalResult replaceByKernels(mlir::ModuleOp module,
                                     KernelLibrary &library);

/// The plan of one call of kernel `symbol`: its arguments are the first
/// `operands` operands of the op, then result 0. Fails where `symbol` does.
llvm::FailureOr<KernelPlan> planCall(llvm::FailureOr<std::string> symbol,
                                     int64_t rows, int64_t grain,
                                     unsigned operands);

/// Whether `op` becomes kernels of its own: all ops of that form and, on a
/// device that has an emitter for them, products of rows of experts.
bool hasKernels(mlir::Operation *op, const KernelLibrary &library);

/// Plans `op` with its emitter in `library`, which emits the functions that are
/// missing there. `accumulate` says for each result whether the op adds into
/// the buffer instead of overwriting it; an op that cannot is an error, as is
/// an op without an emitter.
llvm::FailureOr<KernelPlan> planKernels(mlir::Operation *op,
                                        llvm::ArrayRef<bool> accumulate,
                                        KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_KERNELPLAN_H
