// SPDX-License-Identifier: Apache-2.0
//
// The options of `rota`, set by flags or by a RUN.json whose keys are the long
// flags; flags win over the file. One table (OptionTable.cpp) serves the
// command line, the file and --help; its rows for the trainer are those that
// the trainer itself reads (runtime/train/options/TrainerOptions.cpp).
#ifndef ROTA_TOOLS_ROTA_RUNOPTIONS_H
#define ROTA_TOOLS_ROTA_RUNOPTIONS_H

#include "lowering/cpu/Object.h"
#include "models/Models.h"
#include "passes/differentiate/Passes.h"
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/timeline/Simulator.h"
#include "passes/shard/Passes.h"
#include "runtime/Error.h"
#include "runtime/train/options/TrainerOptions.h"
#include "tools/compiler/Level.h"
#include "tools/rota/Diagnostics.h"

namespace rota {

/// The forms in which `rota schedule` writes a timeline.
enum class TimelineFormat { Grid, CSV, JSON, SVG, Trace };
template <> struct Names<TimelineFormat> {
  static constexpr const char *list[] = {"grid", "csv", "json", "svg", "trace"};
};

/// The remat policy that is chosen for each stage.
inline constexpr const char *kAutoRemat = "auto";

/// The options of the phase that makes the timeline are the passes' own.
/// `stages` is the size of the mesh's stage axis. Without a number,
/// `microbatches` are the fewest that the schedule takes.
struct RunOptions : Options, mlir::pipe::ScheduleLayersOptions {
  /// With the options of all optimizers.
  RunOptions();

  // Model. `weights`, when empty, are those beside the model, if any.
  std::string model;             // a hub folder, a .json or a .mlir file
  bool allowUnknownKeys = false; // of the model's configuration
  std::optional<mlir::rota::ComputeType> dtype; // none: the model's own
  double zLoss = mlir::rota::BuildOptions().zLoss;
  int64_t lossBlocks = mlir::rota::BuildOptions().lossBlocks;
  mlir::rota::ExpertRoom experts;
  double loadBalanceLoss = 0, routerZLoss = 0, routerBiasRate = 0;
  mlir::rota::LoadBalanceOver loadBalanceOver =
      mlir::rota::RouterLosses().balanceOver;
  double predictionLoss = 0;
  // Numbers of a step; 0: not given. A .mlir model has its own shapes, and
  // `probe` takes them from its tokens.
  int64_t batchSize = 0;      // sequences in a step, all ranks together
  int64_t sequenceLength = 0; // tokens
  int64_t accumulate = 1;     // Program::accumulationSteps

  // Mesh. An axis of size -1 gets what the others leave of `devices`.
  std::string mesh = "stage=1"; // as given; every size known once checked
  int64_t devices = 0;          // ranks in all; 0: the product of the sizes
  mlir::rota::ShardingMode sharding = mlir::rota::ShardPipelineOptions().mode;
  mlir::rota::ContextExchange contextExchange =
      mlir::rota::ShardPipelineOptions().contextExchange;
  std::vector<std::string> shardingRules; // "name=axis+axis"
  bool shardOptimizer = mlir::rota::ShardPipelineOptions().shardOptimizer;
  std::optional<pipe::GatherMode> weightGather;
  std::optional<int64_t> window;   // gathered chunks in each rank
  std::optional<int64_t> prefetch; // none: as early as the window allows

  std::vector<std::string>
      stageLayers; // numbers; `layersPerStage` once checked

  /// `auto` until chooseRemat has made a policy of it.
  std::string remat = mlir::rota::DifferentiateOptions().remat;
  std::string memoryText; // as given
  int64_t memory = 0;     // bytes that a rank may take; 0: any number

  // Optimizer: the pass's options but for groups and values.
  mlir::rota::BuildUpdatesOptions updates;
  std::vector<std::string> groups; // "norm=decay:0", or parts of it

  // Execution and output.
  lowering::TargetOptions target;
  std::string linker; // empty: the first that is found
  std::string ptxas;  // likewise; "none": no cubins
  Level emit = Level::Executable;
  bool explain = false;
  bool state = false;
  std::string measured;           // a trace; empty: none
  std::optional<Remarks> remarks; // none: not printed

  // `checkpoint` and `convert`, which have `checkpoint` too.
  std::string action; // "list", "show" or "verify"
  std::string shardSize = "5GB";
  std::string runFolder; // `report` alone

  // `schedule` alone.
  std::vector<std::string> compare; // schedules for a table; empty: none
  bool sweep = false; // a table for each of several numbers of microbatches
  TimelineFormat format = TimelineFormat::Grid;
  bool communication = false, offload = false;
  bool unpipelined = false; // a chunk of layers outside of the pipeline
  pipe::CostTable costs;

  /// Names of the options that the file or a flag gave.
  std::set<std::string, std::less<>> given;
};

/// Reads the arguments after the verb: flags and at most one RUN.json (for
/// `schedule`: a name or a file, for `report` a folder). Returns
/// an exit code when the program ends here (help that was printed, or an error
/// that has been printed to standard error), nothing when it goes on.
std::optional<int> parseRunOptions(Command verb, int argc,
                                   const char *const *argv,
                                   RunOptions &options);

/// The options of the model's builder. Sequences in a microbatch are 0 when
/// the options leave them to the model's file or to the tokens.
mlir::rota::BuildOptions buildOptions(const RunOptions &options);

/// The arguments of the trainer for `train`, `probe` or `eval`, without the
/// program's name: every option that it has, with its value.
std::vector<std::string> trainerArguments(Command verb, RunOptions options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_RUNOPTIONS_H
