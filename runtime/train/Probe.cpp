// SPDX-License-Identifier: Apache-2.0
//
// `probe`: a few steps on given tokens, and the tensors that tests compare.
#include "runtime/Error.h"
#include "runtime/checkpoint/Convert.h"
#include "runtime/checkpoint/WriteFile.h"
#include "runtime/trace/ChromeTrace.h"
#include "runtime/train/Executor.h"
#include "runtime/train/Initialize.h"
#include "runtime/train/Report.h"
#include "runtime/train/Train.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <fmt/format.h>

namespace rota {

namespace {

class Probe {
public:
  Probe(const Executable &executable, const Options &options)
      : program(*executable.program), options(options),
        batch(program, SafetensorsFile(options.tokens)),
        weights(openWeights(program, options)),
        machine(executable, threadCount(options), options.profile),
        executor(machine, !options.trace.empty()),
        adamw(constantRate(options.adamw)), optimizer(machine, adamw) {}

  void run() {
    if (wants("logits") && logitsRank() == program.stages.end())
      throw InputError("this program was compiled without logits");
    initialize(machine, options.seed, weights.get());
    bool curve = wants("loss-curve");
    std::vector<double> losses;
    for (int64_t t = 1; t <= (curve ? options.steps : 1); ++t) {
      loadBatch(machine, batch, Split::Train, t - 1);
      executor.run(Executor::Mode::Train);
      Executor::Loss loss = executor.loss();
      losses.push_back(loss.sum / loss.weight);
      if (t == 1)
        captureFirst(loss.weight);
      if (curve)
        optimizer.step(learningRateAt(adamw, t, options.steps), loss.weight);
    }
    if (wants("loss"))
      add("loss", "F64", {}, losses.data(), 8);
    if (curve)
      add("loss_curve", "F64", {options.steps}, losses.data(),
          8 * options.steps);
    writeSafetensors(options.output, tensors);
    if (!options.trace.empty())
      writeFile(options.trace, {chromeTrace(program, executor.events())});
    if (options.profile)
      Report(program, options).profile(machine, {});
  }

private:
  static AdamW constantRate(AdamW adamw) {
    adamw.minLearningRate = adamw.learningRate;
    return adamw;
  }

  bool wants(const char *what) const {
    return std::find(options.write.begin(), options.write.end(), what) !=
           options.write.end();
  }

  /// Keeps a copy of the bytes until the file is written.
  void add(const std::string &name, const std::string &type,
           const std::vector<int64_t> &shape, const void *data, int64_t bytes) {
    auto *begin = static_cast<const char *>(data);
    storage.emplace_back(begin, begin + bytes);
    tensors[name] = {type, shape, storage.back().data(), bytes};
  }

  void captureFirst(double totalWeight) {
    if (wants("logits"))
      captureLogits();
    if (wants("gradients"))
      captureGradients(totalWeight);
  }

  std::vector<Stage>::const_iterator logitsRank() const {
    return std::find_if(program.stages.begin(), program.stages.end(),
                        [](const Stage &r) { return r.logits >= 0; });
  }

  void captureLogits() {
    auto rank = logitsRank();
    int number = static_cast<int>(rank - program.stages.begin());
    int64_t count = program.microbatches * program.logits.elements();
    std::vector<float> values(static_cast<size_t>(count));
    if (program.logits.type == ElementType::BF16) {
      auto *source = machine.at<uint16_t>(number, rank->logits);
      std::transform(source, source + count, values.begin(), fromBf16);
    } else {
      std::memcpy(values.data(), machine.at<float>(number, rank->logits),
                  values.size() * sizeof(float));
    }
    std::vector<int64_t> shape = program.logits.shape;
    shape[0] *= program.microbatches;
    add("logits", "F32", shape, values.data(), 4 * count);
  }

  void captureGradients(double totalWeight) {
    sumGradients(machine);
    for (int rank = 0; rank < machine.ranks(); ++rank)
      for (const Update &update : program.stages[rank].updates) {
        const Parameter &parameter = program.parameters[update.parameter];
        int64_t count = elementCount(parameter);
        const float *sum = machine.at<float>(update.gradients[0]);
        std::vector<float> mean(static_cast<size_t>(count));
        std::transform(sum, sum + count, mean.begin(), [&](float value) {
          return static_cast<float>(value / totalWeight);
        });
        add("grad." + tensorName(parameter, update.layer), "F32",
            parameter.shape, mean.data(), 4 * count);
      }
  }

  const Program &program;
  const Options &options;
  FixedBatch batch;
  std::unique_ptr<Weights> weights;
  Machine machine;
  Executor executor;
  AdamW adamw;
  Optimizer optimizer;
  std::map<std::string, TensorView> tensors;
  std::deque<std::vector<char>> storage;
};

} // namespace

void probe(const Executable &executable, const Options &options) {
  for (const std::string *path : {&options.output, &options.trace})
    if (!path->empty())
      checkWritable(*path);
  Probe(executable, options).run();
}

} // namespace rota
