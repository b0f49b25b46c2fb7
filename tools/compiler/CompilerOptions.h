// SPDX-License-Identifier: Apache-2.0
//
// The options of the whole compiler: those of the model's builder, of each
// phase's pipeline and of the lowering, as these define them.
#ifndef ROTA_TOOLS_COMPILER_COMPILEROPTIONS_H
#define ROTA_TOOLS_COMPILER_COMPILEROPTIONS_H

#include "ir/rota/cost/Machine.h"
#include "lowering/cpu/Object.h"
#include "lowering/executable/Link.h"
#include "models/Models.h"
#include "passes/differentiate/Passes.h"
#include "passes/pipeline/Passes.h"
#include "passes/shard/Passes.h"
#include "runtime/program/Program.h"

#include <optional>
#include <string>
#include <vector>

namespace rota {

/// A model, the ranks that train it, and the order of their work.
struct CompilerOptions {
  std::string model; // as buildModel takes it
  mlir::rota::BuildOptions build;
  mlir::rota::FreezeParametersOptions freeze;
  mlir::pipe::ScheduleLayersOptions schedule;
  mlir::rota::DifferentiatePipelineOptions differentiate;
  mlir::rota::ShardPipelineOptions shard;
  mlir::pipe::CompleteTimelineOptions complete;
  lowering::TargetOptions target;
  lowering::LinkOptions link;
  int64_t accumulationSteps = 1;         // Program::accumulationSteps
  std::string optimizer;                 // Program::optimizer
  std::vector<ModelOption> modelOptions; // Program::modelOptions
  bool samples = false;                  // Program::samples
  /// Bytes of its device that a rank may take; a program that needs more is an
  /// error. 0: any number.
  int64_t memory = 0;
  std::string memoryText; // the same for messages, as the user has said it
  /// The machine that costs are for; none: the generic one.
  std::optional<mlir::rota::Machine> machine;

  /// Sets the remat policy. A policy that the user chose stays one.
  void setRemat(const std::string &policy) {
    differentiate.remat = policy;
    if (!complete.policy.empty())
      complete.policy = policy;
  }
};

} // namespace rota

#endif // ROTA_TOOLS_COMPILER_COMPILEROPTIONS_H
