// SPDX-License-Identifier: Apache-2.0
//
// Shardings: from tensor functions of one imaginary device to those of each
// rank of a mesh.
#ifndef ROTA_PASSES_SHARD_PASSES_H
#define ROTA_PASSES_SHARD_PASSES_H

#include "ir/rota/Rota.h"
#include "mlir/Pass/Pass.h"
#include "passes/TextOptions.h"
#include "passes/optimizer/Passes.h"

namespace mlir::rota {
/// The mode of insert-reshards.
enum class ShardingMode { Auto, Explicit };
/// The exchange of keys with the other ranks of the context axis.
enum class ContextExchange { Gather, Ring, BalancedRing, Auto };
/// The reduction of the partial sums of products: whole, or in pieces.
enum class TensorExchange { Gather, Ring, Auto };
} // namespace mlir::rota
template <> struct rota::Names<mlir::rota::ShardingMode> {
  static constexpr const char *list[] = {"auto", "explicit"};
};
template <> struct rota::Names<mlir::rota::ContextExchange> {
  static constexpr const char *list[] = {"gather", "ring", "balanced-ring",
                                         "auto"};
};
template <> struct rota::Names<mlir::rota::TensorExchange> {
  static constexpr const char *list[] = {"gather", "ring", "auto"};
};

namespace mlir::rota {

#define GEN_PASS_DECL
#include "passes/shard/Passes.h.inc"

/// The options of `shard`. `rules` are those of both passes that have rules.
struct ShardPipelineOptions : AssignShardingsOptions,
                              BuildUpdatesOptions,
                              ChooseContextExchangeOptions,
                              InsertReshardsOptions,
                              SplitCollectivesOptions {};

/// From a differentiated model to the functions of one rank of the mesh.
void buildShardPipeline(OpPassManager &manager,
                        const ShardPipelineOptions &options);

/// Makes the passes of this folder and `shard` known to tools.
void registerShardPasses();

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PASSES_H
