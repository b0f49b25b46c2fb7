// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Evaluation.h"
#include "runtime/train/Data.h"
#include "runtime/train/Gather.h"

namespace rota {

double Evaluation::run() {
  Loss total;
  for (int64_t b = 0; b < options.validationSteps; ++b) {
    loadBatch(rank, batches, Split::Validation, b);
    executor.run(Executor::Mode::Evaluate);
    Loss loss = gatherLoss(rank);
    total.sum += loss.sum;
    total.weight += loss.weight;
    total.auxiliary +=
        loss.auxiliary / static_cast<double>(options.validationSteps);
  }
  return total.mean();
}

} // namespace rota
