// SPDX-License-Identifier: Apache-2.0
//
// Files of text as they are, out of gzip and out of zstd; their lines.
#include "runtime/Error.h"
#include "runtime/documents/JsonLines.h"
#include "test/runtime/documents/Compress.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

namespace {

std::string readAll(TextInput &input, size_t piece) {
  std::string text, bytes(piece, '\0');
  while (size_t got = input.read(bytes.data(), piece))
    text.append(bytes, 0, got);
  return text;
}

/// Some text that is neither short nor regular.
std::string someText() {
  std::string text;
  for (uint64_t n = 0; n < 60000; ++n)
    text += std::to_string(n * n * 2654435761u % 99991) + " word\n";
  return text;
}

TEST(TextInput, ReadsTheSameTextOfAllForms) {
  TemporaryFolder folder;
  std::string text = someText(), half = text.substr(text.size() / 2);
  std::string first = text.substr(0, text.size() / 2);
  for (const std::string &path :
       {folder.write("a.txt", text), folder.write("a.gz", gzip(text)),
        folder.write("a.zst", zstd(text)),
        folder.write("b.gz", gzip(first) + gzip("") + gzip(half)),
        folder.write("b.zst", zstd(first) + zstd("") + zstd(half))})
    for (size_t piece : {size_t(1000), size_t(1) << 20}) {
      std::unique_ptr<TextInput> input = openText(path);
      EXPECT_EQ(readAll(*input, piece), text) << path;
      EXPECT_EQ(input->fileRead(), input->fileBytes());
      char byte;
      EXPECT_EQ(input->read(&byte, 1), 0u);
      std::unique_ptr<TextInput> later = openText(path);
      later->skip(12345);
      EXPECT_EQ(readAll(*later, piece), text.substr(12345)) << path;
    }
}

TEST(TextInput, RefusesWhatIsCutOffOrDamaged) {
  TemporaryFolder folder;
  std::string text = someText();
  auto wrong = [&](const std::string &name, const std::string &bytes) {
    std::string path = folder.write(name, bytes);
    std::string message = messageOf<InputError>([&] {
      std::unique_ptr<TextInput> input = openText(path);
      readAll(*input, 1 << 16);
    });
    return message.starts_with("'" + path + "': ")
               ? message.substr(path.size() + 4)
               : message;
  };
  EXPECT_EQ(wrong("a.gz", ""), "expected gzip data, got the end of the file "
                               "after 0 bytes of text");
  EXPECT_EQ(wrong("a.zst", ""), "expected zstd data, got the end of the file "
                                "after 0 bytes of text");
  EXPECT_EQ(wrong("b.gz", text), "expected gzip data, got incorrect header "
                                 "check after 0 bytes of text");
  EXPECT_EQ(wrong("b.zst", text), "expected zstd data, got Unknown frame "
                                  "descriptor after 0 bytes of text");
  for (const std::string &bytes : {gzip(text), zstd(text)}) {
    bool isGzip = bytes == gzip(text);
    std::string rest =
        wrong(isGzip ? "c.gz" : "c.zst", bytes.substr(0, bytes.size() - 9));
    EXPECT_NE(rest.find("got the end of the file"), rest.npos) << rest;
  }
}

TEST(LineReader, CountsLinesAndLeavesOutBlankOnes) {
  TemporaryFolder folder;
  std::string path = folder.write("a.jsonl", "{}\n\n  \r\n[1]\r\nlast");
  LineReader lines(openText(path), 0, 0);
  std::string line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "{}");
  EXPECT_EQ(lines.number(), 1);
  EXPECT_EQ(lines.offset(), 3);
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "[1]\r");
  EXPECT_EQ(lines.number(), 4);
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "last");
  EXPECT_EQ(lines.number(), 5);
  EXPECT_EQ(lines.offset(), lines.text().fileBytes());
  EXPECT_FALSE(lines.next(line));
  EXPECT_FALSE(lines.next(line));
}

TEST(LineReader, RefusesALineWithoutAnEnd) {
  TemporaryFolder folder;
  std::string path = folder.write(
      "a.jsonl", "{}\n" + std::string(LineReader::kMostBytes + 1, ' '));
  LineReader lines(openText(path), 0, 0);
  std::string line;
  EXPECT_EQ(messageOf<InputError>([&] {
              while (lines.next(line))
                ;
            }),
            "'" + path +
                "': line 2: expected at most 33554432 bytes, got "
                "more");
}

} // namespace
