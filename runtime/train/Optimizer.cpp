// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Optimizer.h"
#include "runtime/Error.h"
#include "runtime/program/Part.h"
#include "runtime/program/TensorNames.h"
#include "runtime/train/Gather.h"
#include "runtime/train/Publish.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <numbers>
#include <tuple>
#include <utility>

namespace rota {

/// Elements of one message of a gradient: what a receiver holds twice.
static constexpr int64_t kMessageElements = 1 << 20;

double learningRateAt(const OptimizerOptions &options, int64_t t,
                      int64_t steps) {
  if (t <= options.warmupSteps)
    return options.learningRate * static_cast<double>(t) /
           static_cast<double>(options.warmupSteps);
  double share = static_cast<double>(t - options.warmupSteps - 1) /
                 static_cast<double>(steps - options.warmupSteps);
  return options.minLearningRate +
         (options.learningRate - options.minLearningRate) * 0.5 *
             (1.0 + std::cos(std::numbers::pi * share));
}

Optimizer::Optimizer(Rank &rank, const OptimizerOptions &options)
    : rank(rank), options(options) {
  const Program &program = rank.program();
  const std::vector<MeshAxis> &mesh = program.mesh;
  for (const Stage &stage : program.stages)
    widest = std::max(widest, stage.updates.size());
  for (int s = 0; s < static_cast<int>(program.stages.size()); ++s)
    for (const Update &update : program.stages[s].updates) {
      const Parameter &p = program.parameters[update.parameter];
      int64_t elements = partElements(p.shape, p.storageDivision, mesh);
      for (size_t g = 1; g < update.gradients.size(); ++g)
        terms.push_back({&update, s, update.gradients[g], elements});
    }
  size_t ranks = rank.everyone().ranks.size();
  for (size_t r = 0; r < ranks; ++r) {
    std::vector<int64_t> at = coordinatesOf(mesh, static_cast<int>(r));
    const Stage &stage = program.stages[at[stageAxis(mesh)]];
    for (size_t u = 0; u < stage.updates.size(); ++u) {
      const Update &update = stage.updates[u];
      const Parameter &p = program.parameters[update.parameter];
      if (isFirstReplica(p.optimizerDivision, mesh, at))
        squares.push_back({update.parameter, update.layer, r * widest + u});
    }
  }
  // Ranks are in the order of their parts already.
  std::sort(squares.begin(), squares.end(),
            [](const Square &a, const Square &b) {
              return std::tie(a.parameter, a.layer, a.number) <
                     std::tie(b.parameter, b.layer, b.number);
            });
}

/// Adds `count` f32 at device address `term` to those at `sum`.
static void add(Rank &rank, void *sum, void *term, int64_t count) {
  ComputeToken token(rank.cores());
  HostOperand operands[] = {{sum, 4, HostOperand::Access::Update},
                            {term, 4, HostOperand::Access::Read}};
  rank.device().hostLoop(rank.context(), count, operands,
                         [](int64_t begin, int64_t end, char *const *hosts) {
                           auto *values = reinterpret_cast<float *>(hosts[0]);
                           auto *terms =
                               reinterpret_cast<const float *>(hosts[1]);
                           for (int64_t i = 0; i < end - begin; ++i)
                             values[i] += terms[i];
                         });
}

static void zero(Rank &rank, int64_t offset, int64_t count) {
  ComputeToken token(rank.cores());
  rank.device().zero(rank.context(), rank.at(offset), 4 * count);
}

void Optimizer::sumGradients() {
  rank.communicator().setPosition("sum of gradients");
  int here = rank.stageNumber();
  std::vector<Request> sends;
  for (const Term &term : terms)
    if (term.place.stage == here && term.owner != here)
      for (int64_t at = 0; at < term.elements; at += kMessageElements)
        sends.push_back(rank.communicator().send(
            Stream::Step, rank.peer(term.owner),
            rank.at(term.place.offset + 4 * at),
            4 * std::min(kMessageElements, term.elements - at)));
  for (const Term &term : terms)
    if (term.owner == here)
      addTerm(term);
  for (Request request : sends)
    rank.communicator().wait(request);
  for (const Term &term : terms)
    if (term.place.stage == here)
      zero(rank, term.place.offset, term.elements);
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
  int64_t most = std::min(kMessageElements, term.elements);
  std::vector<float> buffers[2] = {std::vector<float>(most),
                                   std::vector<float>(most)};
  auto receive = [&](int64_t at, int which) -> Request {
    if (at >= term.elements)
      return 0;
    return communicator.receive(
        Stream::Step, peer, buffers[which].data(),
        4 * std::min(kMessageElements, term.elements - at));
  };
  Request next = receive(0, 0);
  int which = 0;
  for (int64_t at = 0; at < term.elements; at += kMessageElements) {
    Request now = next;
    next = receive(at + kMessageElements, 1 - which);
    communicator.wait(now);
    add(rank, rank.at(sum + 4 * at), buffers[which].data(),
        std::min(kMessageElements, term.elements - at));
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

double Optimizer::globalNorm() {
  const Program &program = rank.program();
  std::vector<double> own(widest, 0.0);
  int64_t sums = rank.stage().step.squares;
  for (size_t u = 0; u < rank.stage().updates.size(); ++u) {
    const Update &update = rank.stage().updates[u];
    const Parameter &parameter = program.parameters[update.parameter];
    run(parameter.squareTask, update, sums);
    for (float row : rank.read<float>(sums, parameter.rows))
      own[u] += row;
  }
  std::vector<double> all = gatherNumbers(rank, rank.everyone(), own);
  // In the order of parameter, layer and part, so that neither placement nor
  // schedule changes a bit.
  double total = 0.0;
  for (const Square &square : squares) {
    double sum = all[square.number];
    if (!std::isfinite(sum))
      throw RunError(fmt::format(
          "the gradient of '{}' is not finite",
          tensorName(program.parameters[square.parameter], square.layer)));
    total += sum;
  }
  return std::sqrt(total);
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

void Optimizer::writeScalars(double learningRate, double gradientScale) {
  const Program &program = rank.program();
  std::map<std::string, double> values;
  for (const auto *list : {&program.options, &std::as_const(options.own)})
    for (const ProgramOption &option : *list)
      values[option.name] = option.value;
  std::vector<float> scalars;
  for (const Scalar &scalar : program.scalars) {
    double value = scalar.kind == Scalar::Kind::LearningRate ? learningRate
                   : scalar.kind == Scalar::Kind::GradientScale
                       ? gradientScale
                       : valueOf(scalar, values[scalar.option], steps);
    scalars.push_back(static_cast<float>(value));
  }
  rank.write(scalars, rank.stage().step.scalars);
}

/// The places that Parameter::updateTask and squareTask say.
void Optimizer::run(int task, const Update &update, int64_t output) {
  const StepPlaces &step = rank.stage().step;
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

double Optimizer::step(double learningRate, double totalWeight) {
  rank.communicator().setPosition("optimizer");
  ++steps;
  double norm = globalNorm() / totalWeight;
  double clip = 1.0;
  if (options.gradientClip > 0.0)
    clip = std::min(1.0, options.gradientClip / (norm + 1e-6));
  writeScalars(learningRate, clip / totalWeight);
  Publisher publisher(rank);
  for (const Update &u : rank.stage().updates) {
    const Parameter &parameter = rank.program().parameters[u.parameter];
    run(parameter.updateTask, u, u.updated);
    ComputeToken token(rank.cores());
    publisher.start(u, /*isRounded=*/parameter.compute == ElementType::BF16);
  }
  publisher.finish();
  return norm;
}

} // namespace rota
