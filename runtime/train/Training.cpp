// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Training.h"
#include "runtime/metrics/Utilization.h"
#include "runtime/train/state/Initialize.h"
#include "runtime/train/state/Tensors.h"
#include "runtime/train/step/Gather.h"
#include "runtime/train/step/LearningRate.h"
#include "runtime/train/step/StepBarrier.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace rota {

/// Positions of a batch that are trained on: tokens, or rows of a model whose
/// inputs are not tokens.
static int64_t batchTokens(const Program &program) {
  return program.stepSequences() * program.input.shape[1];
}

Training::Training(const Run &run, Rank &rank, const RunData &data,
                   const Identity &identity, ReadAhead &readAhead)
    : program(rank.program()), options(run.options), data(data),
      identity(identity), weights(run.weights), rank(rank),
      loader(rank, data.training(), readAhead),
      report(program, options, rank.number() == 0),
      hasBarrier(hasStepBarrier(rank, options.optimizer, options.skip)),
      executor(rank, tracedRuns(program, options)),
      optimizer(rank, options.optimizer, options.skip, hasBarrier),
      runner(rank, executor, optimizer, options, phases),
      evaluation(rank, executor, options.validation, data.validation()),
      checkpoints(rank, options, identity, report),
      end(rank, options, hasBarrier ? Asking::Waits : Asking::Later),
      metrics(rank, executor, options, report), peak(peakFlops(rank, options)),
      unrecorded(std::max<int64_t>(1, tracedRuns(program, options))),
      tables{TableSums(rank), TableSums(rank)},
      bubbles{BubbleGather(rank, hasBarrier), BubbleGather(rank, hasBarrier)} {
  values.add(evaluation);
  values.add(optimizer.skips());
  progress.plannedBubble = plannedBubble(program, options);
}

void Training::continueAfter(const ResumedRun &resumed) {
  done = resumed.state.step;
  consumed = resumed.state.sequences;
  values.restore(resumed.state);
  optimizer.continueAfter(done);
  report.continueAfter(done);
  metrics.continueAfter(done);
  report.note(
      fmt::format("goes on after step {} of '{}'", done, resumed.folder));
  if (weights)
    report.note(fmt::format("the checkpoint has other weights than '{}', which "
                            "are not used",
                            options.weights));
  if (done >= end.lastStep())
    report.note(fmt::format("{} steps are done: none is left", done));
  else if (evaluation.reachedTarget())
    report.note(fmt::format(
        "the validation loss after step {} was {}, at most the target of {}: "
        "no step is left",
        evaluation.best()->step, evaluation.best()->loss,
        options.validation.targetLoss));
}

/// The first state: a checkpoint's, given weights, or drawn.
void Training::prepare() {
  initializeStates(rank);
  std::optional<ResumedRun> resumed =
      resume(rank, {options.resume, options.checkpoints.folder, identity});
  if (resumed) {
    continueAfter(*resumed);
  } else {
    if (weights && !weights->unused().empty())
      report.note(fmt::format(
          "'{}' holds {} tensors that this model does not have, '{}' first",
          options.weights, weights->unused().size(), weights->unused()[0]));
    report.weights(describeWeights(options.seed, weights));
    initializeMasters(rank, options.seed, weights);
  }
  completeInitialization(rank);
}

void Training::run() {
  report.begin(data.describe());
  metrics.begin(data.describe(), batchTokens(program));
  prepare();
  end.begin(done);
  progress.step = done;
  progress.skippedSteps = optimizer.skips().skipped();
  progress.loss = std::numeric_limits<double>::quiet_NaN(); // of no step
  lastEnd = deviceSeconds();
  time.endStart();
  for (int64_t t = done + 1; t <= end.lastStep() && !evaluation.reachedTarget();
       ++t)
    if (!step(t))
      break;
  optimizer.finish();
  end.settle();
  checkpoints.finish();
  progress.best = evaluation.best();
  progress.reachedTarget = evaluation.reachedTarget();
  RunSummary summary = summarize();
  if (options.profile)
    report.profile(gatherProfiles(rank), phases.table(), summary.ranks);
  report.end(progress, summary);
  metrics.end(progress, summary);
  if (!options.trace.empty())
    writeTrace(rank, executor, options.trace);
  if (!options.save.empty())
    save();
}

/// Every rank calls; it has numbers on rank 0.
RunSummary Training::summarize() {
  RunSummary summary;
  summary.stepsBefore = done;
  summary.tokens = (progress.step - done) * batchTokens(program);
  summary.ranks = gatherReports(rank, executor);
  summary.peakFlops = peak;
  summary.time = time.read();
  return summary;
}

/// Sequences of training data in the steps before step `t`. Those before this
/// process may have had other batches.
int64_t Training::sequencesBefore(int64_t t) const {
  return consumed + (t - 1 - done) * program.stepSequences();
}

/// The work of step `t`. False: nothing was updated, since the update of the
/// step before was wrong.
bool Training::tryStep(int64_t t) {
  optimizer.begin(learningRateAt(options.optimizer, t, options.steps));
  return runner.run(
      /*mayRecord=*/progress.step - done >= unrecorded,
      [&](int64_t accumulationStep) {
        phases.timed("data", [&] {
          loader.load(sequencesBefore(t) +
                      accumulationStep * program.timelineSequences());
        });
      });
}

/// Rolls the update of step `t`, the last one, back and runs the step again
/// with its norm. The report of the step does not change.
void Training::rollBack(int64_t t) {
  optimizer.rollBack(t);
  tryStep(t);
  ++progress.rolledBackSteps;
}

/// Returns whether another step follows. The results of a step are read while
/// the next one runs, where the device works on its own, and behind the next
/// step's work where steps have no barrier.
bool Training::step(int64_t t) {
  rank.flight().add(FlightEvent::StepBegin, t);
  if (!tryStep(t)) {
    rollBack(t - 1);
    tryStep(t);
  }
  Pending now;
  now.number = t;
  now.learningRate = learningRateAt(options.optimizer, t, options.steps);
  now.results = rank.device().startRead(rank.runtimeAt(rank.places().result),
                                        rank.places().resultBytes);
  now.end = rank.device().mark();
  if (!hasBarrier)
    startGathers(now);
  StepEnd ends = end.decide(t, checkpoints.isDue(t), checkpoints.asks());
  if (previous)
    finish(*std::exchange(previous, std::nullopt), {});
  bool isRead = hasBarrier && !rank.device().isAsynchronous();
  bool goesOn = true;
  if (ends.isLast || ends.saves || isRead ||
      evaluation.follows(t, ends.isLast)) {
    if (!optimizer.isUpdateRight())
      rollBack(t);
    goesOn = finish(now, ends);
  } else {
    previous = std::move(now);
  }
  checkpoints.advance();
  rank.flight().add(FlightEvent::StepEnd, t);
  return goesOn;
}

/// Gives the other ranks what they report of the step.
void Training::startGathers(const Pending &now) {
  auto turn = static_cast<size_t>(now.number % 2);
  tables[turn].start(now.results->wait());
  if (report.keeps(now.number))
    bubbles[turn].start(executor.meanSeconds());
}

/// Loss and norm of the step, and whether it updates anything.
void Training::readResults(const Pending &pending) {
  std::span<const char> bytes = pending.results->wait();
  std::vector<double> result(static_cast<size_t>(kStepResults));
  std::memcpy(result.data(), bytes.data(), 8 * result.size());
  optimizer.finishNorm(result);
  progress.step = pending.number;
  progress.learningRate = pending.learningRate;
  progress.skip = optimizer.skips().read(result);
  progress.skippedSteps = optimizer.skips().skipped();
  Loss loss = finishLoss(rank, bytes, program.accumulationSteps,
                         progress.skip != SkipReason::None);
  progress.loss = loss.mean();
  progress.lossParts = loss.parts(program);
  TableSums &counts = tables[static_cast<size_t>(pending.number % 2)];
  if (!counts.isOpen())
    counts.start(bytes);
  progress.observed = counts.finish();
  progress.gradientNorm = optimizer.readNorm(result);
}

/// Reads a step's results, validates, saves and reports. Returns whether
/// another step may follow.
bool Training::finish(const Pending &pending, StepEnd ends) {
  int64_t t = pending.number;
  readResults(pending);
  double stepEnd = rank.device().secondsAt(pending.end);
  double seconds = stepEnd - std::exchange(lastEnd, stepEnd);
  measure(seconds);
  phases.add("step", seconds);
  time.addStep(seconds);
  progress.checkpointStall = 0.0;
  // A checkpoint has the validation of its step. The time after a signal is
  // short, and the checkpoint's alone.
  progress.validationLoss.reset();
  bool isInterrupted = ends.isInterrupted ||
                       (evaluation.follows(t, ends.isLast) && !validate(t));
  bool last = ends.isLast || isInterrupted || evaluation.reachedTarget();
  if (t != end.lastStep() && (ends.isLast || isInterrupted))
    progress.earlyEnd = isInterrupted ? EarlyEnd::Signal : EarlyEnd::TimeLimit;
  bool isBest = options.checkpoints.keep.best && evaluation.isBest(t);
  if (ends.saves || isBest || (last && checkpoints.isOn()))
    saveCheckpoint(t);
  bool isKept = report.keeps(progress, last);
  if (isKept)
    progress.bubble = readBubble(t);
  progress.replayed = runner.replays();
  if (runner.isRecorded()) {
    executor.settle(); // of a validation
    rank.device().forget(pending.end);
  }
  progress.seconds = end.seconds();
  progress.secondsLeft = last ? 0.0 : end.secondsLeft(t);
  report.step(progress, last);
  metrics.step(progress, isKept, last);
  return !last;
}

/// The measured bubble share at the end of step `t`, on rank 0.
double Training::readBubble(int64_t t) {
  BubbleGather &bubble = bubbles[static_cast<size_t>(t % 2)];
  if (!bubble.isOpen())
    bubble.start(executor.meanSeconds());
  return bubble.finish();
}

/// False: a signal has ended the validation.
bool Training::validate(int64_t t) {
  rank.flight().add(FlightEvent::ValidationBegin, t);
  optimizer.settle(); // it reads the parameters of all stages
  phases.timed("validation", [&] {
    if (std::optional<Loss> loss = evaluation.run(t))
      progress.validationLoss = loss->main();
  });
  double validated = deviceSeconds();
  rank.flight().add(FlightEvent::ValidationEnd, t);
  time.addValidation(validated - std::exchange(lastEnd, validated));
  return progress.validationLoss.has_value();
}

/// Waits for the device.
double Training::deviceSeconds() const {
  return rank.device().secondsAt(rank.device().mark());
}

/// Throughput over about the last log interval, without validation.
void Training::measure(double seconds) {
  double weight = 2.0 / (1.0 + static_cast<double>(std::min(
                                   progress.step - done, options.logInterval)));
  stepSeconds += weight * (seconds - stepSeconds);
  progress.tokensPerSecond =
      static_cast<double>(batchTokens(program)) / stepSeconds;
  if (peak && program.flopsPerToken > 0.0)
    progress.utilization =
        modelFlopsUtilization(program, progress.tokensPerSecond, *peak);
}

/// After the results of step `t` were read.
void Training::saveCheckpoint(int64_t t) {
  RunState run;
  run.step = t;
  run.sequences = sequencesBefore(t + 1);
  values.save(run);
  rank.flight().add(FlightEvent::CheckpointBegin, t);
  progress.checkpointStall = checkpoints.start(run);
  rank.flight().add(FlightEvent::CheckpointEnd, t);
  phases.add("checkpoint", progress.checkpointStall);
  time.addCheckpoint(progress.checkpointStall);
  lastEnd = deviceSeconds();
}

void Training::save() {
  rank.setPosition("saving the weights");
  std::vector<NamedTensor> tensors = tensorsByName(program);
  std::map<std::string, TensorForm> forms;
  for (const NamedTensor &tensor : tensors)
    addForms(tensor, "", forms);
  std::optional<SafetensorsWriter> writer;
  if (rank.number() == 0)
    writer.emplace(options.save, forms);
  for (const NamedTensor &tensor : tensors) {
    std::vector<float> whole = gatherTensor(rank, tensor, &Update::master);
    if (writer)
      writeTensor(*writer, tensor, "", whole);
  }
  if (writer)
    writer->commit();
}

} // namespace rota
