// SPDX-License-Identifier: Apache-2.0
//
// Runs the native kernels of a function in this process, op by op, so that
// tests compare them with the interpreter.
#ifndef ROTA_TEST_LOWERING_KERNELS_KERNELHARNESS_H
#define ROTA_TEST_LOWERING_KERNELS_KERNELHARNESS_H

#include "lowering/cpu/Object.h"
#include "lowering/kernels/KernelPlan.h"
#include "runtime/TileAbi.h"
#include "test/interpreter/Interpreter.h"
#include "tools/bench/LinkedCode.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rota::test {

/// Makes the code of all kernels as for a trainer and links it in memory. Null,
/// with a failure of the test or the reason in the context's diagnostics, when
/// that is not possible.
std::unique_ptr<bench::LinkedCode>
linkKernels(rota::lowering::KernelLibrary &library,
            const rota::lowering::TargetOptions &options = {});

/// The address of a kernel; null, with a failure of the test, when there is
/// none.
using NativeKernel = void (*)(void *const *args, int64_t begin, int64_t end);
NativeKernel lookupKernel(bench::LinkedCode &code, llvm::StringRef symbol);

/// Further processors whose code this machine runs.
std::vector<std::string> otherProcessors();

/// The compiled kernels of one function: each op but `rota.reshape` is planned
/// with planKernels; the code is made as for a trainer and linked in memory.
class KernelHarness {
public:
  using Tensor = rota::interpreter::Tensor;

  /// `accumulate` says for each result of the function whether the op that
  /// makes it adds into the result's buffer (empty: none does).
  /// `pairs`: as CompiledOp::create. Null, with the reason in the
  /// context's diagnostics, when an op has no kernel.
  static std::unique_ptr<KernelHarness>
  compile(mlir::func::FuncOp function, llvm::ArrayRef<bool> accumulate = {},
          const rota::lowering::TargetOptions &options = {},
          std::optional<rota::lowering::PairProducts> pairs = {});
  ~KernelHarness();

  /// Runs the function. The rows of each kernel are cut into `pieces`, done
  /// last piece first. Result i starts as `initial[i]` where it accumulates;
  /// otherwise, like temporaries, as NaN. Fails the test when a kernel writes
  /// beyond a buffer.
  std::vector<Tensor> run(llvm::ArrayRef<Tensor> arguments, int64_t pieces = 1,
                          llvm::ArrayRef<Tensor> initial = {});

  /// `run` with results in the buffers of operands wherever the op allows it.
  std::vector<Tensor> runInPlace(llvm::ArrayRef<Tensor> arguments);

  /// Calls of kernels that one run makes.
  int64_t countCalls() const;

private:
  struct Buffer;
  class Execution;

  KernelHarness() = default;

  mlir::func::FuncOp function;
  const RotaTiles *tiles = nullptr;
  std::vector<std::pair<mlir::Operation *, rota::lowering::KernelPlan>> plans;
  std::unique_ptr<bench::LinkedCode> code;
};

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_KERNELS_KERNELHARNESS_H
