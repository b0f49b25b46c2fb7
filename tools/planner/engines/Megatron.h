// SPDX-License-Identifier: Apache-2.0
//
// Megatron-LM by its flags, spelled as in megatron/training/arguments.py and
// the configuration classes that its flags are made from.
#ifndef ROTA_TOOLS_PLANNER_ENGINES_MEGATRON_H
#define ROTA_TOOLS_PLANNER_ENGINES_MEGATRON_H

#include "tools/planner/engines/EngineRun.h"
#include "tools/planner/engines/Rows.h"

#include <map>
#include <span>
#include <string_view>

namespace rota::engines::megatron {

/// The flags that say something about a plan. A flag that is not given has no
/// value. Lists are texts with spaces.
struct Flags {
  using Count = std::optional<int64_t>;
  using Real = std::optional<double>;
  using Switch = std::optional<bool>;
  using Text = std::optional<std::string>;

  // Ranks.
  Count tensor, pipeline, context, expert, expertTensor, instances;
  Switch sequenceParallel, distributedOptimizer, fsdp, tensorOverlap;
  Switch overlapsReduce, overlapsGather;
  Text contextExchange, fsdpSharding, checkpointFormat;
  // The pipeline.
  Count virtualStages, layersPerChunk, firstLayers, lastLayers;
  Text layout;
  Switch countsEmbedding, countsLoss;
  // Batch and length.
  Count microBatch, globalBatch, sequenceLength, steps;
  // Recomputation.
  Switch recomputesCore;
  Text recomputed, recomputeMethod, recomputedModules;
  Count recomputedLayers;
  // The model.
  Count layers, embed, feedForward, heads, headSize, queryGroups, positions;
  Count vocabulary, paddedVocabulary, vocabularyDivisor, rotaryBase;
  Switch groupsQueries, isGated, hasNoBias, biasesQueries, normsQueries;
  Switch isUntied, doesNotPad, scalesRotary, usesRotary;
  Text positionKind, norm, window;
  Real normEpsilon, rotaryFactor, rotaryShare, initializerRange;
  Real attentionDropout, hiddenDropout;
  // Experts.
  Count experts, choices, expertFeedForward;
  Text balance, balanceLoss, dispatcher;
  Real expertCapacity, routerZLoss;
  Switch choosesAfterSoftmax, groupsProducts;
  // Types.
  Switch isBf16, isFp16, reducesInBf16, addsInF32, choosesStateTypes;
  Text firstMoment, secondMoment;
  // The optimizer.
  Text optimizer, rateSchedule, decayForm;
  Real rate, leastRate, weightDecay, beta1, beta2, epsilon, clip;
  Real sgdMomentum, muonMomentum;
  Switch isNesterov;
  Count warmup, decaySteps, lastDecay, seed;

  /// The numbers of the words that are flags, by flag.
  std::map<std::string, size_t, std::less<>> words;
  /// A message about a flag, with the number of its word where it is given:
  /// "word 3: '--lr': ...".
  std::string messageAt(std::string_view flag,
                        const std::string &message) const;
};

using FlagRow = Row<Flags>;
/// The table of these flags, in the order in which they are written.
std::span<const FlagRow> table();

/// The words that follow a flag: none, one, or as many as are not flags.
enum class Arity { None, One, Three, Any };
/// The arity of a flag that the engine knows; nothing for another.
std::optional<Arity> arityOf(std::string_view flag);
/// "; did you mean '--X'?" for the known flag that is spelled most like one.
std::string nearestFlag(const std::string &flag);
/// The reason for which Rota cannot follow a flag with that value, which trains
/// something else, or in a way that Rota has not. Null for others, and for
/// flags of the model where that is known.
const char *whyRefused(std::string_view flag, std::string_view value,
                       bool hasModel);

/// The difference of a plan from a run with that flag; null for flags whose
/// run it follows.
const char *otherwiseIn(std::string_view flag);

/// Reads the words of `request` into `flags`. Flags that no plan depends on are
/// added to `import.ignored`, and the ranks that a launcher's command says are
/// in `launched`. False, and an `error` with the word's number, for a word that
/// is no flag of the engine, a value that does not fit it, and a flag that Rota
/// cannot follow.
bool readFlags(const ImportRequest &request, Flags &flags, int64_t &launched,
               EngineImport &import, std::string &error);
/// The model that the flags describe; nothing, and an `error`, for another one.
std::optional<EngineModel> modelOf(const Flags &flags, std::string &error);

/// The engine's layout of layers: "Et|(tt|)*14tL" for 1, 2, ..., 2, 1.
std::string layoutText(const std::vector<int64_t> &layers);
/// The layers of each chunk. Nothing, and an `error`, for a layout of another
/// form.
std::optional<std::vector<int64_t>> readLayout(const std::string &text,
                                               std::string &error);

std::optional<EngineExport> exportFlags(const EngineRun &run,
                                        std::string &error);
std::optional<EngineImport> importFlags(const ImportRequest &request,
                                        std::string &error);

} // namespace rota::engines::megatron

#endif // ROTA_TOOLS_PLANNER_ENGINES_MEGATRON_H
