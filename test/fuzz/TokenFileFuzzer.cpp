// SPDX-License-Identifier: Apache-2.0
//
// Files of tokens with random headers, indexes and masks. A byte says the type
// that is asked for and which files there are; then follow the index, the mask
// and the tokens. Either the file is refused by an InputError, or all of its
// tokens are in their bounds.
#include "runtime/Error.h"
#include "runtime/data/TokenFile.h"
#include "test/fuzz/FuzzFiles.h"

#include <cstdlib>
#include <vector>

using namespace rota;
using namespace rota::test;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

static void readAll(const TokenFile &file, TokenBounds bounds) {
  require(file.size() > 0);
  file.check();
  std::vector<int32_t> tokens(static_cast<size_t>(file.size()));
  file.read(0, file.size(), TokenRole::Input, tokens.data());
  for (int32_t token : tokens)
    require(token >= 0 && token < bounds.vocabulary);
  file.read(0, file.size(), TokenRole::Target, tokens.data());
  for (int32_t token : tokens)
    require(token >= kNoTarget && token < bounds.classes);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzInput input(data, size);
  uint8_t form = input.byte();
  constexpr uint8_t kTypes = std::size(Names<TokenType>::list);
  std::optional<TokenType> asked;
  if (uint8_t type = form & 7; type < kTypes)
    asked = static_cast<TokenType>(type);
  const TemporaryFolder &folder = fuzzFolder();
  auto write = [&](bool exists, const char *name, std::string_view bytes) {
    exists ? void(folder.write(name, std::string(bytes)))
           : void(std::filesystem::remove(folder.path(name)));
  };
  write(form & 8, "t.idx", input.file());
  write(form & 16, "t.bin.mask", input.file());
  write(true, "t.bin", input.last());
  TokenBounds bounds{40000, form & 32 ? 40000 : 100};
  try {
    readAll(TokenFile(folder.path("t.bin"), asked, bounds, true), bounds);
  } catch (const InputError &) {
  }
  return 0;
}
