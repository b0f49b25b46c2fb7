// SPDX-License-Identifier: Apache-2.0
//
// What a run is asked for, by flags or by a RUN.json whose keys are the long
// flags; flags win over the file. One table (OptionTable.cpp) says of each
// option its name, rule, help and which verbs take it; it serves the command
// line, the file and --help.
#ifndef ROTA_TOOLS_ROTA_OPTIONS_H
#define ROTA_TOOLS_ROTA_OPTIONS_H

#include "models/Models.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rota {

/// The verbs that run or plan a model; a mask in the table.
enum class Verb : unsigned { Train = 1, Compile = 2, Plan = 4, Probe = 8 };

/// Exit codes of the tool: success, the work failed, bad arguments or input.
enum ExitCode { ExitSuccess = 0, ExitFailure = 1, ExitBadInput = 2 };

struct RunOptions {
  // Model.
  std::string model;   // a hub folder, a .json or a .mlir file
  std::string dtype;   // "f32" or "bf16"; empty: the model's own
  std::string weights; // safetensors; empty: those beside the model, if any
  // Numbers of a step; 0: not given. A .mlir model has its own shapes, and
  // `probe` takes them from its tokens.
  int64_t batchSize = 0;      // sequences in a step, all ranks together
  int64_t sequenceLength = 0; // tokens
  int64_t microbatches = 1;

  // Mesh. An axis of size -1 gets what the others leave of `devices`.
  std::string mesh = "stage=1"; // as given; every size known once checked
  int64_t devices = 0;          // ranks in all; 0: the product of the sizes
  int64_t stages = 1;           // the size of the mesh's stage axis
  std::string sharding = "auto";
  std::vector<std::string> shardingRules; // "name=axis+axis"
  bool shardOptimizer = false;
  std::string weightGather; // empty: per-repeat if repeats > 1, else once
  int64_t window = 2;       // gathered chunks in each rank
  int64_t prefetch = 0;     // 0: as early as the window allows

  // Pipeline.
  std::string schedule = "circular";
  int64_t repeats = 1;        // chunks in each rank
  int64_t layersPerChunk = 0; // 0: follows from stages and repeats
  int64_t pipelineLayers = 0; // 0: all
  std::string placement = "loop";
  int64_t delay = 1; // iterations from one stage to the next
  bool splitBackward = false;
  std::string remat = "none";

  // Optimizer.
  double learningRate = 3e-4, minLearningRate = 0.0;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weightDecay = 0.1, gradientClip = 1.0;
  int64_t warmupSteps = 0;

  // Training.
  int64_t steps = 100;
  std::vector<std::string> data;
  std::string tokenType = "bytes";
  int64_t seed = 1;
  double validationFraction = 0.05;
  int64_t validationInterval = 100, validationSteps = 4;
  double timeLimit = 0.0; // seconds; 0: none
  int64_t logInterval = 10;
  std::string save;

  // Probe.
  std::string tokens;
  std::vector<std::string> write = {"loss"};

  // Execution and output.
  std::string device = "cpu", ranks = "threads";
  int64_t threads = 0; // 0: its share
  std::string targetCpu = "native";
  std::string linker; // empty: the first that is found
  std::string emit = "executable";
  std::string output;
  bool json = false, profile = false, explain = false;
  std::string trace;
  std::string remarks; // a category; empty: none

  /// Names of the options that the file or a flag gave.
  std::set<std::string, std::less<>> given;
};

/// Reads the arguments after the verb: flags and at most one RUN.json. Returns
/// an exit code when the program ends here (help that was printed, or an error
/// that has been printed to standard error), nothing when it goes on.
std::optional<int> parseRunOptions(Verb verb, int argc, const char *const *argv,
                                   RunOptions &options);

/// What the model is to be built with. Sequences in a microbatch are 0 when
/// the options leave them to the model's file or to the tokens.
mlir::rota::BuildOptions buildOptions(const RunOptions &options);

/// The trainer's arguments for `train` or `probe`, without the program's name:
/// every option that both sides have, the given ones with their values.
std::vector<std::string> trainerArguments(Verb verb, const RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_OPTIONS_H
