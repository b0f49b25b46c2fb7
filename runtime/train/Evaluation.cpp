// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Evaluation.h"
#include "runtime/Error.h"
#include "runtime/data/TokenBatches.h"
#include "runtime/train/Data.h"
#include "runtime/train/Signals.h"
#include "runtime/train/step/Gather.h"

namespace rota {

std::optional<Loss> Evaluation::run(int64_t t) {
  Loss total;
  const Program &program = rank.program();
  int64_t runs = options.steps * runsOf(program, options.batchSize);
  for (int64_t run = 0; run < runs; ++run) {
    if (decideTogether(rank, {isInterrupted()})[0])
      return std::nullopt;
    loadAccumulationStep(rank, batches, Split::Validation,
                         run * program.timelineSequences());
    executor.run(Executor::Mode::Evaluate);
    Loss loss = gatherLoss(rank);
    total.sum += loss.sum;
    total.weight += loss.weight;
  }
  if (total.weight == 0.0)
    throw InputError("expected a target that counts in the data of a "
                     "validation, got none");
  if (!least || total.main() < least->loss)
    least = {total.main(), t};
  return total;
}

void Evaluation::save(RunState &state) const {
  if (least)
    setBestValidation(state, *least);
}

void Evaluation::restore(const RunState &state) {
  least = bestValidation(state);
}

} // namespace rota
