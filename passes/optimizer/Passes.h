// SPDX-License-Identifier: Apache-2.0
//
// The optimizer: from placed parameters to functions that update them.
#ifndef ROTA_PASSES_OPTIMIZER_PASSES_H
#define ROTA_PASSES_OPTIMIZER_PASSES_H

#include "ir/rota/Rota.h"
#include "mlir/Pass/Pass.h"
#include "passes/TextOptions.h"

namespace mlir::rota {
/// The type of an optimizer's states or of its products.
enum class UpdateType { F32, BF16 };
/// The factor of Muon's steps for a matrix of r rows and c columns:
/// sqrt(max(1, r / c)), or 0.2 * sqrt(max(r, c)), with which a step is as large
/// as one of AdamW (Liu et al., "Muon is scalable for LLM training", 2025).
enum class MuonScale { Original, MatchRMSAdamW };
} // namespace mlir::rota
template <> struct rota::Names<mlir::rota::UpdateType> {
  static constexpr const char *list[] = {"f32", "bf16"};
};
template <> struct rota::Names<mlir::rota::MuonScale> {
  static constexpr const char *list[] = {"original", "match-rms-adamw"};
};

namespace mlir::rota {

#define GEN_PASS_DECL
#include "passes/optimizer/Passes.h.inc"

/// Makes the passes of this folder known to tools.
void registerOptimizerPasses();

} // namespace mlir::rota

#endif // ROTA_PASSES_OPTIMIZER_PASSES_H
