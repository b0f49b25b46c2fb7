// SPDX-License-Identifier: Apache-2.0
//
// Random files of documents in lines, as they are and compressed, and random
// chat templates. A byte says the file's form and the options; then follow a
// chat template and the file. Either a line is refused by an InputError, or
// what counts of its document are ranges of its text.
#include "runtime/Error.h"
#include "runtime/documents/JsonLines.h"
#include "runtime/documents/Records.h"
#include "test/fuzz/FuzzFiles.h"

#include <cstdlib>

using namespace rota;
using namespace rota::test;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

static void check(const Document &document) {
  require(document.counted || !document.isRendered);
  size_t last = 0;
  if (document.counted)
    for (ByteRange range : *document.counted) {
      require(last <= range.begin && range.begin <= range.end);
      last = range.end;
    }
  require(last <= document.text.size());
}

static void readAll(const std::string &path, const RecordOptions &options) {
  LineReader lines(openText(path), 0, 0);
  int64_t number = 0;
  for (std::string line; lines.next(line); number = lines.number()) {
    require(lines.number() > number);
    try {
      check(readRecord(line, options));
    } catch (const InputError &) {
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  constexpr const char *names[] = {"t.jsonl", "t.jsonl.gz", "t.jsonl.zst",
                                   "t.jsonl"};
  constexpr const char *families[] = {"chatml", "qwen3",       "llama2",
                                      "gemma3", "deepseek-r1", "mistral-nemo",
                                      "gpt-oss"};
  FuzzInput input(data, size);
  uint8_t form = input.byte();
  RecordOptions options;
  if (form & 4)
    options.field = "a";
  const ChatTemplate *family = recognizeChatTemplate(input.file());
  if (!family)
    family = findChatTemplate(families[(form >> 3) % std::size(families)]);
  options.chat = ChatForm{family, "<s>", "</s>"};
  const std::string path =
      fuzzFolder().write(names[form & 3], std::string(input.last()));
  try {
    readAll(path, options);
  } catch (const InputError &) {
  }
  return 0;
}
