// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/search/PlanCandidate.h"

#include <algorithm>

namespace rota {

std::string PlanCandidate::meshText() const {
  std::string text =
      mlir::rota::meshText({data, stages, fsdp, layer.expert, layer.context,
                            layer.sequence, layer.tensor});
  return text.empty() ? "stage=1" : text;
}

std::vector<CandidateSetting> settingsOf(const PlanCandidate &candidate) {
  std::vector<CandidateSetting> settings = {
      {"mesh", candidate.meshText()},
      {"schedule", candidate.schedule},
      {"repeats", std::to_string(candidate.repeats)},
      {"microbatches", std::to_string(candidate.microbatches)}};
  auto add = [&](bool isNeeded, const char *option, std::string value) {
    if (isNeeded)
      settings.push_back({option, std::move(value)});
  };
  add(candidate.accumulate > 1, "accumulate",
      std::to_string(candidate.accumulate));
  add(true, "remat", candidate.remat);
  add(candidate.gathers != pipe::GatherMode::Auto, "weight-gather",
      nameOf(candidate.gathers));
  add(candidate.shardOptimizer, "shard-optimizer", "true");
  add(candidate.split != pipe::LayerSplit::Even, "split",
      nameOf(candidate.split));
  add(candidate.layer.context > 1, "context-exchange",
      nameOf(candidate.exchange));
  return settings;
}

bool isSearched(std::string_view option) {
  constexpr std::string_view names[] = {"mesh",
                                        "schedule",
                                        "repeats",
                                        "microbatches",
                                        "accumulate",
                                        "remat",
                                        "weight-gather",
                                        "placement",
                                        "split",
                                        "shard-optimizer",
                                        "split-backward",
                                        "window",
                                        "prefetch",
                                        "layers-per-stage",
                                        "layers-per-chunk",
                                        "pairs",
                                        "context-exchange"};
  return std::ranges::find(names, option) != std::end(names);
}

std::string flagsOf(const PlanCandidate &candidate) {
  std::string text;
  for (const auto &[option, value] : settingsOf(candidate)) {
    text += (text.empty() ? "--" : " --") + option;
    bool isQuoted = value.find(';') != value.npos; // ends a command
    if (value != "true")
      text += isQuoted ? " '" + value + "'" : " " + value;
  }
  return text;
}

PlanRequest requestOf(const PlanRequest &base, const PlanCandidate &candidate) {
  PlanRequest request = base;
  request.chooseRepeats = request.chooseGathers = request.chooseRemat =
      request.chooseActivations = false;
  CompilerOptions &compiler = request.compiler;
  compiler.shard.meshText = candidate.meshText();
  compiler.shard.shardOptimizer = candidate.shardOptimizer;
  auto &schedule = compiler.schedule;
  schedule.schedule = candidate.schedule;
  schedule.stages = candidate.stages;
  schedule.repeats = candidate.repeats;
  schedule.microbatches = candidate.microbatches;
  schedule.placement = candidate.placement;
  schedule.split = candidate.split;
  schedule.anyRepeats = false;
  compiler.accumulationSteps = candidate.accumulate;
  compiler.complete.mode = candidate.gathers;
  compiler.differentiate.remat = compiler.complete.policy = candidate.remat;
  compiler.build.sequences = candidate.layer.sequences * candidate.data *
                             candidate.fsdp * candidate.layer.expert;
  compiler.shard.exchange = candidate.exchange;
  compiler.build.experts.ranks = candidate.layer.expert;
  compiler.build.experts.parts = candidate.layer.context;
  return request;
}

} // namespace rota
