// SPDX-License-Identifier: Apache-2.0
//
// A run as Rota's options.
#include "tools/planner/engines/EngineRun.h"

#include "passes/pipeline/timeline/LayerSplit.h"
#include "runtime/text/Text.h"

namespace rota::engines {

std::string meshOf(const EngineRun &run) {
  std::string text;
  for (auto [name, size] : {std::pair("data", run.data),
                            {"stage", run.stage},
                            {"fsdp", run.fsdp},
                            {"expert", run.expert},
                            {"context", run.context},
                            {"sequence", run.sequence},
                            {"tensor", run.tensor}})
    if (size > 1)
      text += (text.empty() ? "" : ",") + std::string(name) + "=" +
              std::to_string(size);
  return text.empty() ? "stage=1" : text;
}

/// The numbers of layers where they are not those of an even split.
static std::vector<std::string> unevenLayers(const EngineRun &run) {
  int64_t all = 0;
  std::vector<std::string> texts;
  for (int64_t count : run.layers) {
    all += count;
    texts.push_back(std::to_string(count));
  }
  pipe::Shape shape;
  shape.stages = int(run.stage);
  shape.repeats = int(run.repeats);
  std::vector<int64_t> least = pipe::leastLayers(shape);
  bool isEven = least.size() == run.layers.size() &&
                run.layers == pipe::splitEvenly(all, least);
  return isEven ? std::vector<std::string>() : texts;
}

OptionTexts optionsOf(const EngineRun &run) {
  OptionTexts options;
  auto add = [&](const char *name, const std::string &text) {
    options.push_back({name, {text}});
  };
  add("mesh", meshOf(run));
  add("batch-size", std::to_string(run.batch));
  add("sequence-length", std::to_string(run.length));
  if (run.accumulate > 1)
    add("accumulate", std::to_string(run.accumulate));
  add("microbatches", std::to_string(run.microbatches));
  if (run.stage > 1) {
    add("schedule", run.schedule);
    if (run.repeats > 1)
      add("repeats", std::to_string(run.repeats));
    if (auto layers = unevenLayers(run); !layers.empty())
      options.push_back({"layers-per-stage", layers});
  }
  add("dtype", run.isBf16 ? "bf16" : "f32");
  if (run.hasBf16Gradients)
    add("gradient-dtype", "bf16");
  if (run.hasBf16States)
    add("state-dtype", "bf16");
  if (run.shardsOptimizer)
    add("shard-optimizer", "true");
  add("remat", run.remat);
  if (run.fsdp > 1 && !run.weightGather.empty())
    add("weight-gather", run.weightGather);
  if (run.context > 1)
    add("context-exchange", run.contextExchange);
  if (run.tensor * run.sequence > 1)
    add("tensor-exchange", run.tensorExchange);
  if (run.expertCapacity > 0)
    add("expert-capacity", numberText(run.expertCapacity));
  if (run.routerZLoss > 0)
    add("router-z-loss", numberText(run.routerZLoss));
  add("optimizer", run.optimizer);
  add("learning-rate-schedule", run.rateSchedule);
  if (run.isNesterov)
    add("nesterov", "true");
  for (const auto &[name, value] : run.numbers)
    add(name.c_str(), numberText(value));
  if (run.steps)
    add("steps", std::to_string(*run.steps));
  return options;
}

} // namespace rota::engines
