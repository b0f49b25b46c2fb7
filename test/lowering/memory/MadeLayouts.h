// SPDX-License-Identifier: Apache-2.0
//
// Layouts of made-up models for tests of the memory plan.
#ifndef ROTA_TEST_LOWERING_MEMORY_MADELAYOUTS_H
#define ROTA_TEST_LOWERING_MEMORY_MADELAYOUTS_H

#include "lowering/memory/Layout.h"

#include <random>

namespace rota::test {

struct LayoutOptions {
  bool split = false;     // the backward, in two halves
  bool logits = false;    // compiled in
  bool samples = false;   // and for samples alone
  bool auxiliary = false; // every other layer has two auxiliary losses
  bool blocks = false;    // whether the loss, which has a term, has blocks
  // Ranks along the mesh <data = 2, stage, fsdp, tensor = 2>; 0: no mesh.
  int stages = 0;
  bool windows = false; // fsdp = 2: most parameters are stored over it
  bool zero = false;    // optimizers are divided over data, too
  bool frozen = false;  // half of the parameters have no gradient
  bool offload = false; // layers have residuals that may rest in host memory
  bool offloadInputs = false; // and some, inputs
  int sizes = 1000;           // below which made-up sizes are
};

/// Two layer kinds and both ends with a tied parameter, of made-up sizes that
/// are multiples of nothing.
memory::ModelLayout makeLayout(const LayoutOptions &options,
                               std::mt19937 &random);

/// Chunks of `layers` layers, of the two kinds in turn; with 0, of one layer,
/// and the first and the last of several chunks have none.
memory::ChunkTable makeChunks(const pipe::Shape &shape, int layers);

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_MEMORY_MADELAYOUTS_H
