// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/FileSource.h"
#include "runtime/Error.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace rota {

/// The boundaries of files that end at `tokens` at the latest.
static std::vector<int64_t> cut(std::vector<int64_t> boundaries,
                                int64_t tokens) {
  for (int64_t &boundary : boundaries)
    boundary = std::min(boundary, tokens);
  return boundaries;
}

static void requireLength(const char *part, int64_t tokens, int64_t needed,
                          const char *advice) {
  if (tokens < needed)
    throw InputError(fmt::format(
        "the data's {} part is shorter than a sequence and its last target: "
        "expected at least {} tokens, got {}{}",
        part, needed, tokens, advice));
}

FileSource::FileSource(Tokens given, int64_t length, double validationFraction,
                       uint64_t seed, const std::string &stream)
    : tokens(std::move(given)), length(length),
      training(tokens.size() -
               static_cast<int64_t>(static_cast<double>(tokens.size()) *
                                    validationFraction)),
      windows(cut(tokens.boundaries(), training), length, seed, stream) {
  if (validationFraction < 1.0)
    requireLength("training", training, length + 1, "");
  if (validationFraction > 0.0)
    requireLength("validation", validationTokens(), length + 1,
                  " (--eval-fraction 0 trains without one)");
  if (validationFraction < 1.0 && windows.count() == 0)
    throw InputError(fmt::format(
        "each file is shorter than a sequence and its last target: expected at "
        "least {} tokens in one of {}, got {} in all",
        length + 1, counted(std::ssize(tokens.boundaries()) - 1, "file"),
        training));
}

int64_t FileSource::position(const Sequence &sequence) const {
  if (sequence.split == Split::Train)
    return windows.position(sequence.number);
  int64_t room = validationTokens() - length - 1;
  double share = sequence.total > 1
                     ? static_cast<double>(sequence.number) /
                           static_cast<double>(sequence.total - 1)
                     : 0.0;
  return training + std::min(room, static_cast<int64_t>(
                                       share * static_cast<double>(room)));
}

void FileSource::read(const Sequence &sequence, TokenRole role, int64_t begin,
                      int64_t count, int32_t *out) const {
  int64_t ahead = role == TokenRole::Target ? 1 : 0;
  tokens.read(position(sequence) + begin + ahead, count, role, out);
}

std::string FileSource::note() const {
  int64_t unused = training > 0 ? windows.unusedFiles() : 0;
  return unused == 0
             ? ""
             : fmt::format("{} of {} {} no sequence to train on", unused,
                           counted(std::ssize(tokens.boundaries()) - 1, "file"),
                           unused == 1 ? "has" : "have");
}

} // namespace rota
