// SPDX-License-Identifier: Apache-2.0
//
// From a model's path to rota IR: a configuration of a known family, a hub
// folder, or a module that a user wrote.
#ifndef ROTA_MODELS_MODELS_H
#define ROTA_MODELS_MODELS_H

#include "ir/rota/model/Model.h"
#include "runtime/text/Names.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::rota {

/// The element type that a model computes in. Master weights are f32 in both.
enum class ComputeType { F32, BF16 };

/// The tokens over which the load of experts is balanced: each microbatch's, or
/// all of a step, of all its accumulation steps and ranks.
enum class LoadBalanceOver { Microbatch, Step };

} // namespace mlir::rota
template <> struct rota::Names<mlir::rota::ComputeType> {
  static constexpr const char *list[] = {"f32", "bf16"};
};
template <> struct rota::Names<mlir::rota::LoadBalanceOver> {
  static constexpr const char *list[] = {"microbatch", "step"};
};
namespace mlir::rota {

/// Coefficients of routers' auxiliary losses, means over layers, microbatches
/// and tokens; 0: none.
struct RouterLosses {
  /// Coefficient of the load balance; not given: the configuration's.
  std::optional<double> balance;
  LoadBalanceOver balanceOver = LoadBalanceOver::Microbatch;
  double zLoss = 0; // on logsumexp(logits)^2 (Zoph et al. 2022, equation 5)
  /// No loss: what a step adds to the bias of an expert that fewer tokens than
  /// the mean have chosen (Wang et al. 2024); 0: biases stay as they are.
  double biasRate = 0;
};

/// Room for the rows of experts (rota.expert_places).
struct ExpertRoom {
  /// Along the mesh axis 'expert', which divides experts.
  int64_t ranks = 1;
  /// Equal parts of a sequence, each of which has rows of its own: the ranks
  /// along the mesh axis 'context', which divides the length.
  int64_t parts = 1;
  /// Pieces of a sequence that travel one after the other, each beside the
  /// products of another, where there is one part.
  int64_t pieces = 1;
  /// Rows for the experts of a rank, over a rank's even share of the rows of a
  /// part of a sequence; more end the run. 0: room for as many as there can be.
  double buffer = 0;
  /// Rows that an expert takes, over its even share of the rows of a sequence;
  /// others are dropped. 0: all.
  double capacity = 0;
};

/// Low-rank adapters: y = W x + alpha / rank * B (A x) with A of [rank, in] and
/// B of [out, rank]. All other parameters are frozen.
struct AdapterOptions {
  int64_t rank = 0; // 0: there are none
  double alpha = 0;
  /// Names of linear layers, or ends of them in whole words: "q_proj".
  std::vector<std::string> targets;
};

struct BuildOptions {
  /// Sequences of one microbatch and tokens of one sequence. 0: not given; only
  /// a module of the user's own, which has its shapes in it, can do without.
  int64_t sequences = 0;
  int64_t sequenceLength = 0;
  /// Not given: the configuration's `dtype`, or f32 where that says float16,
  /// whose values f32 holds exactly.
  std::optional<ComputeType> compute;
  /// Coefficient of the z-loss, logsumexp(logits)^2 of each token that counts;
  /// 0: none. A module has a loss of its own and takes none.
  double zLoss = 0;
  /// Calls of the loss in a microbatch, each on a part of the sequence, whose
  /// length they divide. Logits then need the bytes of one part. 1 for a
  /// module.
  int64_t lossBlocks = 1;
  ExpertRoom experts = {};
  RouterLosses routers = {};
  /// Keys of a configuration that its family does not know are ignored with a
  /// warning, not refused.
  bool allowUnknownKeys = false;
  /// Coefficient of the loss of multi-token prediction, which a configuration
  /// with `num_nextn_predict_layers` has; 0: without its module. Not given: 0.3
  /// where there is one.
  std::optional<double> predictionLoss = {};
  AdapterOptions adapters = {};
  /// The token that ends a document: no query sees another document than its
  /// own. Not given: all tokens of a sequence are one document.
  std::optional<int32_t> documentEnd = {};
  /// The text of a configuration, for which the model's path is a name. Empty:
  /// it is read from the path.
  std::string config = {};
};

struct BuiltModel {
  OwningOpRef<ModuleOp> module;
  std::string name;    // for people: the folder's or the file's name
  std::string weights; // kWeightFiles beside the configuration, or empty
  /// The method by which these are quantized, after the configuration's
  /// `quantization_config`; empty: they are not.
  std::string quantization;
  std::string config; // the text of the configuration, or empty
  int64_t sequences = 0;
  int64_t sequenceLength = 0;
};

/// Builds or loads the model at `path`: a folder with a config.json, a .json
/// file, or a .mlir file with a module in the form of ir/rota/model/Roles.h.
/// Errors are diagnostics of the context with the place in the file.
FailureOr<BuiltModel> buildModel(MLIRContext &context, StringRef path,
                                 const BuildOptions &options);

/// Registers the dialects that models are made of, with their interfaces.
void registerModelDialects(DialectRegistry &registry);

} // namespace mlir::rota

#endif // ROTA_MODELS_MODELS_H
