// SPDX-License-Identifier: Apache-2.0
//
// The options that take effect when a trainer runs. `rota` has them too: its
// table (tools/rota/options/OptionTable.cpp) begins with these rows.
#ifndef ROTA_RUNTIME_TRAIN_OPTIONS_TRAINEROPTIONS_H
#define ROTA_RUNTIME_TRAIN_OPTIONS_TRAINEROPTIONS_H

#include "runtime/data/TokenType.h"
#include "runtime/options/CommandLine.h"
#include "runtime/train/options/CheckpointOptions.h"
#include "runtime/train/options/MetricsOptions.h"
#include "runtime/train/options/OptimizerOptions.h"
#include "runtime/train/options/ResumeOptions.h"
#include "runtime/train/options/SampleOptions.h"
#include "runtime/train/options/SkipOptions.h"
#include "runtime/train/options/ValidationOptions.h"

#include <optional>
#include <string>
#include <vector>

namespace rota {

/// A rank is a thread of one process, or a process of its own: with tensors in
/// host memory, or with a GPU of its own.
enum class RankKind { Threads, Mpi, Nccl };
template <> struct Names<RankKind> {
  static constexpr const char *list[] = {"threads", "mpi", "nccl"};
};

struct Options {
  // All commands.
  RankKind ranks = RankKind::Threads;
  int64_t steps = 100;
  int64_t stopAfter = 0; // a step before the last one; 0: none
  int64_t seed = 1;
  int64_t threads = 0; // compute tokens; 0: the process's share
  bool allowTf32 = false;
  std::string weights; // empty: initializers
  std::string adapter; // a folder of PEFT; empty: initializers
  OptimizerOptions optimizer;
  SkipOptions skip;
  bool json = false;
  bool profile = false;
  std::string trace;
  MetricsOptions metrics;

  // Training.
  std::vector<std::string> data;
  std::optional<TokenType> tokenType; // open: as files say, or bytes
  ValidationOptions validation;
  double timeLimit = 0.0; // seconds; 0: none
  int64_t logInterval = 10;
  std::string save;
  CheckpointOptions checkpoints;
  ResumeOptions resume;
  bool noRecording = false; // each step asks its device for each kernel

  // `probe`.
  std::string tokens;
  std::vector<std::string> write = {"loss"};
  std::string output;

  SampleOptions samples; // of training and of `generate`

  // `eval` and `generate`.
  std::string checkpoint; // empty: `weights`
  int64_t evalSteps = 0;  // batches; 0: all
};

/// The table of these options, with `options` as its variables; of the
/// optimizer's own it has those in `options`.
std::vector<Option> trainOptions(Options &options);

/// Checks what the options of `trainOptions` mean together.
OptionMistake checkTrainOptions(const Options &options);

/// Reads the trainer's arguments into `command` and `options`. Returns an exit
/// code when the program ends here (help asked for, or an error), nothing when
/// it goes on. Help and errors are printed if `prints`: one of many processes
/// does.
std::optional<int> parseOptions(int argc, char **argv, bool prints,
                                Command &command, Options &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIONS_TRAINEROPTIONS_H
