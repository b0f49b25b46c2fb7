// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Optimizer.h"
#include "runtime/Error.h"
#include "runtime/program/Part.h"
#include "runtime/program/TensorNames.h"
#include "runtime/train/step/Gather.h"
#include "runtime/train/step/Publish.h"
#include "runtime/train/step/StepBarrier.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
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
      norms(normTerms(rank.program())), skipping(rank, skips) {
  const Program &program = rank.program();
  const std::vector<MeshAxis> &mesh = program.mesh;
  for (int s = 0; s < static_cast<int>(program.stages.size()); ++s)
    for (const Update &update : program.stages[s].updates) {
      const Parameter &p = program.parameters[update.parameter];
      int64_t elements = partElements(p.shape, p.storageDivision, mesh);
      for (size_t g = 1; g < update.gradients.size(); ++g)
        terms.push_back({&update, s, update.gradients[g], elements});
    }
  for (const NormTerm &term : norms)
    order.push_back(static_cast<int32_t>(term.number));
  rank.device().write(order.data(), rank.runtimeAt(rank.places().order),
                      static_cast<int64_t>(4 * order.size()));
  if (!hasBarrier && options.gradientClip > 0.0)
    snapshot = std::make_unique<Snapshot>(rank);
}

static void add(Rank &rank, void *sum, const void *term, int64_t count) {
  ComputeToken token(rank.cores());
  rank.device().add(rank.context(), static_cast<float *>(sum),
                    static_cast<const float *>(term), count);
}

static void zero(Rank &rank, int64_t offset, int64_t count) {
  ComputeToken token(rank.cores());
  rank.device().zero(rank.context(), rank.at(offset), 4 * count);
}

void Optimizer::wait(std::vector<Request> &requests) {
  for (Request request : std::exchange(requests, {}))
    rank.communicator().wait(request);
}

void Optimizer::settle() {
  wait(open);
  for (const Term *term : std::exchange(sentTerms, {}))
    zero(rank, term->place.offset, term->elements);
}

void Optimizer::finish() {
  settle();
  wait(sentCopies);
}

void Optimizer::sumGradients() {
  settle();
  rank.setPosition("sum of gradients");
  rank.device().setPosition(rank.positionOfOptimizer());
  int here = rank.stageNumber();
  int64_t most = rank.places().termElements;
  for (const Term &term : terms) {
    if (term.place.stage != here || term.owner == here)
      continue;
    for (int64_t at = 0; at < term.elements; at += most)
      open.push_back(
          rank.communicator().send(Stream::Step, rank.peer(term.owner),
                                   rank.at(term.place.offset + 4 * at),
                                   4 * std::min(most, term.elements - at)));
    sentTerms.push_back(&term);
  }
  for (const Term &term : terms) {
    if (term.owner != here)
      continue;
    addTerm(term);
    if (term.place.stage == here)
      zero(rank, term.place.offset, term.elements);
  }
  if (hasBarrier)
    settle();
  reduce();
}

void Optimizer::addTerm(const Term &term) {
  if (term.place.stage != term.owner)
    return addReceived(term);
  add(rank, rank.at(term.update->gradients[0].offset),
      rank.at(term.place.offset), term.elements);
}

/// One message is added while the next one comes.
void Optimizer::addReceived(const Term &term) {
  int64_t sum = term.update->gradients[0].offset;
  Communicator &communicator = rank.communicator();
  int peer = rank.peer(term.place.stage);
  int64_t most = rank.places().termElements;
  auto buffer = [&](int which) {
    return rank.runtimeAt(rank.places().terms + 4 * which * most);
  };
  auto receive = [&](int64_t at, int which) -> Request {
    if (at >= term.elements)
      return 0;
    return communicator.receive(Stream::Step, peer, buffer(which),
                                4 * std::min(most, term.elements - at));
  };
  Request next = receive(0, 0);
  int which = 0;
  for (int64_t at = 0; at < term.elements; at += most) {
    Request now = next;
    next = receive(at + most, 1 - which);
    communicator.wait(now);
    add(rank, rank.at(sum + 4 * at), buffer(which),
        std::min(most, term.elements - at));
    which = 1 - which;
  }
}

void Optimizer::reduce() {
  const Program &program = rank.program();
  const std::vector<Update> &updates = rank.stage().updates;
  size_t longest = 0;
  for (const Update &u : updates)
    longest = std::max(longest, program.parameters[u.parameter].reduce.size());
  auto cuts = [&](int collective) { // to the optimizer's division
    return program.collectives[collective].kind != Collective::Kind::AllReduce;
  };
  // The first collective of all tensors, then the second: tensors in the order
  // of the stage, so that the ranks of a group agree.
  for (size_t i = 0; i < longest; ++i) {
    std::vector<Request> requests;
    for (const Update &u : updates) {
      const std::vector<int> &list = program.parameters[u.parameter].reduce;
      if (i >= list.size())
        continue;
      void *sum = rank.at(u.gradients[0].offset);
      requests.push_back(rank.start(Stream::Step, list[i], sum,
                                    cuts(list[i]) ? rank.at(u.gradient) : sum));
    }
    for (Request request : requests)
      rank.communicator().wait(request);
  }
  // The update zeroes its part of the sum alone.
  for (const Update &u : updates) {
    const Parameter &p = program.parameters[u.parameter];
    if (!p.reduce.empty() && cuts(p.reduce.back()))
      zero(rank, u.gradients[0].offset,
           partElements(p.shape, p.storageDivision, program.mesh));
  }
}

void *Optimizer::allSquares(int64_t version) const {
  const RuntimeMemory &places = rank.places();
  auto ranks = static_cast<int64_t>(rank.everyone().ranks.size());
  return rank.runtimeAt(places.allSquares +
                        8 * version * ranks * places.widest);
}

/// Sums the squares of this rank's gradients and starts bringing those of all.
Request Optimizer::startSquares(int64_t version) {
  const Program &program = rank.program();
  const RuntimeMemory &places = rank.places();
  int64_t sums = rank.stage().step.squares;
  auto *own = static_cast<double *>(
      rank.runtimeAt(places.squares + 8 * version * places.widest));
  for (size_t u = 0; u < rank.stage().updates.size(); ++u) {
    const Update &update = rank.stage().updates[u];
    const Parameter &parameter = program.parameters[update.parameter];
    run(parameter.squareTask, update, sums);
    ComputeToken token(rank.cores());
    rank.device().sum(rank.context(), static_cast<const float *>(rank.at(sums)),
                      parameter.rows, own + u);
  }
  // Bits travel as i32, so that nothing is rounded.
  Collective gather;
  gather.kind = Collective::Kind::AllGather;
  gather.type = ElementType::I32;
  gather.size = static_cast<int64_t>(rank.everyone().ranks.size());
  gather.inner = 2 * places.widest;
  gather.reason = "squares of all ranks";
  if (gather.inner == 0)
    return 0;
  return rank.communicator().start(Stream::Step, gather, rank.everyone(), own,
                                   allSquares(version));
}

/// Leaves the factor of gradients and, if the ranks wait for it, their norm on
/// the device. A speculative update has the factor of a gradient that is not
/// clipped.
void Optimizer::findNorm() {
  const RuntimeMemory &places = rank.places();
  bool waits = hasBarrier || mustWait;
  // Only one step before this one may still be read.
  int64_t version = hasBarrier ? 0 : normsStarted % 2;
  Request request = startSquares(version);
  if (waits)
    rank.communicator().wait(request);
  else
    squares[static_cast<size_t>(normsStarted++ % 2)] = request;
  // Their place belongs to other tasks until now.
  rank.device().copy(rank.context(), rank.runtimeAt(places.scalars),
                     rank.at(rank.stage().step.scalars),
                     static_cast<int64_t>(4 * rank.program().scalars.size()));
  auto *result = static_cast<double *>(rank.runtimeAt(places.result));
  rank.device().finishStep(
      {static_cast<const double *>(allSquares(version)),
       static_cast<const int32_t *>(rank.runtimeAt(places.order)),
       waits ? places.normCount : 0, stepLosses(rank),
       waits ? options.gradientClip : 0.0, scaleAddress(), result});
  skipping.decide();
  isSpeculative = snapshot && !waits;
  mustWait = false;
  if (!isSpeculative)
    return;
  rank.device().read(result + kWeightResult, &lastWeight, sizeof lastWeight);
  snapshot->take();
}

SquareSum Optimizer::readSquares(int64_t version) {
  rank.communicator().wait(squares[static_cast<size_t>(version)]);
  std::vector<double> all(rank.everyone().ranks.size() *
                          static_cast<size_t>(rank.places().widest));
  rank.device().read(allSquares(version), all.data(),
                     static_cast<int64_t>(8 * all.size()));
  return sumSquares(all.data(), order.data(),
                    static_cast<int64_t>(order.size()));
}

void Optimizer::finishNorm(std::span<double> result) {
  if (hasBarrier)
    return;
  SquareSum sum = readSquares(normsRead++ % 2);
  result[kNormResult] = gradientNorm(sum.total, result[kWeightResult]);
  result[kWrongResult] = sum.wrong;
}

bool Optimizer::isUpdateRight() {
  if (!std::exchange(isSpeculative, false))
    return true;
  SquareSum sum = readSquares((normsStarted - 1) % 2);
  return clipFactor(options.gradientClip,
                    gradientNorm(sum.total, lastWeight)) == 1.0;
}

void Optimizer::rollBack(int64_t t) {
  rank.setPosition("rollback of an update");
  finish();
  const Program &program = rank.program();
  for (const Stage &stage : program.stages)
    for (const Update &u : stage.updates) {
      const Parameter &p = program.parameters[u.parameter];
      for (const ArenaAddress &place : u.gradients)
        if (place.stage == rank.stageNumber())
          zero(rank, place.offset,
               partElements(p.shape, p.storageDivision, program.mesh));
    }
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

/// The factor of gradients lies among the scalars that updates read.
float *Optimizer::scaleAddress() const {
  const std::vector<Scalar> &scalars = rank.program().scalars;
  auto scale =
      std::find_if(scalars.begin(), scalars.end(), [](const Scalar &s) {
        return s.kind == Scalar::Kind::GradientScale;
      });
  if (scale == scalars.end())
    return static_cast<float *>(
        rank.runtimeAt(rank.places().result + 8 * kScaleResult));
  return static_cast<float *>(
      rank.at(rank.stage().step.scalars + 4 * (scale - scalars.begin())));
}

double Optimizer::readNorm(std::span<const double> result) const {
  double wrong = result[kWrongResult];
  if (wrong >= 0.0 && result[kSkipResult] == 0.0) {
    const NormTerm &term = norms[static_cast<size_t>(wrong)];
    throw RunError(fmt::format(
        "the gradient of '{}' is not finite",
        tensorName(rank.program().parameters[term.parameter], term.layer)));
  }
  return result[kNormResult];
}

/// In f64, so that what is near 0 or 1 is not lost before it is rounded.
static double valueOf(const Scalar &scalar, double option, int64_t step) {
  switch (scalar.kind) {
  case Scalar::Kind::Complement:
    return 1.0 - option;
  case Scalar::Kind::Correction:
    return -std::expm1(static_cast<double>(step) * std::log(option));
  default:
    return option;
  }
}

/// Those of update t. The scale of gradients and the decision to skip the step
/// come from findNorm.
std::vector<float> Optimizer::scalarsOf(int64_t t, double learningRate) const {
  const Program &program = rank.program();
  std::map<std::string, double> values;
  for (const auto *list : {&program.options, &std::as_const(options.own)})
    for (const ProgramOption &option : *list)
      values[option.name] = option.value;
  std::vector<float> scalars;
  for (const Scalar &scalar : program.scalars)
    scalars.push_back(static_cast<float>(
        scalar.factor * (scalar.kind == Scalar::Kind::LearningRate
                             ? learningRate
                             : valueOf(scalar, values[scalar.option], t))));
  return scalars;
}

void Optimizer::begin(double learningRate) {
  std::vector<float> scalars;
  for (int64_t t : skipping.beginStep()) {
    std::vector<float> version = scalarsOf(t, learningRate);
    scalars.insert(scalars.end(), version.begin(), version.end());
  }
  rank.device().write(scalars.data(), rank.runtimeAt(rank.places().scalars),
                      static_cast<int64_t>(4 * scalars.size()));
}

/// The places that Parameter::updateTask and squareTask say.
void Optimizer::run(int task, const Update &update, int64_t output) {
  const StepOffsets &step = rank.stage().step;
  RotaFrame frame{};
  frame.parameters = rank.at(update.master);
  frame.gradients = rank.at(update.gradient);
  frame.residuals = rank.at(update.states);
  frame.data = rank.at(step.scalars);
  frame.output = rank.at(output);
  frame.scratch = rank.at(step.scratch);
  frame.constants = rank.at(step.constants);
  ComputeToken token(rank.cores());
  rank.runTask(task, frame);
  if (!rank.context()->failed)
    return;
  rank.rethrowFailure();
  throw RunError(fmt::format(
      "rank {}: optimizer, '{}': {}", rank.number(),
      tensorName(rank.program().parameters[update.parameter], update.layer),
      rank.context()->failure));
}

void Optimizer::update() {
  rank.setPosition("optimizer");
  findNorm();
  wait(sentCopies); // of tensors that are about to change
  Publisher publisher(rank);
  for (const Update &u : rank.stage().updates) {
    const Parameter &parameter = rank.program().parameters[u.parameter];
    run(parameter.updateTask, u, u.updated);
    ComputeToken token(rank.cores());
    publisher.start(u, /*isRounded=*/parameter.compute == ElementType::BF16);
  }
  if (hasBarrier)
    return publisher.finish();
  Publisher::OpenCopies copies = publisher.startCopies();
  open.insert(open.end(), copies.written.begin(), copies.written.end());
  sentCopies = std::move(copies.sent);
}

} // namespace rota
