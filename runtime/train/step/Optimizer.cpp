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
      norm(rank, hasBarrier), scalars(rank, options),
      tables{rank.runtimeAt(rank.places().updateTables),
             rank.places().updateTableBytes},
      skipping(rank, skips) {
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
  updateParameters(publisher);
  if (hasBarrier)
    publisher.finish();
  else
    copies = publisher.startCopies();
}

/// Updates all parameters and starts what publishes them: on the host each
/// after its update, on a GPU, which does the updates together, after all.
void Optimizer::updateParameters(Publisher &publisher) {
  const std::vector<Update> &updates = rank.stage().updates;
  auto parameterOf = [&](int64_t number) -> const Parameter & {
    return rank.program()
        .parameters[updates[static_cast<size_t>(number)].parameter];
  };
  auto publish = [&](int64_t number) {
    auto i = static_cast<size_t>(number);
    if (parameterOf(number).isFrozen || inTimeline[i].refreshes)
      return; // refreshed before its next use
    publisher.start(updates[i], /*isRounded=*/parameterOf(number).compute ==
                                    ElementType::BF16);
  };
  bool isAhead = rank.device().isAsynchronous();
  auto count = static_cast<int64_t>(updates.size());
  ComputeToken token(rank.cores());
  rank.device().launchTogether(
      rank.context(), tables, count, [&](int64_t number) {
        const Update &u = updates[static_cast<size_t>(number)];
        const Parameter &parameter = parameterOf(number);
        if (!parameter.isFrozen)
          runUpdateTask(rank, parameter.updateTask, u,
                        updatedPlace(rank.program(), u, rank.coordinates()));
        if (!isAhead)
          publish(number);
      });
  for (int64_t number = 0; isAhead && number < count; ++number)
    publish(number);
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
  {
    ComputeToken token(rank.cores());
    for (const Update &u : rank.stage().updates)
      publisher.start(u, /*isRounded=*/false);
  }
  publisher.finish();
  skipping.continueAfter(t - 1);
  mustWait = true;
}

} // namespace rota
