// SPDX-License-Identifier: Apache-2.0
//
// The lowering phase in order: from the functions of one rank and a timeline to
// kernels, a program and native code.
#ifndef ROTA_LOWERING_PIPELINE_H
#define ROTA_LOWERING_PIPELINE_H

#include "ir/pipe/Pipe.h"
#include "lowering/device/DeviceCode.h"
#include "lowering/executable/Tasks.h"
#include "lowering/report/Transfers.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Target/TargetMachine.h"

#include <optional>

namespace rota::lowering {

/// From the functions of one rank to fused kernels, verified. Registered as
/// `lower-kernels`.
void buildLowerKernelsPipeline(mlir::OpPassManager &manager);

/// Makes the passes of this folder, `lower-kernels`, `cpu-to-llvm` and
/// `gpu-to-nvvm` known to tools.
void registerLoweringPasses();

/// Facts of the program that the lowered module does not have.
struct ModelFacts {
  std::string name;
  double flopsPerToken = 0;         // Model::flopsPerToken
  std::string config;               // the text of its configuration, or empty
  int64_t accumulationSteps = 1;    // Program::accumulationSteps
  std::string optimizer;            // Program::optimizer
  std::vector<ModelOption> options; // Program::modelOptions
  bool samples = false;             // Program::samples
};

/// A module on its way to a trainer. The functions are called in this order;
/// each needs those before it, but `verify` may be left out. One of the last
/// three ends the way.
class ProgramLowering {
public:
  /// `module` has functions of one rank and a timeline with communication. It
  /// must outlive this object.
  ProgramLowering(mlir::ModuleOp module, ModelFacts facts)
      : module(module), facts(std::move(facts)) {}

  /// Chooses the machine that code is made for.
  mlir::LogicalResult selectMachine(const TargetOptions &target);
  /// Forms kernels in the module.
  mlir::LogicalResult formKernels();
  /// Lowers functions to tasks and lays out the memory of every rank.
  mlir::LogicalResult plan();
  /// Proves the plan right, and adds its description for people.
  mlir::LogicalResult verify();

  /// The code as LLVM IR. It has no cubins.
  llvm::FailureOr<std::string> emitText();
  /// The GPU kernels as PTX for `chip`, as emitPtx of gpu/NvvmModule.h. The
  /// device has GPU kernels.
  llvm::FailureOr<std::string> emitPtxText(llvm::StringRef chip);
  /// Writes the trainer to `output`.
  mlir::LogicalResult link(llvm::StringRef output, const LinkOptions &options);

  const Program &getProgram() const { return program; }
  const FunctionCosts &getCosts() const { return costs; }
  const pipe::Timeline &getTimeline() const { return timeline; }
  /// The input of the memory plan.
  const memory::ModelLayout &getLayout() const { return layout; }
  const memory::ChunkTable &getChunks() const { return chunks; }
  /// The launches of each task on a GPU.
  const std::vector<TaskLaunches> &getLaunches() const { return launches; }
  /// The transfers of a step. Empty before `verify`.
  const std::vector<TransferReport> &getTransfers() const { return transfers; }

private:
  /// Tasks and the kernels of the library, without the program's data.
  llvm::FailureOr<std::unique_ptr<llvm::Module>>
  translate(llvm::LLVMContext &context);
  /// The object file of `translate`.
  llvm::FailureOr<std::string> emitTasks();
  memory::ChunkTable readChunks(mlir::pipe::ProgramOp op) const;

  mlir::ModuleOp module;
  ModelFacts facts;
  std::unique_ptr<llvm::TargetMachine> machine; // for code of the host
  DeviceKind kind = DeviceKind::Cpu;
  std::unique_ptr<DeviceCode> device;
  FunctionCosts costs;
  std::optional<KernelLibrary> library;
  mlir::OwningOpRef<mlir::ModuleOp> tasks;
  std::vector<TaskLaunches> launches;
  memory::ModelLayout layout;
  memory::ChunkTable chunks;
  pipe::Timeline timeline;
  Program program;
  std::vector<TransferReport> transfers;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_PIPELINE_H
