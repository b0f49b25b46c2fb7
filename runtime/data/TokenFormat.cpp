// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/TokenFormat.h"
#include "runtime/Error.h"
#include "runtime/data/MegatronIndex.h"
#include "runtime/data/NumpyHeader.h"
#include "runtime/data/TextNames.h"

#include <fmt/format.h>

namespace rota {

namespace {

/// A kind of llm.c file.
struct LlmcKind {
  int32_t magic, version;
  TokenType type;
};
constexpr LlmcKind kLlmcKinds[] = {{20240520, 1, TokenType::Uint16},
                                   {20240801, 7, TokenType::Uint32}};
constexpr int32_t kLlmcEvaluation = 20240522; // questions, not tokens
constexpr int64_t kLlmcHeaderBytes = 256 * 4;

std::optional<TokenLayout> findLlmc(const DataFile &file) {
  if (file.bytes() < 4)
    return std::nullopt;
  int32_t magic;
  file.read(0, sizeof magic, reinterpret_cast<char *>(&magic));
  if (magic == kLlmcEvaluation)
    throw InputError(fmt::format(
        "'{}': expected tokens, got an evaluation file of llm.c (magic {})",
        file.path(), magic));
  for (const LlmcKind &kind : kLlmcKinds) {
    if (magic != kind.magic)
      continue;
    if (file.bytes() < kLlmcHeaderBytes)
      throw InputError(fmt::format(
          "'{}': expected a header of {} bytes, as llm.c writes it, got a file "
          "of {}",
          file.path(), kLlmcHeaderBytes, file.bytes()));
    int32_t header[3];
    file.read(0, sizeof header, reinterpret_cast<char *>(header));
    if (header[1] != kind.version)
      throw InputError(fmt::format(
          "'{}': llm.c header: expected version {} with magic {}, got {}",
          file.path(), kind.version, magic, header[1]));
    TokenLayout layout{kind.type, kLlmcHeaderBytes, header[2]};
    requireSize(file, "llm.c", layout);
    return layout;
  }
  return std::nullopt;
}

TokenLayout plainTokens(const DataFile &file, TokenType type) {
  int64_t unit = tokenBytes(type);
  if (file.bytes() % unit != 0)
    throw InputError(fmt::format("'{}': expected a multiple of {} bytes, got "
                                 "{}",
                                 file.path(), unit, file.bytes()));
  return {type, 0, file.bytes() / unit};
}

/// The layout that a header or an index says, with the name of the form.
std::optional<TokenLayout> findHeader(const DataFile &file, const char *&form) {
  if (std::string path = megatronIndexPath(file.path());
      !path.empty() && isThere(path)) {
    form = "Megatron index";
    return readMegatronIndex(DataFile(path, /*keepOpen=*/true), file);
  }
  form = "llm.c header";
  if (auto layout = findLlmc(file))
    return layout;
  form = "numpy header";
  return readNumpyHeader(file);
}

} // namespace

void requireSize(const DataFile &file, const char *form,
                 const TokenLayout &layout) {
  int64_t unit = tokenBytes(layout.type);
  int64_t room = file.bytes() - layout.offset;
  if (layout.tokens < 0 || layout.tokens > room / unit ||
      layout.tokens * unit != room)
    throw InputError(fmt::format(
        "'{}': {} header: expected {} bytes and {} tokens of {} bytes, got a "
        "file of {} bytes",
        file.path(), form, layout.offset, layout.tokens, unit, file.bytes()));
}

bool saysForm(const DataFile &file) {
  const char *form = nullptr;
  return file.bytes() > 0 && (isMegatronIndex(file) || findHeader(file, form));
}

TokenLayout findTokens(const DataFile &file, std::optional<TokenType> asked) {
  if (file.bytes() == 0)
    throw InputError(fmt::format("'{}': the file is empty", file.path()));
  if (isMegatronIndex(file))
    throw InputError(fmt::format(
        "'{}': expected tokens, got the index of a Megatron data set: name its "
        ".bin file",
        file.path()));
  const char *form = nullptr;
  std::optional<TokenLayout> found = findHeader(file, form);
  if (!found && !asked && needsTokens(file.path()))
    throw InputError(fmt::format(
        "'{}': expected tokens, got documents or compressed text by its name: "
        "`rota train` and `rota eval` read it, and `rota tokenize` makes "
        "tokens of it for other programs",
        file.path()));
  if (!found)
    return plainTokens(file, asked.value_or(TokenType::Bytes));
  if (asked && *asked != found->type)
    throw InputError(fmt::format("'{}': expected tokens of type {}, as "
                                 "--token-type says, got {} in its {}",
                                 file.path(), nameOf(*asked),
                                 nameOf(found->type), form));
  if (found->tokens == 0)
    throw InputError(
        fmt::format("'{}': the {} says 0 tokens", file.path(), form));
  return *found;
}

} // namespace rota
