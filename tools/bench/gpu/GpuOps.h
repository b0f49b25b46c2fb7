// SPDX-License-Identifier: Apache-2.0
//
// The GPU kernels of functions, with the launches of each, for measurements:
// as an object file for another machine, or linked in memory.
#ifndef ROTA_TOOLS_BENCH_GPU_GPUOPS_H
#define ROTA_TOOLS_BENCH_GPU_GPUOPS_H

#include "lowering/kernels/KernelPlan.h"
#include "runtime/Abi.h"
#include "tools/bench/LinkedCode.h"

namespace rota::bench {

class GpuOps {
public:
  /// The memory of an operand, a result or a temporary.
  struct Buffer {
    std::string element; // "bf16", "f32", "i32"; "none" of temporaries
    int64_t bytes = 0;
    bool isGiven = false; // an operand
  };
  /// `arguments` are numbers of buffers.
  struct Launch {
    std::string kernel;
    lowering::LaunchShape shape;
    std::vector<int64_t> arguments;
  };
  struct Function {
    std::vector<Buffer> buffers;
    std::vector<Launch> launches;
    mlir::rota::Cost cost; // that the compiler gives its ops
  };

  struct CodeOptions {
    bool isEmulated = false;       // else PTX for the chips of trainers
    bool hasServices = false;      // the runtime's own kernels too
    std::string cpu = "x86-64-v3"; // any machine with a GPU has it
  };

  GpuOps();
  ~GpuOps();

  /// Plans the function of that name in the text. False where that is not
  /// possible; the reason is printed.
  bool add(llvm::StringRef source, llvm::StringRef name);
  /// In the order in which they were added.
  llvm::ArrayRef<Function> functions() const { return planned; }

  /// The kernels of all functions in an object file, as trainers have them.
  llvm::FailureOr<std::string> object(const CodeOptions &options);
  /// The same, linked in memory; it lives as long as this object. Empty where
  /// the kernels cannot be compiled; the reason is printed.
  llvm::ArrayRef<RotaGpuCode> link(const CodeOptions &options);

private:
  mlir::MLIRContext context;
  lowering::KernelLibrary library;
  std::vector<Function> planned;
  std::unique_ptr<LinkedCode> linked;
};

} // namespace rota::bench

#endif // ROTA_TOOLS_BENCH_GPU_GPUOPS_H
