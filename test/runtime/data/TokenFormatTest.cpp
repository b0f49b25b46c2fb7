// SPDX-License-Identifier: Apache-2.0
//
// Headers of token files: what is recognized, what is refused.
#include "runtime/data/TokenFormat.h"
#include "runtime/Error.h"
#include "test/runtime/data/BatchCase.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

namespace {

TokenLayout layoutOf(const std::string &path,
                     std::optional<TokenType> asked = std::nullopt) {
  return findTokens(DataFile(path, true), asked);
}

std::string errorOf(const std::string &path,
                    std::optional<TokenType> asked = std::nullopt) {
  return messageOf<InputError>([&] { layoutOf(path, asked); });
}

std::string llmc(int32_t magic, int32_t version, int32_t count) {
  std::vector<int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytesOf(header);
}

std::string numpy(const std::string &dictionary, int major = 1) {
  std::string header = dictionary;
  header.append(53 - header.size() % 53, ' ');
  header.back() = '\n';
  std::string length = major == 1
                           ? bytesOf<uint16_t>({uint16_t(header.size())})
                           : bytesOf<uint32_t>({uint32_t(header.size())});
  return "\x93NUMPY" + std::string{char(major), '\0'} + length + header;
}

struct Index {
  uint64_t version = 1;
  uint8_t code = 8;
  std::vector<int32_t> lengths = {3, 0, 2};
  std::vector<int64_t> offsets = {0, 6, 6}, documents = {0, 2, 3};

  std::string bytes() const {
    return std::string("MMIDIDX\0\0", 9) + bytesOf<uint64_t>({version}) +
           char(code) + bytesOf<uint64_t>({lengths.size(), documents.size()}) +
           bytesOf(lengths) + bytesOf(offsets) + bytesOf(documents);
  }
};

} // namespace

TEST(TokenFormat, ReadsHeadersOfLlmc) {
  TemporaryFolder folder;
  TokenLayout gpt2 = layoutOf(folder.write(
      "a", llmc(20240520, 1, 3) + bytesOf<uint16_t>({1, 2, 50256})));
  EXPECT_EQ(gpt2.type, TokenType::Uint16);
  EXPECT_EQ(gpt2.offset, 1024);
  EXPECT_EQ(gpt2.tokens, 3);
  std::string llama =
      folder.write("b", llmc(20240801, 7, 2) + bytesOf<uint32_t>({1, 128000}));
  EXPECT_EQ(layoutOf(llama).type, TokenType::Uint32);
  EXPECT_EQ(layoutOf(llama, TokenType::Uint32).tokens, 2);
  EXPECT_EQ(errorOf(llama, TokenType::Uint16),
            "'" + llama +
                "': expected tokens of type uint16, as --token-type says, got "
                "uint32 in its llm.c header");
}

TEST(TokenFormat, RefusesBrokenHeadersOfLlmc) {
  TemporaryFolder folder;
  auto error = [&](const std::string &bytes) {
    std::string path = folder.write("x", bytes), text = errorOf(path);
    return text.starts_with("'" + path + "': ") ? text.substr(path.size() + 4)
                                                : text;
  };
  EXPECT_EQ(error(llmc(20240520, 1, 3).substr(0, 1000)),
            "expected a header of 1024 bytes, as llm.c writes it, got a file "
            "of 1000");
  EXPECT_EQ(error(llmc(20240801, 1, 0)),
            "llm.c header: expected version 7 with magic 20240801, got 1");
  EXPECT_EQ(error(llmc(20240520, 1, 3) + "abcd"),
            "llm.c header: expected 1024 bytes and 3 tokens of 2 bytes, got a "
            "file of 1028 bytes");
  EXPECT_EQ(error(llmc(20240520, 1, -3) + "abcd"),
            "llm.c header: expected 1024 bytes and -3 tokens of 2 bytes, got a "
            "file of 1028 bytes");
  EXPECT_EQ(error(llmc(20240520, 1, 0)), "the llm.c header says 0 tokens");
  EXPECT_EQ(error(llmc(20240522, 1, 5)),
            "expected tokens, got an evaluation file of llm.c (magic "
            "20240522)");
}

TEST(TokenFormat, ReadsNumpyFiles) {
  TemporaryFolder folder;
  for (int major : {1, 2, 3}) {
    std::string header = numpy(
        "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }", major);
    TokenLayout layout =
        layoutOf(folder.write("a.npy", header + bytesOf<uint16_t>({4, 5, 6})));
    EXPECT_EQ(layout.type, TokenType::Uint16);
    EXPECT_EQ(layout.offset, int64_t(header.size()));
    EXPECT_EQ(layout.tokens, 3);
  }
  EXPECT_EQ(layoutOf(folder.write("b.npy", numpy("{'descr': '<i8', 'shape': "
                                                 "(1,), }") +
                                               bytesOf<int64_t>({4})))
                .type,
            TokenType::Int64);
}

TEST(TokenFormat, RefusesBrokenNumpyFiles) {
  TemporaryFolder folder;
  auto error = [&](const std::string &bytes) {
    return errorOf(folder.write("x.npy", bytes))
        .substr(folder.path("x.npy").size() + 4);
  };
  auto header = [](const char *type, const char *shape) {
    return numpy(std::string("{'descr': '") + type +
                 "', 'fortran_order': False, 'shape': " + shape + ", }");
  };
  const char *rule =
      "expected an array of one dimension of type |u1, <u2, <u4, "
      "<i4 or <i8, got the header {'descr': ";
  EXPECT_TRUE(error(header("<f4", "(1,)") + "abcd").starts_with(rule));
  EXPECT_TRUE(error(header(">u2", "(2,)") + "abcd").starts_with(rule));
  EXPECT_TRUE(error(header("<u2", "(2, 1)") + "abcd").starts_with(rule));
  EXPECT_TRUE(error(header("<u2", "()") + "ab").starts_with(rule));
  EXPECT_TRUE(error(header("<u2", "(-1,)") + "ab").starts_with(rule));
  std::string good = header("<u2", "(2,)");
  EXPECT_EQ(error(good + "abc"),
            "numpy header: expected " + std::to_string(good.size()) +
                " bytes and 2 tokens of 2 bytes, got a file of " +
                std::to_string(good.size() + 3) + " bytes");
  EXPECT_EQ(error(good.substr(0, 20)), "expected a numpy header of " +
                                           std::to_string(good.size()) +
                                           " bytes, got a file of 20");
  EXPECT_EQ(error("\x93NUMPY"),
            "expected a numpy header of 12 bytes, got a file of 6");
  EXPECT_EQ(error("\x93NUMPY" + std::string("\x09\x02") + "abcdefgh"),
            "expected version 1 to 3 of a numpy file, got 9.2");
}

TEST(TokenFormat, ReadsMegatronPairs) {
  TemporaryFolder folder;
  std::string path =
      folder.write("m.bin", bytesOf<uint16_t>({10, 20, 30, 40, 50}));
  folder.write("m.idx", Index().bytes());
  TokenLayout layout = layoutOf(path);
  EXPECT_EQ(layout.type, TokenType::Uint16);
  EXPECT_EQ(layout.offset, 0);
  EXPECT_EQ(layout.tokens, 5);
  // With the modes of a multimodal data set.
  folder.write("m.idx", Index().bytes() + "abc");
  EXPECT_EQ(layoutOf(path).tokens, 5);
  folder.write("m.idx", Index{1, 4, {5}, {0}, {0, 1}}.bytes());
  folder.write("m.bin", bytesOf<int32_t>({1, 2, 3, 4, 100000}));
  EXPECT_EQ(layoutOf(path).type, TokenType::Int32);
  EXPECT_EQ(errorOf(path, TokenType::Uint16),
            "'" + path +
                "': expected tokens of type uint16, as --token-type says, got "
                "int32 in its Megatron index");
  EXPECT_EQ(errorOf(folder.path("m.idx")),
            "'" + folder.path("m.idx") +
                "': expected tokens, got the index of a Megatron data set: "
                "name its .bin file");
}

TEST(TokenFormat, RefusesBrokenMegatronPairs) {
  TemporaryFolder folder;
  std::string path = folder.write("m.bin", std::string(10, 'a'));
  std::string named = "'" + folder.path("m.idx") + "': ";
  auto error = [&](const std::string &bytes) {
    folder.write("m.idx", bytes);
    std::string text = errorOf(path);
    return text.starts_with(named) ? text.substr(named.size()) : text;
  };
  std::string good = Index().bytes();
  EXPECT_EQ(error(good), "(no exception)");
  EXPECT_TRUE(error("TNTIDX").starts_with("expected the index of the Megatron "
                                          "data set"));
  EXPECT_EQ(error(good.substr(0, 20)),
            "expected an index of at least 34 bytes, got 20");
  EXPECT_EQ(error(Index{2}.bytes()), "expected version 1, got 2");
  EXPECT_EQ(error(Index{1, 7}.bytes()),
            "expected a type code of 1 (uint8), 4 (int32), 5 (int64) or 8 "
            "(uint16), got 7");
  EXPECT_EQ(error(good.substr(0, good.size() - 1)),
            "expected 34 + 12 x sequences + 8 x document boundaries bytes, got "
            "93 bytes with 3 sequences and 3 document boundaries");
  std::string huge = good;
  huge.replace(18, 8, std::string(8, '\xff'));
  EXPECT_TRUE(error(huge).ends_with(
      "got 94 bytes with 18446744073709551615 sequences and 3 document "
      "boundaries"));
  EXPECT_EQ(error(Index{1, 8, {3, 0, 2}, {0, 6, 6}, {0, 2, 4}}.bytes()),
            "expected the last document to end with sequence 3, got 4");
  EXPECT_EQ(error(Index{1, 8, {3, 0, 2}, {0, 6, 8}}.bytes()),
            "sequence 2: expected at least 0 tokens at offset 6 of '" + path +
                "', got 2 tokens at offset 8");
  EXPECT_EQ(error(Index{1, 8, {3, 3, 2}, {0, 6, 12}}.bytes()),
            "'" + path + "': expected 16 bytes, as '" + folder.path("m.idx") +
                "' says, got 10");
}

// Bytes of documents and of compressed texts are no tokens, unless the user
// says their type.
TEST(TokenFormat, RefusesTextsByTheirNames) {
  TemporaryFolder folder;
  for (const char *name : {"a.jsonl", "a.gz", "a.txt.zst", "a.jsonl.gz"}) {
    std::string path = folder.write(name, "text");
    EXPECT_EQ(errorOf(path),
              "'" + path +
                  "': expected tokens, got documents or compressed text by its "
                  "name: `rota train` and `rota eval` read it, and `rota "
                  "tokenize` makes tokens of it for other programs");
    EXPECT_EQ(layoutOf(path, TokenType::Bytes).tokens, 4);
    EXPECT_FALSE(saysForm(DataFile(path, true)));
  }
  std::string path = folder.write("b.gz", llmc(20240520, 1, 1) + "ab");
  EXPECT_EQ(layoutOf(path).tokens, 1);
  EXPECT_TRUE(saysForm(DataFile(path, true)));
}
