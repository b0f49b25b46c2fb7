// SPDX-License-Identifier: Apache-2.0
//
// The options of `rota`, set by flags or by a RUN.json whose keys are the long
// flags; flags win over the file. One table (OptionTable.cpp) serves the
// command line, the file and --help; its rows for the trainer are those that
// the trainer itself reads (runtime/train/Options.cpp).
#ifndef ROTA_TOOLS_ROTA_OPTIONS_H
#define ROTA_TOOLS_ROTA_OPTIONS_H

#include "models/Models.h"
#include "passes/pipeline/timeline/Simulator.h"
#include "runtime/Error.h"
#include "runtime/train/Options.h"

namespace rota {

struct RunOptions : Options {
  /// With the options of the optimizer.
  RunOptions();

  // Model. `weights`, when empty, are those beside the model, if any.
  std::string model; // a hub folder, a .json or a .mlir file
  std::string dtype; // "f32" or "bf16"; empty: the model's own
  // Numbers of a step; 0: not given. A .mlir model has its own shapes, and
  // `probe` takes them from its tokens.
  int64_t batchSize = 0;      // sequences in a step, all ranks together
  int64_t sequenceLength = 0; // tokens
  int64_t microbatches = 1;   // not given: the fewest that the schedule takes

  // Mesh. An axis of size -1 gets what the others leave of `devices`.
  std::string mesh = "stage=1"; // as given; every size known once checked
  int64_t devices = 0;          // ranks in all; 0: the product of the sizes
  int64_t stages = 1;           // the size of the mesh's stage axis
  std::string sharding = "auto";
  std::vector<std::string> shardingRules; // "name=axis+axis"
  bool shardOptimizer = false;
  std::string weightGather;        // empty: weights are not divided
  std::optional<int64_t> window;   // gathered chunks in each rank
  std::optional<int64_t> prefetch; // none: as early as the window allows

  // Pipeline.
  std::string schedule = "circular";
  int64_t repeats = 1;        // chunks in each rank
  int64_t layersPerChunk = 0; // 0: follows from stages and repeats
  int64_t pipelineLayers = 0; // 0: all
  std::string placement = "loop";
  int64_t delay = 1; // iterations from one stage to the next
  bool splitBackward = false;
  std::string remat = "none";

  // Execution and output.
  std::string device = "cpu";
  std::string targetCpu = "native";
  std::string linker; // empty: the first that is found
  std::string emit = "executable";
  bool explain = false;
  std::string remarks; // a category; empty: none

  // `schedule` alone.
  std::string format = "grid"; // grid, csv, json, svg or trace
  bool communication = false, offload = false;
  bool outer = false; // a chunk of layers outside of the pipeline
  pipe::CostTable costs;

  /// Names of the options that the file or a flag gave.
  std::set<std::string, std::less<>> given;
};

/// Reads the arguments after the verb: flags and at most one RUN.json (for
/// `schedule`: a name or a file). Returns
/// an exit code when the program ends here (help that was printed, or an error
/// that has been printed to standard error), nothing when it goes on.
std::optional<int> parseRunOptions(Command verb, int argc,
                                   const char *const *argv,
                                   RunOptions &options);

/// The options of the model's builder. Sequences in a microbatch are 0 when
/// the options leave them to the model's file or to the tokens.
mlir::rota::BuildOptions buildOptions(const RunOptions &options);

/// The arguments of the trainer for `train` or `probe`, without the program's
/// name: every option that it has, with its value.
std::vector<std::string> trainerArguments(Command verb, RunOptions options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_OPTIONS_H
