// SPDX-License-Identifier: Apache-2.0
//
// `probe`: a few steps on given tokens, and the tensors that tests compare.
#include "runtime/Error.h"
#include "runtime/train/Data.h"
#include "runtime/train/Train.h"
#include "runtime/train/report/RunMetrics.h"
#include "runtime/train/state/Initialize.h"
#include "runtime/train/state/Tensors.h"
#include "runtime/train/step/LearningRate.h"
#include "runtime/train/step/Loss.h"
#include "runtime/train/step/Optimizer.h"
#include "runtime/train/step/PrepareFirstStep.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

namespace {

/// One rank's probe.
class Probe {
public:
  Probe(const Run &run, Rank &rank, const Batches &batch)
      : program(rank.program()), options(run.options), batch(batch),
        weights(run.weights), rank(rank),
        executor(rank, tracedRuns(program, options)),
        schedule(constantRate(options.optimizer)), optimizer(rank, schedule),
        tensors(masterTensors(program)) {}

  void run() {
    Report(program, options, rank.number() == 0)
        .weights(describeWeights(options.seed, weights));
    prepareGpu(rank);
    initialize(rank, options.seed, weights);
    if (rank.number() == 0)
      writer.emplace(options.output, forms());
    bool curve = wants("loss-curve");
    std::vector<double> losses;
    for (int64_t t = 1; t <= (curve ? options.steps : 1); ++t) {
      optimizer.begin(learningRateAt(schedule, t, options.steps));
      Loss loss = runAccumulationSteps();
      losses.push_back(loss.mean());
      if (curve || wants("gradients"))
        optimizer.sumGradients();
      if (t == 1)
        writeFirst(loss);
      if (curve)
        update();
    }
    if (curve)
      write("loss_curve", losses.data());
    if (writer)
      writer->commit();
    if (!options.trace.empty())
      writeTrace(rank, executor, options.trace);
    if (options.profile) {
      ProfileTables tables = gatherProfiles(rank);
      Report(program, options, rank.number() == 0)
          .profile(tables, {}, gatherReports(rank, executor));
    }
  }

private:
  /// Updates the parameters; an error where the gradient is not finite.
  void update() {
    optimizer.update();
    double result[kStepResults];
    rank.device().read(rank.runtimeAt(rank.places().result), result,
                       sizeof result);
    optimizer.readNorm(result);
  }

  /// The timelines of a step, all of which have the same batch.
  Loss runAccumulationSteps() {
    auto load = [&](int64_t accumulationStep) {
      loadAccumulationStep(rank, batch, Split::Train,
                           accumulationStep * program.timelineSequences());
    };
    executor.prepare(load);
    for (int64_t accumulationStep = 0;; ++accumulationStep) {
      load(accumulationStep);
      bool isLast = accumulationStep + 1 == program.accumulationSteps;
      RunHooks hooks;
      hooks.endsStep = isLast;
      executor.run(Executor::Mode::Train, hooks);
      if (isLast)
        return gatherLoss(rank, program.accumulationSteps);
      startLoss(rank, accumulationStep);
    }
  }

  static OptimizerOptions constantRate(OptimizerOptions options) {
    options.schedule = LearningRateSchedule::Constant;
    return options;
  }

  bool wants(const char *what) const {
    return std::find(options.write.begin(), options.write.end(), what) !=
           options.write.end();
  }

  bool hasGradient(const StateTensor &tensor) const {
    return !program.parameters[tensor.sources.front().parameter].isFrozen;
  }

  /// The tensors of the file that is written.
  std::map<std::string, TensorForm> forms() const {
    std::map<std::string, TensorForm> all;
    if (wants("gradients"))
      for (const StateTensor &tensor : tensors)
        if (hasGradient(tensor))
          addForms(program, tensor, "grad.", all);
    if (wants("logits")) {
      std::vector<int64_t> shape = program.logits.shape;
      shape[0] *= program.microbatches;
      all["logits"] = {"F32", shape};
    }
    if (wants("loss")) {
      all["loss"] = {"F64", {}};
      for (const LossPart &part : Loss().parts(program))
        all["loss." + part.name] = {"F64", {}};
    }
    if (wants("loss-curve"))
      all["loss_curve"] = {"F64", {options.steps}};
    return all;
  }

  void write(const char *name, const void *data) {
    if (writer)
      writer->write(name, data);
  }

  void writeFirst(const Loss &loss) {
    if (wants("gradients"))
      for (const StateTensor &tensor : tensors) {
        if (!hasGradient(tensor))
          continue;
        std::vector<float> sum = gatherGradient(rank, tensor);
        for (float &value : sum)
          value = loss.weight > 0.0 ? static_cast<float>(value / loss.weight)
                                    : 0.0F;
        if (writer)
          writeTensor(program, *writer, tensor, "grad.", sum);
      }
    if (wants("logits"))
      write("logits", gatherLogits(rank).data());
    if (wants("loss"))
      writeLoss(loss);
  }

  /// The loss and its parts.
  void writeLoss(const Loss &loss) {
    double mean = loss.mean();
    write("loss", &mean);
    for (const LossPart &part : loss.parts(program))
      write(("loss." + part.name).c_str(), &part.value);
  }

  const Program &program;
  const Options &options;
  const Batches &batch;
  const Weights *weights;
  Rank &rank;
  Executor executor;
  OptimizerOptions schedule;
  Optimizer optimizer;
  std::vector<StateTensor> tensors;
  std::optional<SafetensorsWriter> writer; // on rank 0
};

} // namespace

void probe(const Run &run) {
  const Program &program = *run.executable.program;
  bool logits = std::any_of(program.stages.begin(), program.stages.end(),
                            [](const Stage &s) { return s.logits >= 0; });
  const std::vector<std::string> &write = run.options.write;
  if (!logits && std::find(write.begin(), write.end(), "logits") != write.end())
    throw InputError("this program was compiled without logits");
  if (logits && program.accumulationSteps > 1)
    throw InputError(
        fmt::format("expected one accumulation step to write logits, got {}",
                    program.accumulationSteps));
  FixedBatch batch(program, SafetensorsFile(run.options.tokens));
  run.machine.run([&](Rank &rank) { Probe(run, rank, batch).run(); });
}

} // namespace rota
