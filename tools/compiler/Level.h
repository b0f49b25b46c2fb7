// SPDX-License-Identifier: Apache-2.0
//
// The levels of a model on its way to a trainer.
#ifndef ROTA_TOOLS_COMPILER_LEVEL_H
#define ROTA_TOOLS_COMPILER_LEVEL_H

#include "runtime/text/Names.h"

namespace rota {

/// The levels from the model down to the executable.
enum class Level {
  Rota,           // the model as built, with frozen parameters
  Differentiated, // with a timeline, and forward and backward functions
  Sharded,        // the functions of one rank of the mesh, with collectives
  Pipe,           // with communication in the timeline
  Kernels,        // with fused kernels
  LLVM,           // the trainer's code as optimized LLVM IR
  PTX,            // the kernels of a GPU
  Executable,     // the trainer
};
template <> struct Names<Level> {
  static constexpr const char *list[] = {"rota", "differentiated", "sharded",
                                         "pipe", "kernels",        "llvm",
                                         "ptx",  "executable"};
};

} // namespace rota

#endif // ROTA_TOOLS_COMPILER_LEVEL_H
