// SPDX-License-Identifier: Apache-2.0
//
// A run as all engines see it, in Rota's words: what stands between a plan and
// the tables of the engines.
#ifndef ROTA_TOOLS_PLANNER_ENGINES_ENGINERUN_H
#define ROTA_TOOLS_PLANNER_ENGINES_ENGINERUN_H

#include "tools/planner/engines/Engines.h"

#include <map>

namespace rota::engines {

/// A decoder by its sizes. The default values are those of files that lack a
/// key.
struct EngineModel {
  std::string family; // `model_type` of hubs
  int64_t vocabulary = 0, embed = 0, layers = 0, feedForward = 0;
  int64_t heads = 0, keyHeads = 0, headSize = 0, positions = 0;
  double normEpsilon = 1e-5, initializerRange = 0.02, rotaryBase = 10000;
  /// The factor of Llama 3.1's scaling of rotary frequencies, with its other
  /// numbers as published: 1, 4 and 8192.
  std::optional<double> rotaryFactor = {};
  bool tied = false;
  std::optional<int64_t> window = {}; // window of attention, in every layer
  // A mixture of experts in every layer; 0: none.
  int64_t experts = 0, choices = 0, expertFeedForward = 0;
  bool normalizesChoices = true; // weights of choices are divided by their sum
  double balanceLoss = 0;

  bool operator==(const EngineModel &) const = default;
};

/// The families that an EngineModel describes: "gpt2, llama, ...".
std::string modelFamilies();

/// The model of a config.json. Nothing, and an `error`, for another family or
/// for a value that an EngineModel has no place for.
std::optional<EngineModel> readModel(const std::string &config,
                                     std::string &error);
/// A config.json of the model, from which readModel makes the same model.
std::string writeModel(const EngineModel &model);

/// A remark on a run with an expert axis.
inline constexpr const char *kExpertRoom =
    "a plan has room for the most rows that can come to a rank's experts; "
    "'expert-buffer' 1 plans the rows that come";

/// The beginning of errors about a plan that an engine cannot run.
inline const std::string kCannotRun = "it cannot run the plan: ";

/// One run. Sizes of axes and numbers are those of Rota's flags.
struct EngineRun {
  std::string config;    // the model's config.json; empty: it has none
  std::string modelName; // for people
  // Axes of the mesh.
  int64_t data = 1, fsdp = 1, stage = 1, expert = 1;
  int64_t context = 1, sequence = 1, tensor = 1;

  int64_t batch = 0;      // sequences of a step, all ranks together
  int64_t length = 0;     // tokens of a sequence
  int64_t accumulate = 1; // times that a step runs the timeline
  int64_t microbatches = 1;

  // The pipeline.
  std::string schedule;
  int64_t repeats = 1, delay = 1;
  bool isV = false;            // chunks are placed in a V
  int64_t unpipelined = 0;     // layers outside of the pipeline
  std::vector<int64_t> layers; // layers of each chunk of the pipeline
  std::string timeline;        // CSV of its compute actions

  // How a rank computes, in the words of the flags.
  std::string remat = "none", weightGather = "once";
  std::string contextExchange = "gather", tensorExchange = "auto";
  bool isBf16 = false, hasBf16Gradients = false, hasBf16States = false;
  bool shardsOptimizer = false;
  double expertCapacity = 0, expertBuffer = 0, routerZLoss = 0, zLoss = 0;
  int64_t lossBlocks = 1;

  // Flags with their values that no engine has, and what these do instead.
  std::vector<std::pair<std::string, std::string>> unknown;

  // The optimizer and its numbers by the names of their flags.
  std::string optimizer = "adamw", rateSchedule = "cosine";
  std::map<std::string, double> numbers;
  bool isNesterov = false;
  std::optional<int64_t> steps;

  /// Ranks that have parts of a batch of their own.
  int64_t batchRanks() const { return data * fsdp * expert; }
  int64_t devices() const {
    return batchRanks() * stage * context * sequence * tensor;
  }
  int64_t chunks() const { return stage * repeats; }
  /// Sequences of one microbatch on one rank.
  int64_t microbatchSize() const {
    return batch / accumulate / microbatches / batchRanks();
  }
  double number(const std::string &name, double otherwise) const {
    auto found = numbers.find(name);
    return found == numbers.end() ? otherwise : found->second;
  }
  /// The peak learning rate; Rota's default where a run says none.
  double learningRate() const { return number("learning-rate", 3e-4); }
  /// The learning rate at the end of a decay as a share of the first.
  double lastRateShare() const {
    double rate = learningRate();
    return rate > 0 ? number("min-learning-rate", 0) / rate : 0;
  }
};

/// "data=2,stage=4" without axes of size 1; "stage=1" for a single rank.
std::string meshOf(const EngineRun &run);

/// The options of `run`, with numbers of layers where chunks do not have even
/// parts of them.
OptionTexts optionsOf(const EngineRun &run);

} // namespace rota::engines

#endif // ROTA_TOOLS_PLANNER_ENGINES_ENGINERUN_H
