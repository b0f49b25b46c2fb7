// SPDX-License-Identifier: Apache-2.0
//
// One op, compiled into this process and run by hand: for measurements and for
// tests that compare a kernel with a plain loop.
#ifndef ROTA_TOOLS_BENCH_COMPILEDOP_H
#define ROTA_TOOLS_BENCH_COMPILEDOP_H

#include "lowering/kernels/KernelPlan.h"
#include "runtime/Abi.h"
#include "runtime/TileAbi.h"
#include "tools/bench/LinkedCode.h"

#include "llvm/Support/CodeGen.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rota::bench {

class CompiledOp {
public:
  /// The memory of an operand or a result.
  struct Buffer {
    int64_t bytes = 0;
    bool isInteger = false;
  };

  /// Compiles the first op of the first function in `source` that is neither a
  /// constant nor a terminator, for the processor `cpu` (as -march names it).
  /// Where it has no kernels of its own, row-aligned ops are fused first.
  /// An emulated kind of `pairs` makes the code of processors that multiply
  /// bf16 so, but for those instructions; without one the processor decides.
  /// Errors are printed; the result is then null.
  static std::unique_ptr<CompiledOp>
  create(const std::string &source, std::vector<bool> accumulate = {},
         const std::string &cpu = "native",
         llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Default,
         std::optional<lowering::PairProducts> pairs = {});
  ~CompiledOp();

  /// Runs all calls; a buffer per operand, then one per result.
  /// rotaLaunch divides the rows.
  void run(RotaContext *context, std::vector<void *> buffers);

  /// How products of bf16 are added.
  lowering::PairProducts pairs() const { return library->getTarget().pairs; }
  /// Replaces what kernels multiply tiles with: rotaTiles().
  void setTiles(const RotaTiles &other) { tiles = &other; }
  /// The cost that the compiler gives the op.
  const mlir::rota::Cost &cost() const { return price; }
  /// A buffer per operand, then one per result.
  const std::vector<Buffer> &buffers() const { return memory; }

  /// Runs all calls on this thread, each in pieces of `rows` rows, last first.
  void runInPieces(int64_t rows, std::vector<void *> buffers);

  /// The kernels' LLVM dialect text.
  std::string text() const;

private:
  CompiledOp();
  using CallRows =
      llvm::function_ref<void(const lowering::KernelCall &call,
                              RotaCpuKernel kernel, void *const *args)>;
  void forCalls(std::vector<void *> &buffers, CallRows callRows);

  mlir::MLIRContext context;
  std::unique_ptr<lowering::KernelLibrary> library;
  std::unique_ptr<LinkedCode> code;
  lowering::KernelPlan plan;
  mlir::rota::Cost price;
  std::vector<Buffer> memory;
  std::vector<RotaCpuKernel> kernels; // one per call of the plan
  unsigned operands = 0;
  const RotaTiles *tiles = rotaTiles();
};

} // namespace rota::bench

#endif // ROTA_TOOLS_BENCH_COMPILEDOP_H
