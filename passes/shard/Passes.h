// SPDX-License-Identifier: Apache-2.0
//
// Shardings: from tensor functions of one imaginary device to those of each
// rank of a mesh.
#ifndef ROTA_PASSES_SHARD_PASSES_H
#define ROTA_PASSES_SHARD_PASSES_H

#include "ir/rota/Rota.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::rota {

#define GEN_PASS_DECL
#include "passes/shard/Passes.h.inc"

/// The options of `shard`, see Passes.td.
struct ShardPipelineOptions : PassPipelineOptions<ShardPipelineOptions> {
  Option<std::string> mesh{*this, "mesh",
                           llvm::cl::desc("As for the pass assign-shardings"),
                           llvm::cl::init("")};
  Option<int64_t> ranks{*this, "ranks",
                        llvm::cl::desc("As for the pass assign-shardings"),
                        llvm::cl::init(0)};
  Option<std::string> rules{*this, "rules",
                            llvm::cl::desc("As for the pass assign-shardings"),
                            llvm::cl::init("")};
  Option<bool> shardOptimizer{
      *this, "shard-optimizer",
      llvm::cl::desc("As for the pass assign-shardings"),
      llvm::cl::init(false)};
  Option<std::string> optimizer{*this, "optimizer",
                                llvm::cl::desc("As for the pass build-updates"),
                                llvm::cl::init("")};
  Option<std::string> mode{*this, "mode",
                           llvm::cl::desc("As for the pass insert-reshards"),
                           llvm::cl::init("auto")};
};

/// From a differentiated model to the functions of one rank of the mesh.
void buildShardPipeline(OpPassManager &manager,
                        const ShardPipelineOptions &options);

/// Makes the passes of this folder and `shard` known to tools.
void registerShardPasses();

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PASSES_H
