// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Training.h"
#include "runtime/train/state/Initialize.h"
#include "runtime/train/state/Tensors.h"
#include "runtime/train/step/LearningRate.h"
#include "runtime/train/step/PrepareFirstStep.h"
#include "runtime/train/step/StepBarrier.h"

#include <algorithm>
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
      sampler(rank, executor, options.samples, options.seed),
      sampleText(options.samples.decoder),
      checkpoints(rank, options, identity, report),
      end(rank, options, hasBarrier ? Asking::Waits : Asking::Later),
      metrics(rank, executor, options, report), peak(peakFlops(rank, options)),
      throughput(program, batchTokens(program), options.logInterval, peak),
      unrecorded(std::max<int64_t>(1, tracedRuns(program, options))),
      results(rank, executor, optimizer, hasBarrier) {
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
    report.note(fmt::format("step {} is done: none is left", done));
  else if (evaluation.reachedTarget())
    report.note(fmt::format(
        "the validation loss after step {} was {}, at most the target of {}: "
        "no step is left",
        evaluation.best()->step, evaluation.best()->loss,
        options.validation.targetLoss));
}

/// The first state: a checkpoint's, given weights, or drawn. A checkpoint after
/// which no step is left needs no memory for steps.
void Training::prepare() {
  bool isReady = false; // for a step
  auto makeReady = [&](bool hasSteps) {
    if (!isReady)
      hasSteps ? prepareFirstStep(rank) : prepareGpu(rank);
    isReady |= hasSteps;
    initializeStates(rank);
  };
  std::optional<ResumedRun> resumed =
      resume(rank, {.options = options.resume,
                    .checkpoints = options.checkpoints.folder,
                    .identity = identity,
                    .prepare = [&](const RunState &state) {
                      makeReady(state.step < end.lastStep());
                    }});
  if (resumed) {
    continueAfter(*resumed);
  } else {
    makeReady(/*hasSteps=*/true);
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
  progress.loss = std::numeric_limits<double>::quiet_NaN(); // no step yet
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
    saveWeights(rank, options.save);
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

/// The work of step `t`. Where the update of the step before turns out to be
/// wrong, that step runs again first.
void Training::runStep(int64_t t) {
  if (tryStep(t))
    return;
  rollBack(t - 1);
  tryStep(t);
}

/// Drops the work so far from the profile: a first step has costs of its own.
void Training::leaveOutOfProfile() {
  phases.clear();
  if (rank.profile())
    rank.profile()->clear();
}

/// Returns whether another step follows.
bool Training::step(int64_t t) {
  rank.flight().add(FlightEvent::StepBegin, t);
  runStep(t);
  if (isFirst(t) && t < end.lastStep())
    leaveOutOfProfile();
  PendingStep now = results.start(t, report.keeps(t));
  StepEnd ends = end.decide(t, checkpoints.isDue(t), checkpoints.asks());
  finishPrevious();
  bool goesOn = true;
  if (isFinishedAtOnce(t, ends)) {
    confirmUpdate(t);
    goesOn = finish(now, ends);
  } else {
    previous = std::move(now);
  }
  checkpoints.advance();
  rank.flight().add(FlightEvent::StepEnd, t);
  return goesOn;
}

/// Whether the results of a step are read before the next one runs: not where
/// the device works on its own or steps have no barrier, unless something
/// follows from them.
bool Training::isFinishedAtOnce(int64_t t, StepEnd ends) const {
  bool isKnown = hasBarrier && !rank.device().isAsynchronous();
  return isKnown || ends.isLast || ends.saves ||
         evaluation.follows(t, ends.isLast) || sampler.follows(t, ends.isLast);
}

/// Waits for the norm of step `t`, the last one, if its update was speculative.
void Training::confirmUpdate(int64_t t) {
  if (!optimizer.isUpdateRight())
    rollBack(t);
}

void Training::finishPrevious() {
  if (previous)
    finish(*std::exchange(previous, std::nullopt), {});
}

/// Reads a step's results, validates, saves and reports. Returns whether
/// another step may follow.
bool Training::finish(const PendingStep &step, StepEnd ends) {
  int64_t t = step.number;
  results.read(step, progress);
  progress.learningRate = learningRateAt(options.optimizer, t, options.steps);
  double stepEnd = rank.device().secondsAt(step.end);
  double seconds = stepEnd - std::exchange(lastEnd, stepEnd);
  throughput.add(seconds);
  progress.tokensPerSecond = throughput.tokensPerSecond();
  progress.utilization = throughput.utilization();
  phases.add(isFirst(t) ? "first step" : "step", seconds);
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
    progress.bubble = results.bubble(t);
  progress.replayed = runner.replays();
  progress.launches = runner.launches();
  if (runner.isRecorded()) {
    executor.times().settle(); // the transfers of a validation
    rank.device().forget(step.end);
  }
  progress.seconds = end.seconds();
  progress.secondsLeft = last ? 0.0 : end.secondsLeft(t);
  report.step(progress, last);
  metrics.step(progress, isKept, last);
  if (!isInterrupted && sampler.follows(t, last))
    sample(t);
  return !last;
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

/// After the line of step `t`.
void Training::sample(int64_t t) {
  rank.flight().add(FlightEvent::ValidationBegin, t);
  optimizer.settle(); // it reads the parameters of all stages
  Sample sample{t, options.samples.prompt, {}, {}};
  phases.timed("samples", [&] { sample.tokens = sampler.run(t); });
  double sampled = deviceSeconds();
  rank.flight().add(FlightEvent::ValidationEnd, t);
  time.addValidation(sampled - std::exchange(lastEnd, sampled));
  if (rank.number() != 0)
    return;
  sample.text = sampleText.textOf(sample.tokens);
  report.sample(sample);
  metrics.sample(sample);
}

/// Waits for the device.
double Training::deviceSeconds() const {
  return rank.device().secondsAt(rank.device().mark());
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

} // namespace rota
