// SPDX-License-Identifier: Apache-2.0
//
// The GPU kernels of one op on the emulator, beside the same op on the CPU.
#ifndef ROTA_TEST_LOWERING_GPU_EMULATEDOP_H
#define ROTA_TEST_LOWERING_GPU_EMULATEDOP_H

#include "lowering/executable/TaskLaunches.h"
#include "runtime/device/simt/Simt.h"
#include "test/lowering/simt/EmulatedKernels.h"

#include <string>
#include <vector>

namespace rota::test {

/// Bytes of a tensor, aligned as buffers of a trainer are.
struct TensorBytes {
  struct alignas(64) Line {
    char bytes[64];
  };
  std::string type; // "f32", "bf16" or "i32"
  int64_t count;    // of elements, those between rows included
  int64_t columns, stride;
  std::vector<Line> storage;

  /// A tensor of `count` elements whose rows of `columns` are `stride` apart.
  /// All bytes are 0xFF.
  TensorBytes(std::string type, int64_t count, int64_t columns = 1,
              int64_t stride = 1);
  /// Whether element `i` lies between two rows.
  bool isGap(int64_t i) const { return i % stride >= columns; }
  char *data() { return storage.data()->bytes; }
  const char *data() const { return storage.data()->bytes; }
  int64_t bytes() const { return count * (type == "bf16" ? 2 : 4); }
  double operator[](int64_t i) const;
  void set(int64_t i, double value);
};

class EmulatedOp {
public:
  /// The first op of the first function in `source`, or the first two where
  /// they have kernels for both (KernelEmitters::lookupPair); null, with a
  /// failure of the test, when that is not possible. The kernels have the
  /// forms of that chip.
  static std::unique_ptr<EmulatedOp> create(const std::string &source,
                                            std::vector<bool> accumulate = {},
                                            const std::string &chip = "sm_80");

  std::vector<TensorBytes> makeOperands() const { return operands; }
  std::vector<TensorBytes> makeResults() const { return results; }

  /// Runs all calls on a buffer per operand, then one per result, and returns
  /// the emulator's reports. Only results that are added to may be read before
  /// they are written.
  std::vector<std::string> run(const std::vector<char *> &buffers,
                               std::optional<uint64_t> seed = std::nullopt);

  /// Bytes of global memory of a launch: as its kernel accessed them, and as
  /// `rota plan --explain` has them.
  struct Moved {
    std::string kernel;
    simt::MovedBytes moved;
    double planned;
  };
  /// The launches of the last run, in order.
  const std::vector<Moved> &moved() const { return launches; }

  /// The number of such instructions.
  unsigned count(lowering::GpuSynchronization kind) const;
  /// The next runs are without that one.
  void leaveOut(lowering::WaitingInstruction instruction);

private:
  EmulatedOp();
  std::unique_ptr<EmulatedKernels> compile(bool mayLeaveOut);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> source;
  std::unique_ptr<lowering::KernelLibrary> library;
  bool hasWarpgroups = false;
  lowering::KernelPlan plan;
  lowering::TaskLaunches planned; // of the calls of `plan`
  std::vector<Moved> launches;
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> gpu;
  std::unique_ptr<EmulatedKernels> kernels;
  bool mayLeaveOut = false;                   // `kernels` may
  std::vector<TensorBytes> operands, results; // before a run
  llvm::SmallVector<bool> accumulate;         // into a result
};

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_GPU_EMULATEDOP_H
