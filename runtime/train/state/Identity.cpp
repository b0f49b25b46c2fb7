// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/state/Identity.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/checkpoint/RankFile.h"
#include "runtime/data/DataPaths.h"
#include "runtime/data/TokenFile.h"
#include "runtime/data/TokenOrigin.h"
#include "runtime/program/IdentityKeys.h"
#include "runtime/program/JsonText.h"
#include "runtime/program/TensorNames.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

namespace rota {

/// The tensors of the parameters in files, with names and shapes, and the
/// configuration that the model was built from.
static std::string modelIdentity(const Program &program) {
  // A tensor's layers may be of several kinds that differ in nothing else.
  std::vector<std::pair<std::string, std::set<int64_t>>> tensors;
  for (const Parameter &p : program.parameters) {
    if (p.joined.begin != 0)
      continue;
    std::string name =
        fmt::format("{} [{}]", fileName(p), fmt::join(fileShape(p), ","));
    auto found = std::ranges::find(
        tensors, name, &std::pair<std::string, std::set<int64_t>>::first);
    if (found == tensors.end())
      found = tensors.insert(found, {name, {}});
    found->second.insert(p.layers.begin(), p.layers.end());
  }
  std::string text = program.config;
  for (const auto &[name, layers] : tensors)
    text += fmt::format("\n{} of layers [{}]", name, fmt::join(layers, ","));
  return fmt::format("{:016x}", hashOf(text));
}

/// The type that tasks compute in: bf16 where a parameter is read as that.
static std::string computeType(const Program &program) {
  for (const Parameter &parameter : program.parameters)
    if (parameter.compute != ElementType::F32)
      return typeName(parameter.compute);
  return typeName(ElementType::F32);
}

/// Each file with its size and whether it has a mask; its folder may have
/// moved.
static std::string filesText(const std::vector<std::string> &files) {
  std::vector<std::string> texts;
  for (const std::string &path : files) {
    std::error_code error;
    auto bytes = std::filesystem::file_size(path, error);
    texts.push_back(fmt::format(
        "{} of {} bytes{}", std::filesystem::path(path).filename().string(),
        error ? 0 : bytes, isThere(path + kMaskEnding) ? " with a mask" : ""));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// The sources with their shares and files.
static std::string dataIdentity(const Options &options) {
  if (options.data.empty())
    return "random inputs";
  std::vector<SourcePaths> sources = findSources(options.data);
  std::string text;
  for (const SourcePaths &source : sources) {
    if (sources.size() > 1)
      text += fmt::format("{} x ", source.share);
    text +=
        (source.files.empty() ? source.name : filesText(source.files)) + ", ";
  }
  return text + fmt::format("tokens {}, validation {}",
                            options.tokenType ? nameOf(*options.tokenType)
                                              : "as files say",
                            numberText(options.validation.heldFraction()));
}

/// The options of the optimizer and the learning rate with their values, those
/// that are compiled first.
static std::string optimizerIdentity(const Program &program,
                                     const Options &options) {
  OptimizerOptions values = options.optimizer;
  std::string text = program.optimizer.empty() ? "" : program.optimizer + " ";
  for (const Option &row : optimizerRows(values))
    text += fmt::format("{}={} ", row.name, fmt::join(valueTexts(row), ","));
  for (const Parameter &parameter : program.parameters)
    for (const State &state : parameter.states)
      if (std::string name =
              fmt::format("{}:{} ", state.name, typeName(state.type));
          text.find(name) == std::string::npos)
        text += name;
  text.pop_back();
  return text;
}

/// The terms beside the main loss with their coefficients.
static std::string lossTermsIdentity(const Program &program) {
  std::vector<std::string> terms;
  auto add = [&](const auto &term) {
    terms.push_back(
        fmt::format("{}={}", term.name, numberText(term.coefficient)));
  };
  std::ranges::for_each(program.lossTerms, add);
  std::ranges::for_each(program.auxiliaryLosses, add);
  return fmt::format("{}", fmt::join(terms, " "));
}

/// Whether the rate of a step depends on the number of all steps.
static bool dependsOnSteps(const OptimizerOptions &options) {
  return options.schedule != LearningRateSchedule::Constant &&
         options.minLearningRate != options.learningRate;
}

/// The tokenizers of files that name theirs; empty: none does.
static std::string tokenizerIdentity(const Options &options) {
  std::set<std::string> origins;
  if (!options.data.empty())
    for (const SourcePaths &source : findSources(options.data))
      for (const std::string &file : source.files)
        if (std::optional<TokenOrigin> origin = readTokenOrigin(file))
          origins.insert(fmt::format("{} of {}", hexadecimal(origin->hash),
                                     counted(origin->vocabulary, "token")));
  return fmt::format("{}", fmt::join(origins, ", "));
}

/// The facts that are known without a program.
static Identity optionIdentity(const Options &options) {
  using namespace identity;
  Identity facts = {{kData, dataIdentity(options)},
                    {kSeed, std::to_string(options.seed)}};
  if (std::string origins = tokenizerIdentity(options); !origins.empty())
    facts[kTokenizer] = origins;
  if (dependsOnSteps(options.optimizer))
    facts[kSteps] = std::to_string(options.steps);
  // 'skip-nonfinite' changes no number of a run that goes on without it.
  if (options.skip.spikes > 0.0)
    facts[kSkipSpikes] = numberText(options.skip.spikes);
  return facts;
}

/// The values as a manifest has them.
static Identity inJson(Identity identity) {
  for (auto &[key, value] : identity)
    value = textInJson(value);
  return identity;
}

Identity runIdentity(const Program &program, const Options &options) {
  using namespace identity;
  const DataForm &input = program.input;
  Identity facts = optionIdentity(options);
  facts[kModel] = modelIdentity(program);
  facts[kDtype] = computeType(program);
  facts[kOptimizer] = optimizerIdentity(program, options);
  facts[kBatchSize] = std::to_string(program.stepSequences());
  facts[kSequenceLength] = std::to_string(input.shape[1]);
  if (std::string terms = lossTermsIdentity(program); !terms.empty())
    facts[kLossTerms] = terms;
  if (std::ranges::any_of(program.parameters, [](const Parameter &p) {
        return p.gradient == ElementType::BF16;
      }))
    facts[kGradientDtype] = "bf16";
  for (const ModelOption &option : program.modelOptions)
    facts[option.name] = option.value;
  return inJson(std::move(facts));
}

/// The words of `text` that `other` lacks.
static std::string wordsBeside(const std::string &text,
                               const std::string &other) {
  std::istringstream words(text);
  std::string found, padded = " " + other + " ";
  for (std::string word; words >> word;)
    if (padded.find(" " + word + " ") == std::string::npos)
      found += (found.empty() ? "" : " ") + word;
  return found;
}

/// Two values of a key for people: of lists of settings those that differ.
static std::pair<std::string, std::string>
differences(const std::string &key, const Identity &saved,
            const Identity &identity) {
  auto textOf = [&](const Identity &values, const Identity &others) {
    auto found = values.find(key), other = others.find(key);
    if (found == values.end())
      return std::string("none");
    std::string text = found->second;
    bool isList = key == identity::kOptimizer || key == identity::kLossTerms;
    if (isList && other != others.end())
      text = wordsBeside(text, other->second);
    return text.empty() ? std::string("none") : "'" + text + "'";
  };
  return {textOf(saved, identity), textOf(identity, saved)};
}

void compareIdentity(const Checkpoint &checkpoint,
                     const std::set<std::string> &keys,
                     const Identity &identity,
                     const std::vector<std::string> &accepted) {
  const Identity &saved = checkpoint.manifest().identity;
  // Another tokenizer is the reason for other data. Older checkpoints do not
  // say theirs.
  std::vector<std::string> ordered;
  if (keys.contains(identity::kTokenizer) &&
      saved.contains(identity::kTokenizer))
    ordered.push_back(identity::kTokenizer);
  for (const std::string &key : keys)
    if (key != identity::kTokenizer)
      ordered.push_back(key);
  for (const std::string &key : ordered) {
    if (std::ranges::find(accepted, key) != accepted.end())
      continue;
    auto [before, now] = differences(key, saved, identity);
    if (before != now)
      throw InputError(fmt::format(
          "checkpoint '{}' is of a run with another '{}': expected {}, got {}; "
          "'--accept-change {}' goes on with the new one",
          checkpoint.folder(), key, before, now, key));
  }
}

void checkOptionIdentity(const Checkpoint &checkpoint, const Options &options) {
  Identity identity = inJson(optionIdentity(options));
  std::set<std::string> keys;
  for (const auto &[key, value] : identity)
    keys.insert(key);
  compareIdentity(checkpoint, keys, identity, options.resume.accepted);
}

} // namespace rota
