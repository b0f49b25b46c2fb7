// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Optimizer.h"
#include "runtime/Error.h"
#include "runtime/program/UpdatePlaces.h"
#include "runtime/train/step/Loss.h"
#include "runtime/train/step/StepBarrier.h"
#include "runtime/train/step/UpdateTask.h"

#include <fmt/format.h>
#include <utility>

namespace rota {

bool hasStepBarrier(Rank &rank, const OptimizerOptions &options,
                    const SkipOptions &skips) {
  if (options.postValidate && rank.device().isAsynchronous())
    throw InputError(fmt::format(
        "'post-validate': expected a program for CPUs, got one for {}",
        rank.device().name()));
  return hasStepBarrier(rank.program(), options, skips);
}

Optimizer::Optimizer(Rank &rank, const OptimizerOptions &options,
                     const SkipOptions &skips, bool hasBarrier)
    : rank(rank), options(options), hasBarrier(hasBarrier),
      inTimeline(updatesInTimeline(rank.stage())), sums(rank, hasBarrier),
      norm(rank, hasBarrier), scalars(rank, options), skipping(rank, skips) {
  if (!hasBarrier && options.gradientClip > 0.0)
    snapshot = std::make_unique<Snapshot>(rank);
}

static void wait(Rank &rank, std::vector<Request> &requests) {
  for (Request request : std::exchange(requests, {}))
    rank.waitAtStepEnd(request);
}

void Optimizer::begin(double learningRate) {
  scalars.write(skipping.beginStep(), learningRate);
}

void Optimizer::settle() {
  sums.settle();
  wait(rank, copies.written);
}

void Optimizer::finish() {
  settle();
  wait(rank, copies.sent);
}

void Optimizer::sumGradients() {
  settle();
  rank.setPosition("sum of gradients");
  rank.device().setPosition(rank.positionOfOptimizer());
  sums.make();
}

/// Leaves the factor of gradients and, if the ranks wait for it, their norm on
/// the device. A speculative update has the factor of a gradient that is not
/// clipped.
void Optimizer::findNorm() {
  const RuntimeMemory &places = rank.places();
  bool waits = hasBarrier || std::exchange(mustWait, false);
  const double *squares = norm.gather(waits);
  scalars.place();
  auto *result = static_cast<double *>(rank.runtimeAt(places.result));
  rank.device().finishStep(
      {squares, static_cast<const int32_t *>(rank.runtimeAt(places.order)),
       waits ? places.normCount : 0, stepLosses(rank),
       waits ? options.gradientClip : 0.0, scalars.gradientScale(), result});
  skipping.decide();
  isSpeculative = snapshot && !waits;
  if (!isSpeculative)
    return;
  rank.device().read(result + kWeightResult, &lastWeight, sizeof lastWeight);
  snapshot->take();
}

void Optimizer::update() {
  rank.setPosition("optimizer");
  findNorm();
  wait(rank, copies.sent); // of tensors that are about to change
  Publisher publisher(rank, /*isInStep=*/true);
  const std::vector<Update> &updates = rank.stage().updates;
  for (size_t i = 0; i < updates.size(); ++i) {
    const Update &u = updates[i];
    const Parameter &parameter = rank.program().parameters[u.parameter];
    if (parameter.isFrozen)
      continue;
    runUpdateTask(rank, parameter.updateTask, u,
                  updatedPlace(rank.program(), u, rank.coordinates()));
    if (inTimeline[i].refreshes)
      continue; // before its next use
    ComputeToken token(rank.cores());
    publisher.start(u, /*isRounded=*/parameter.compute == ElementType::BF16);
  }
  if (hasBarrier)
    publisher.finish();
  else
    copies = publisher.startCopies();
}

void Optimizer::finishNorm(std::span<double> result) {
  if (hasBarrier)
    return;
  SquareSum sum = norm.readNext();
  result[kNormResult] = gradientNorm(sum.total, result[kWeightResult]);
  result[kWrongResult] = sum.wrong;
}

bool Optimizer::isUpdateRight() {
  if (!std::exchange(isSpeculative, false))
    return true;
  SquareSum sum = norm.readLast();
  return clipFactor(options.gradientClip,
                    gradientNorm(sum.total, lastWeight)) == 1.0;
}

void Optimizer::rollBack(int64_t t) {
  rank.setPosition("rollback of an update");
  finish();
  sums.drop();
  snapshot->restore();
  Publisher publisher(rank);
  for (const Update &u : rank.stage().updates) {
    ComputeToken token(rank.cores());
    publisher.start(u, /*isRounded=*/false);
  }
  publisher.finish();
  skipping.continueAfter(t - 1);
  mustWait = true;
}

} // namespace rota
