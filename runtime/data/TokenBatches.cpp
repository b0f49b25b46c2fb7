// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/TokenBatches.h"
#include "runtime/data/DataPaths.h"
#include "runtime/data/FileSource.h"
#include "runtime/data/SyntheticSource.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

int64_t runsOf(const Program &program, int64_t batchSize) {
  int64_t run = program.timelineSequences();
  return batchSize > 0 ? (batchSize + run - 1) / run
                       : program.accumulationSteps;
}

static std::vector<int64_t> sharesOf(const std::vector<SourcePaths> &paths) {
  std::vector<int64_t> shares;
  for (const SourcePaths &source : paths)
    shares.push_back(source.share);
  return shares;
}

static std::unique_ptr<SequenceSource> open(const SourcePaths &paths,
                                            const Program &program,
                                            const TokenBatchOptions &options,
                                            size_t number, size_t keptOpen) {
  TokenBounds bounds{program.vocabulary, program.classes};
  std::string stream = fmt::format("data.train.{}", number);
  if (paths.files.empty())
    return std::make_unique<SyntheticSource>(
        bounds, options.validationFraction > 0.0, options.seed, stream);
  return std::make_unique<FileSource>(
      Tokens(paths.files, options.type, bounds, keptOpen),
      program.input.shape[1], options.validationFraction, options.seed, stream);
}

/// "a.bin 70 % of 950 tokens, b 30 % of 1900 tokens to train on, 150 to
/// validate"; without shares for a single source, and without a split that has
/// no tokens.
static std::string
describeSources(const std::vector<SourcePaths> &paths,
                const std::vector<std::unique_ptr<SequenceSource>> &sources,
                const Mixture &mixture, double fraction) {
  std::string text, notes;
  int64_t validation = 0;
  bool isSynthetic = false;
  for (size_t s = 0; s < sources.size(); ++s) {
    if (sources.size() > 1)
      text += fmt::format("{}{} {:.4g} % of ", s ? ", " : "", paths[s].name,
                          100.0 * mixture.share(s));
    int64_t train = sources[s]->trainTokens();
    text += train < 0 ? "synthetic tokens" : fmt::format("{} tokens", train);
    if (std::string note = sources[s]->note(); !note.empty())
      notes += "; " + (sources.size() > 1 ? paths[s].name + ": " : "") + note;
    int64_t held = sources[s]->validationTokens();
    isSynthetic |= held < 0;
    validation += held < 0 ? 0 : held;
  }
  std::string held = fmt::format("{}", validation);
  if (isSynthetic)
    held = validation > 0 ? held + " and synthetic tokens" : "synthetic tokens";
  if (fraction >= 1.0)
    return fmt::format("{} to validate{}", held, notes);
  if (fraction <= 0.0)
    return fmt::format("{} to train on{}", text, notes);
  return fmt::format("{} to train on, {} to validate{}", text, held, notes);
}

TokenBatches::TokenBatches(const Program &program,
                           const std::vector<std::string> &items,
                           const TokenBatchOptions &options)
    : TokenBatches(program, findSources(items), options) {}

TokenBatches::TokenBatches(const Program &program,
                           const std::vector<SourcePaths> &paths,
                           const TokenBatchOptions &options)
    : mixture(sharesOf(paths)),
      validationBatchSize(options.validationBatchSize > 0
                              ? options.validationBatchSize
                              : program.stepSequences()),
      validationNumbers(runsOf(program, options.validationBatchSize) *
                        program.timelineSequences()),
      validationSequences(validationBatchSize * options.validationBatches),
      validates(options.validationFraction > 0.0) {
  for (size_t s = 0; s < paths.size(); ++s)
    sources.push_back(
        open(paths[s], program, options, s, kKeptOpen / paths.size()));
  description =
      describeSources(paths, sources, mixture, options.validationFraction);
}

/// The n of the sequence of that number; -1: it does not count.
int64_t TokenBatches::sequenceOf(Split split, int64_t number) const {
  if (split == Split::Train)
    return number;
  int64_t batch = number / validationNumbers;
  int64_t index = number % validationNumbers;
  return index < validationBatchSize ? batch * validationBatchSize + index : -1;
}

TokenBatches::Place TokenBatches::place(Split split, int64_t n) const {
  auto [source, number] = mixture.at(n);
  return {sources[source].get(),
          {split, number, mixture.countBefore(validationSequences, source)}};
}

void TokenBatches::fill(Split split, int64_t first, const Destination &input,
                        const Destination &target) const {
  // Part [sequences, tokens] of the microbatch.
  auto one = [&](const Destination &out, TokenRole role) {
    if (!out.place)
      return;
    const Part &part = out.part;
    auto *tokens = reinterpret_cast<int32_t *>(out.place);
    for (int64_t s = 0; s < part.size[0]; ++s) {
      int64_t n = sequenceOf(split, first + part.begin[0] + s);
      int32_t *row = tokens + s * part.size[1];
      if (n < 0) {
        std::fill_n(row, part.size[1], role == TokenRole::Target ? -1 : 0);
        continue;
      }
      Place from = place(split, n);
      from.source->read(from.sequence, role, part.begin[1], part.size[1], row);
    }
  };
  one(input, TokenRole::Input);
  one(target, TokenRole::Target);
}

} // namespace rota
