// SPDX-License-Identifier: Apache-2.0
//
// A trainer of the line model, as a compiled trainer is, for tests that start
// processes. `line-trainer STAGES,MICROBATCHES,DATA,FSDP,SHARD ARGUMENTS`; with
// ROTA_FAIL=RANK a task of that rank fails in the second step.
#include "runtime/device/Parallel.h"
#include "runtime/files/Streams.h"
#include "runtime/train/Train.h"
#include "test/runtime/LineModel.h"

#include <cstdio>
#include <cstdlib>

using namespace rota;
using namespace rota::test;

static void backwardThatFails(RotaContext *context, const RotaFrame *frame) {
  static thread_local int calls = 0;
  const char *rank = std::getenv("ROTA_FAIL");
  auto *self = rankOf(context);
  if (rank && self && self->number() == std::atoi(rank) &&
      ++calls > self->program().microbatches)
    return reportFailure(context, "made to fail");
  lineTasks[2](context, frame);
}

static int run(int argc, char **argv) {
  LineShape shape;
  int shardOptimizer = 0;
  if (argc < 2 || std::sscanf(argv[1], "%d,%ld,%d,%d,%d", &shape.stages,
                              &shape.microbatches, &shape.data, &shape.fsdp,
                              &shardOptimizer) != 5) {
    std::fprintf(stderr, "error: expected five numbers of a shape\n");
    return 2;
  }
  shape.shardOptimizer = shardOptimizer != 0;
  std::string text = toBytes(makeLine(shape));
  RotaTask tasks[] = {lineTasks[0], lineTasks[1], backwardThatFails,
                      lineTasks[3], lineTasks[4], lineTasks[5]};
  argv[1] = argv[0];
  return runTrainer(argc - 1, argv + 1, text.data(),
                    static_cast<int64_t>(text.size()), tasks, lineKernels);
}

int main(int argc, char **argv) {
  prepareStreams();
  return endOutput(run(argc, argv));
}
