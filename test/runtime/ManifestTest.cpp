// SPDX-License-Identifier: Apache-2.0
//
// Manifests of checkpoints: round trips to the bit, and manifests that are
// wrong.
#include "runtime/checkpoint/Manifest.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Hash.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace rota;
using namespace rota::test;
using nlohmann::json;

namespace {

/// A matrix of 4 x 6 in four pieces of different sizes, and a number.
Manifest small() {
  Manifest m;
  m.run.step = 12;
  m.run.sequences = 96;
  m.run.values["scale"] = {1.0, 0.1};
  m.identity = {{"optimizer", "adamw beta1=0.9"}, {"seed", "1"}};
  m.config = "{\n  \"model_type\": \"llama\"\n}\n";
  m.files = {{"rank-0.safetensors", 200}, {"rank-1.safetensors", 150}};
  SavedTensor number{"a", "F32", {}, {{0, 196, {}, {}, 7}}};
  SavedTensor matrix{"w", "BF16", {4, 6}, {}};
  matrix.pieces = {{0, 8, {0, 0}, {3, 2}, 0xFFFFFFFFFFFFFFFF},
                   {1, 8, {0, 2}, {1, 4}, 1},
                   {1, 16, {1, 2}, {3, 4}, 2},
                   {0, 20, {3, 0}, {1, 2}, 3}};
  m.tensors = {number, matrix};
  return m;
}

std::string errorOf(const std::string &text) {
  return messageOf<InputError>([&] { manifestFromJson(text, "m.json"); });
}

/// The text of a manifest that may have another hash, with its own.
std::string hashed(json all) {
  all.erase("hash");
  return withHash(all.dump());
}

/// The error after `edit` has changed the JSON of small().
template <typename F> std::string errorAfter(F edit) {
  json all = json::parse(toJson(small()));
  edit(all);
  return errorOf(hashed(all));
}

} // namespace

TEST(Manifest, IsReadAsWritten) {
  Manifest in = small(), out = manifestFromJson(toJson(in), "m.json");
  EXPECT_EQ(out.run.step, 12);
  EXPECT_EQ(out.run.sequences, 96);
  EXPECT_EQ(out.run.values, in.run.values);
  EXPECT_EQ(out.identity, in.identity);
  EXPECT_EQ(out.config, in.config);
  ASSERT_EQ(out.files.size(), 2U);
  EXPECT_EQ(out.files[1].name, "rank-1.safetensors");
  EXPECT_EQ(out.files[1].bytes, 150);
  ASSERT_EQ(out.tensors.size(), 2U);
  EXPECT_EQ(out.tensors[1].name, "w");
  EXPECT_EQ(out.tensors[1].type, "BF16");
  EXPECT_EQ(out.tensors[1].shape, in.tensors[1].shape);
  ASSERT_EQ(out.tensors[1].pieces.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    const SavedPiece &a = in.tensors[1].pieces[i];
    const SavedPiece &b = out.tensors[1].pieces[i];
    EXPECT_EQ(std::tie(a.file, a.offset, a.begin, a.size, a.hash),
              std::tie(b.file, b.offset, b.begin, b.size, b.hash));
  }
  EXPECT_EQ(toJson(out), toJson(in));
}

TEST(Manifest, NumbersKeepTheirBits) {
  std::mt19937_64 random(1);
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 0.1,
                                 3.0,
                                 1e308,
                                 std::numeric_limits<double>::denorm_min(),
                                 std::numeric_limits<double>::max(),
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 std::bit_cast<double>(0x7FF8000000000123)};
  for (int i = 0; i < 20000; ++i)
    numbers.push_back(std::bit_cast<double>(random()));
  Manifest in;
  in.run.values["x"] = numbers;
  Manifest out = manifestFromJson(toJson(in), "m.json");
  const std::vector<double> &got = out.run.values["x"];
  ASSERT_EQ(got.size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint64_t>(got[i]),
              std::bit_cast<uint64_t>(numbers[i]))
        << numbers[i];
}

TEST(Manifest, TextThatIsNoUtf8EndsNoRun) {
  Manifest in;
  in.identity["data"] = "a\xFFz";
  EXPECT_EQ(manifestFromJson(toJson(in), "m.json").identity["data"],
            "a\xEF\xBF\xBDz");
}

TEST(Manifest, RejectsWhatIsNoManifest) {
  EXPECT_EQ(errorOf(""), "'m.json': expected a JSON object; 0 bytes are none");
  EXPECT_EQ(errorOf("[1]"),
            "'m.json': expected a JSON object; 3 bytes are none");
  std::string whole = toJson(small());
  EXPECT_EQ(errorOf(whole.substr(0, whole.size() - 3)),
            "'m.json': expected a JSON object; " +
                std::to_string(whole.size() - 3) + " bytes are none");
  EXPECT_EQ(errorAfter([](json &j) { j["format"] = "x"; }),
            "'m.json': format: expected 'rota checkpoint', got 'x'");
  EXPECT_EQ(errorAfter([](json &j) { j["version"] = 1; }),
            "'m.json': version: expected 2, got 1");
}

TEST(Manifest, RejectsATextThatWasEdited) {
  const std::string whole = toJson(small());
  auto startsWith = [](const std::string &text, const std::string &start) {
    EXPECT_EQ(errorOf(text).substr(0, start.size()), start);
  };
  json all = json::parse(whole);
  std::string hash = all["hash"];
  EXPECT_NE(errorOf(all.dump()).find(": the manifest is not as it was written"),
            std::string::npos);
  all.erase("hash");
  EXPECT_EQ(errorOf(all.dump()), "'m.json': hash: the key is missing");
  // Every bit of the run's numbers.
  size_t begin = whole.find("\"step\":12"), end = whole.find("\"identity\"");
  ASSERT_LT(begin, end);
  for (size_t at = begin; at < end; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string edited = whole;
      edited[at] = static_cast<char>(edited[at] ^ (1 << bit));
      EXPECT_NE(errorOf(edited), "(no exception)") << edited;
    }
  std::string edited = whole;
  edited[begin + 7] = '3';
  startsWith(edited, "'m.json': hash: expected ");
  EXPECT_NE(errorOf(edited).find(", got " + hash + ": the manifest is not as"),
            std::string::npos);
}

TEST(Manifest, RejectsMissingKeysAndWrongTypes) {
  json whole = json::parse(toJson(small()));
  for (const auto &[key, value] : whole.items()) {
    if (key == "hash")
      continue;
    json without = whole;
    without.erase(key);
    EXPECT_EQ(errorOf(hashed(without)),
              "'m.json': " + key + ": the key is missing");
    // No key may be null.
    json wrong = whole;
    wrong[key] = nullptr;
    EXPECT_NE(errorOf(hashed(wrong)).find("'m.json': " + key + ": expected"),
              std::string::npos);
  }
  EXPECT_EQ(errorAfter([](json &j) { j["run"].erase("step"); }),
            "'m.json': run.step: the key is missing");
  EXPECT_EQ(errorAfter([](json &j) { j["run"]["step"] = -1; }),
            "'m.json': run.step: expected 0 to 9007199254740992, got -1");
  for (const char *key : {"step", "sequences"})
    EXPECT_EQ(errorAfter([&](json &j) { j["run"][key] = INT64_MAX; }),
              std::string("'m.json': run.") + key +
                  ": expected 0 to 9007199254740992, got 9223372036854775807");
  EXPECT_EQ(
      errorAfter([](json &j) { j["run"]["step"] = 18446744073709551615U; }),
      "'m.json': run.step: expected an integer, got 18446744073709551615");
  EXPECT_EQ(errorAfter([](json &j) { j["run"]["values"]["scale"][1] = "1"; }),
            "'m.json': run.values.scale[1]: expected a number, or the 16 "
            "hexadecimal digits of one that is not finite, got \"1\"");
  EXPECT_EQ(errorAfter([](json &j) { j["identity"]["seed"] = 1; }),
            "'m.json': identity.seed: expected a text, got 1");
}

TEST(Manifest, RejectsFilesOutsideOfTheFolder) {
  for (const char *name : {"../x", "/x", "", ".", "..", "a/b", ".hidden"})
    EXPECT_EQ(errorAfter([&](json &j) { j["files"][1]["name"] = name; }),
              std::string("'m.json': files[1].name: expected the name of a "
                          "file beside the manifest, got '") +
                  name + "'");
  EXPECT_EQ(
      errorAfter([](json &j) { j["files"][1]["name"] = "rank-0.safetensors"; }),
      "'m.json': files[1].name: file 'rank-0.safetensors' is there "
      "twice");
}

TEST(Manifest, RejectsTensorsThatAreWrong) {
  auto tensor = [](auto edit) {
    return errorAfter([&](json &j) { edit(j["tensors"][1]); });
  };
  EXPECT_EQ(tensor([](json &t) { t["name"] = "a"; }),
            "'m.json': tensors[1].name: expected ascending names, got 'a' "
            "after 'a'");
  EXPECT_EQ(tensor([](json &t) { t["type"] = "F33"; }),
            "'m.json': tensors[1].type: unknown type 'F33'");
  EXPECT_EQ(tensor([](json &t) { t["shape"] = {4, 0}; }),
            "'m.json': tensors[1].shape: expected 1 to 9223372036854775807, "
            "got 0");
  EXPECT_EQ(tensor([](json &t) {
              t["shape"] = {int64_t(1) << 40, int64_t(1) << 40};
            }),
            "'m.json': tensors[1].shape: expected at most 9223372036854775807 "
            "bytes, got shape [1099511627776, 1099511627776]");
}

TEST(Manifest, RejectsPiecesThatAreWrong) {
  auto piece = [](auto edit) {
    return errorAfter([&](json &j) { edit(j["tensors"][1]["pieces"][2]); });
  };
  const std::string at = "'m.json': tensors[1].pieces[2]";
  EXPECT_EQ(piece([](json &p) { p["file"] = 2; }),
            at + ".file: expected 0 to 1, got 2");
  EXPECT_EQ(piece([](json &p) { p["offset"] = 150 - 23; }),
            at + ": 24 bytes at offset 127 leave the 150 bytes of file "
                 "'rank-1.safetensors'");
  EXPECT_EQ(piece([](json &p) { p["offset"] = INT64_MAX; }),
            at + ": 24 bytes at offset 9223372036854775807 leave the 150 bytes "
                 "of file 'rank-1.safetensors'");
  EXPECT_EQ(piece([](json &p) { p["begin"] = {1}; }),
            at + ": expected 'begin' and 'size' of 2 numbers, got 1 and 2");
  EXPECT_EQ(piece([](json &p) { p["begin"] = {2, 2}; }),
            at + ": begin [2, 2] and size [3, 4] leave the tensor's shape [4, "
                 "6]");
  EXPECT_EQ(piece([](json &p) { p["size"] = {3, INT64_MAX}; }),
            at + ": begin [1, 2] and size [3, 9223372036854775807] leave the "
                 "tensor's shape [4, 6]");
  EXPECT_EQ(piece([](json &p) { p["size"] = {0, 4}; }),
            at + ".size: expected 1 to 9223372036854775807, got 0");
  EXPECT_EQ(piece([](json &p) { p["hash"] = "12"; }),
            at + ".hash: expected 16 hexadecimal digits, got '12'");
}

TEST(Manifest, RejectsElementsInNoPieceOrInTwo) {
  auto pieces = [](auto edit) {
    return errorAfter([&](json &j) { edit(j["tensors"][1]["pieces"]); });
  };
  EXPECT_EQ(pieces([](json &p) { p.erase(2); }),
            "'m.json': tensors[1].pieces: element [1, 2] of tensor 'w' is in "
            "no piece");
  EXPECT_EQ(pieces([](json &p) { p = json::array(); }),
            "'m.json': tensors[1].pieces: element [0, 0] of tensor 'w' is in "
            "no piece");
  EXPECT_EQ(pieces([](json &p) { p[1]["size"] = {2, 4}; }),
            "'m.json': tensors[1].pieces: element [1, 2] of tensor 'w' is in "
            "more than one piece");
  EXPECT_EQ(pieces([](json &p) { p[3]["begin"] = {3, 1}; }),
            "'m.json': tensors[1].pieces: element [3, 0] of tensor 'w' is in "
            "no piece");
  EXPECT_EQ(errorAfter([](json &j) {
              json &number = j["tensors"][0]["pieces"];
              number.push_back(number[0]);
            }),
            "'m.json': tensors[0].pieces: element [] of tensor 'a' is in more "
            "than one piece");
}

TEST(Manifest, DepthAndDimensionsDoNotUseUpTheStack) {
  std::string deep(1000000, '['), end(1000000, ']');
  std::string text = toJson(small());
  std::string version = "\"version\": 2";
  text.replace(text.find(version), version.size(),
               "\"version\": " + deep + end);
  EXPECT_NE(errorOf(text).find("expected at most 256 levels of brackets"),
            std::string::npos);
  EXPECT_EQ(errorAfter([](json &all) {
              json &tensor = all["tensors"][0];
              std::vector<int64_t> ones(100000, 1), zeros(100000, 0);
              tensor["shape"] = ones;
              tensor["pieces"][0]["begin"] = zeros;
              tensor["pieces"][0]["size"] = ones;
            }),
            "'m.json': tensors[0].shape: expected at most 64 dimensions, got "
            "100000");
}
