// SPDX-License-Identifier: Apache-2.0
//
// The trainer's command line.
#ifndef ROTA_RUNTIME_TRAIN_OPTIONS_H
#define ROTA_RUNTIME_TRAIN_OPTIONS_H

#include "runtime/data/Tokens.h"
#include "runtime/train/Optimizer.h"

#include <optional>
#include <string>
#include <vector>

namespace rota {

/// What a rank is: a thread of one process, or a process of its own.
enum class RankKind { Threads, Mpi };

struct Options {
  // Both commands.
  RankKind ranks = RankKind::Threads;
  int64_t steps = 100;
  uint64_t seed = 1;
  int threads = 0; // compute tokens; 0: the process's share
  std::string weights;
  AdamW adamw;
  bool json = false;
  bool profile = false;
  std::string trace;

  // Training.
  std::vector<std::string> data;
  TokenType tokenType = TokenType::Bytes;
  double validationFraction = 0.05;
  int64_t validationInterval = 100;
  int64_t validationSteps = 4;
  double timeLimit = 0.0; // seconds; 0: none
  int64_t logInterval = 10;
  std::string save;

  // `probe`.
  bool probe = false;
  std::string tokens;
  std::vector<std::string> write;
  std::string output;
};

/// Fills `options`. Returns an exit code when the program ends here (help asked
/// for, or an error), nothing when it goes on. Help and errors are printed if
/// `speaks`: one of many processes does.
std::optional<int> parseOptions(int argc, char **argv, bool speaks,
                                Options &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIONS_H
