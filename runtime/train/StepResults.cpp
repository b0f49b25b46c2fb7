// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/StepResults.h"

#include <cstring>

namespace rota {

StepResults::StepResults(Rank &rank, Executor &executor, Optimizer &optimizer,
                         bool hasBarrier)
    : rank(rank), executor(executor), optimizer(optimizer),
      hasBarrier(hasBarrier), tables{TableSums(rank), TableSums(rank)},
      bubbles{BubbleGather(rank, hasBarrier), BubbleGather(rank, hasBarrier)} {}

PendingStep StepResults::start(int64_t t, bool withBubble) {
  PendingStep step;
  step.number = t;
  step.results = rank.device().startRead(rank.runtimeAt(rank.places().result),
                                         rank.places().resultBytes);
  step.end = rank.device().mark();
  if (hasBarrier)
    return step;
  auto turn = static_cast<size_t>(t % 2);
  tables[turn].start(step.results->wait());
  if (withBubble)
    bubbles[turn].start(executor.times().meanSeconds());
  return step;
}

void StepResults::read(const PendingStep &step, StepReport &progress) {
  const Program &program = rank.program();
  std::span<const char> bytes = step.results->wait();
  rank.rethrowFullExperts();
  std::vector<double> result(static_cast<size_t>(kStepResults));
  std::memcpy(result.data(), bytes.data(), 8 * result.size());
  optimizer.finishNorm(result);
  progress.step = step.number;
  progress.skip = optimizer.skips().read(result);
  progress.skippedSteps = optimizer.skips().skipped();
  Loss loss = finishLoss(rank, bytes, program.accumulationSteps,
                         progress.skip != SkipReason::None);
  progress.loss = loss.mean();
  progress.lossParts = loss.parts(program);
  TableSums &counts = tables[static_cast<size_t>(step.number % 2)];
  if (!counts.isOpen())
    counts.start(bytes);
  progress.observed = counts.finish();
  progress.gradientNorm = optimizer.readNorm(result);
}

double StepResults::bubble(int64_t t) {
  BubbleGather &bubble = bubbles[static_cast<size_t>(t % 2)];
  if (!bubble.isOpen())
    bubble.start(executor.times().meanSeconds());
  return bubble.finish();
}

} // namespace rota
