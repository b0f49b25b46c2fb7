// SPDX-License-Identifier: Apache-2.0
//
// Batches of token sequences: from n to tokens.
#include "runtime/data/TokenBatches.h"
#include "runtime/Error.h"
#include "test/runtime/data/BatchCase.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace rota;
using namespace rota::test;

namespace {

TokenBatchOptions validating(double fraction, int64_t batches = 1) {
  TokenBatchOptions options;
  options.validationFraction = fraction;
  options.validationBatches = batches;
  return options;
}

TokenBatchOptions wide() {
  TokenBatchOptions options;
  options.type = TokenType::Uint32;
  return options;
}

/// The first input of each sequence of batches [0, count).
std::vector<int32_t> starts(const Batches &batches, const Program &program,
                            int64_t count) {
  std::vector<int32_t> first;
  for (int64_t batch = 0; batch < count; ++batch) {
    std::vector<int32_t> all =
        fill(batches, program, Split::Train, batch, false);
    for (size_t i = 0; i < all.size(); i += program.input.shape[1])
      first.push_back(all[i]);
  }
  return first;
}

} // namespace

TEST(TokenBatches, TargetsFollowInputs) {
  TemporaryFolder folder;
  Program program = tokenProgram(2, 16, 3);
  TokenBatches batches(program, {ramp(folder, 5000)}, validating(0.1, 4));
  std::vector<int32_t> in = fill(batches, program, Split::Train, 7, false);
  std::vector<int32_t> out = fill(batches, program, Split::Train, 7, true);
  std::set<int32_t> starts;
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(out[i], (in[i] + 1) % 251);
    if (i % 16 == 0)
      starts.insert(in[i]);
  }
  EXPECT_GT(starts.size(), 3u); // the sequences differ
  EXPECT_NE(in, fill(batches, program, Split::Train, 8, false));
}

TEST(TokenBatches, DoNotDependOnTheSplitIntoMicrobatches) {
  TemporaryFolder folder;
  std::string path = ramp(folder, 5000);
  std::vector<std::vector<int32_t>> results;
  for (int64_t microbatches : {1, 2, 6}) {
    Program program = tokenProgram(6 / microbatches, 16, microbatches);
    TokenBatches batches(program, {path}, {});
    results.push_back(fill(batches, program, Split::Train, 3, false));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

/// Sequence n is the same for every size of a batch.
TEST(TokenBatches, SequencesDependOnTheirNumberAlone) {
  TemporaryFolder folder;
  std::string a = positions(folder, "a", 1000),
              b = positions(folder, "b", 700, 5000);
  std::vector<std::string> items = {a + ":0.7", b + ":0.3"};
  Program small = tokenProgram(2, 8, 1, 10000);
  Program large = tokenProgram(3, 8, 4, 10000);
  std::vector<int32_t> one =
      starts(TokenBatches(small, items, wide()), small, 120);
  EXPECT_EQ(one, starts(TokenBatches(large, items, wide()), large, 20));
}

/// 3 epochs of two files: each token but those at the ends of files is a target
/// once in each, and the order differs.
TEST(TokenBatches, EachTokenIsATargetOnceAnEpoch) {
  TemporaryFolder folder;
  const int64_t length = 8;
  std::string a = positions(folder, "a", 100),   // 12 windows, 3 tokens over
      b = positions(folder, "b", 57, 1000),      // 7 windows, none over
      tiny = positions(folder, "tiny", 8, 2000); // none
  Program program = tokenProgram(19, length, 1, 10000);
  TokenBatches batches(program, {a, b, tiny}, wide());
  std::set<std::vector<int32_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::map<int32_t, int> seen;
    std::vector<int32_t> targets =
        fill(batches, program, Split::Train, epoch, true);
    for (int32_t target : targets)
      ++seen[target];
    for (auto [target, times] : seen)
      EXPECT_EQ(times, 1) << target;
    EXPECT_EQ(seen.size(), 19u * length);
    for (int32_t target = 1001; target < 1057; ++target)
      EXPECT_TRUE(seen.contains(target)) << target;
    for (int32_t target = 4; target < 97; ++target)
      EXPECT_TRUE(seen.contains(target)) << target;
    EXPECT_FALSE(seen.contains(2001));
    orders.insert(targets);
  }
  EXPECT_EQ(orders.size(), 3u);
  EXPECT_NE(batches.describe().find("1 of 3 files has no sequence to train on"),
            std::string::npos)
      << batches.describe();
}

TEST(TokenBatches, WindowsDoNotCrossFiles) {
  TemporaryFolder folder;
  std::vector<std::string> items;
  for (uint32_t i = 0; i < 9; ++i)
    items.push_back(
        positions(folder, "f" + std::to_string(i), 20 + i, 1000 * i));
  Program program = tokenProgram(5, 8, 2, 10000);
  TokenBatches batches(program, items, wide());
  for (int64_t batch = 0; batch < 20; ++batch) {
    std::vector<int32_t> in =
        fill(batches, program, Split::Train, batch, false);
    std::vector<int32_t> out =
        fill(batches, program, Split::Train, batch, true);
    for (size_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(out[i], in[i] + 1);
  }
}

/// Seven of every ten sequences are of the first source, and each source has
/// epochs of its own.
TEST(TokenBatches, MixesSourcesInTheirShares) {
  TemporaryFolder folder;
  std::string a = positions(folder, "a", 57), // 7 windows
      b = positions(folder, "b", 25, 1000);   // 3 windows
  Program program = tokenProgram(10, 8, 1, 10000);
  TokenBatches batches(program, {a + ":0.7", b + ":0.3"}, wide());
  for (int64_t batch = 0; batch < 5; ++batch) {
    std::set<int32_t> targets;
    for (int32_t target : fill(batches, program, Split::Train, batch, true))
      EXPECT_TRUE(targets.insert(target).second) << target;
    EXPECT_EQ(targets.size(), 80u);
    EXPECT_EQ(std::distance(targets.begin(), targets.lower_bound(1000)), 56);
  }
  EXPECT_EQ(batches.describe(),
            a + " 70 % of 57 tokens, " + b + " 30 % of 25 tokens to train on");
}

TEST(TokenBatches, TrainingAndValidationDoNotShareATokenAndReachTheEnds) {
  TemporaryFolder folder;
  // Training bytes are 'a', validation bytes 'b'.
  std::string text = std::string(90, 'a') + std::string(10, 'b');
  Program program = tokenProgram(4, 8, 2);
  TokenBatches batches(program, {folder.write("t", text)}, validating(0.1, 3));
  for (int64_t batch = 0; batch < 20; ++batch)
    for (int32_t token : fill(batches, program, Split::Train, batch, true))
      ASSERT_EQ(token, 'a');
  for (int64_t batch = 0; batch < 3; ++batch)
    for (int32_t token : fill(batches, program, Split::Validation, batch, true))
      ASSERT_EQ(token, 'b');
}

/// Each source of a mixture validates with its last part, in its share of the
/// sequences; the first of them begins the part and the last one ends it.
TEST(TokenBatches, ValidationMixesTheEndsOfTheSources) {
  TemporaryFolder folder;
  std::string a = positions(folder, "a", 1000),
              b = positions(folder, "b", 500, 5000);
  Program program = tokenProgram(4, 8, 1, 10000);
  TokenBatchOptions options = validating(0.1, 5);
  options.type = TokenType::Uint32;
  TokenBatches batches(program, {a + ":3", b + ":1"}, options);
  std::map<bool, std::vector<int32_t>> firsts;
  for (int64_t batch = 0; batch < 5; ++batch) {
    std::vector<int32_t> in =
        fill(batches, program, Split::Validation, batch, false);
    EXPECT_EQ(in, fill(batches, program, Split::Validation, batch, false));
    for (size_t i = 0; i < in.size(); i += 8)
      firsts[in[i] >= 5000].push_back(in[i]);
  }
  EXPECT_EQ(firsts[false].size(), 15u);
  EXPECT_EQ(firsts[true].size(), 5u);
  EXPECT_EQ(firsts[false].front(), 900);
  EXPECT_EQ(firsts[false].back(), 1000 - 9);
  EXPECT_EQ(firsts[true].front(), 5450);
  EXPECT_EQ(firsts[true].back(), 5500 - 9);
}

/// A batch of a validation has the same sequences however many runs of the
/// timeline it takes; behind them nothing counts.
TEST(TokenBatches, ValidationMayHaveBatchesOfItsOwnSize) {
  TemporaryFolder folder;
  std::string path = positions(folder, "a", 1000);
  std::vector<int32_t> expected;
  for (int64_t sequences : {5, 1, 2, 8}) {
    Program program = tokenProgram(sequences, 8, 1, 10000);
    TokenBatchOptions options = validating(0.5, 3);
    options.type = TokenType::Uint32;
    options.validationBatchSize = 5;
    TokenBatches batches(program, {path}, options);
    int64_t runs = runsOf(program, 5);
    EXPECT_EQ(runs, (5 + sequences - 1) / sequences);
    for (bool isTarget : {false, true}) {
      std::vector<int32_t> all;
      for (int64_t run = 0; run < 3 * runs; ++run) {
        auto one = fill(batches, program, Split::Validation, run, isTarget);
        int64_t counting = 8 * std::min(sequences, 5 - run % runs * sequences);
        all.insert(all.end(), one.begin(), one.begin() + counting);
        for (size_t i = counting; i < one.size(); ++i)
          EXPECT_EQ(one[i], isTarget ? -1 : 0);
      }
      if (sequences == 5 && !isTarget)
        expected = all;
      ASSERT_EQ(all.size(), expected.size());
      for (size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(all[i], expected[i] + isTarget);
    }
  }
}

/// All of the data validates, as for data of evaluation alone.
TEST(TokenBatches, MayHaveNoTrainingPart) {
  TemporaryFolder folder;
  Program program = tokenProgram(2, 8, 1, 10000);
  TokenBatchOptions options = validating(1.0, 2);
  options.type = TokenType::Uint32;
  TokenBatches batches(program, {positions(folder, "a", 100)}, options);
  EXPECT_TRUE(batches.hasValidation());
  EXPECT_EQ(fill(batches, program, Split::Validation, 0, false).front(), 0);
  EXPECT_EQ(fill(batches, program, Split::Validation, 1, true).back(), 99);
  EXPECT_EQ(batches.describe(), "100 to validate");
}

TEST(TokenBatches, RefusesDataShorterThanASequence) {
  TemporaryFolder folder;
  Program program = tokenProgram(1, 64, 1);
  auto error = [&](int64_t count, double fraction) {
    return messageOf<InputError>([&] {
      TokenBatches b(program, {ramp(folder, count)}, validating(fraction));
    });
  };
  EXPECT_NE(error(64, 0.0).find("expected at least 65 tokens, got 64"),
            std::string::npos);
  EXPECT_EQ(error(65, 0.0), "(no exception)");
  EXPECT_NE(error(640, 0.1).find("validation part is shorter than a sequence "
                                 "and its last target: expected at least 65 "
                                 "tokens, got 64"),
            std::string::npos);
  std::string half = std::string(40, 'a');
  EXPECT_EQ(
      messageOf<InputError>([&] {
        TokenBatches b(program,
                       {folder.write("x", half), folder.write("y", half)}, {});
      }),
      "each file is shorter than a sequence and its last target: expected "
      "at least 65 tokens in one of 2 files, got 80 in all");
}

/// A byte of the mask belongs to the token as a target, which is one position
/// behind it as an input.
TEST(TokenBatches, MaskedTargetsDoNotCount) {
  TemporaryFolder folder;
  std::string path = positions(folder, "a", 57);
  std::string mask(57, '\1');
  for (size_t i = 0; i < mask.size(); i += 5)
    mask[i] = '\0';
  folder.write("a.mask", mask);
  Program program = tokenProgram(7, 8, 1, 10000);
  TokenBatches batches(program, {path}, wide());
  std::vector<int32_t> in = fill(batches, program, Split::Train, 0, false);
  std::vector<int32_t> out = fill(batches, program, Split::Train, 0, true);
  for (size_t i = 0; i < in.size(); ++i)
    EXPECT_EQ(out[i], (in[i] + 1) % 5 == 0 ? -1 : in[i] + 1);
  folder.write("a.mask", mask.substr(1));
  EXPECT_EQ(
      messageOf<InputError>([&] { TokenBatches b(program, {path}, wide()); }),
      "'" + path + ".mask': expected 57 bytes, one for each token of '" + path +
          "', got 56");
}

/// Seven of eight tokens follow from the one before; parts agree with the
/// whole; no sequence is like another.
TEST(TokenBatches, SyntheticTokensCanBeLearned) {
  Program program = tokenProgram(4, 512, 2, 1000);
  TokenBatches batches(program, {"synthetic"}, validating(0.05, 2));
  EXPECT_EQ(batches.describe(),
            "synthetic tokens to train on, synthetic tokens to validate");
  std::set<std::vector<int32_t>> sequences;
  int64_t follows = 0, all = 0;
  for (Split split : {Split::Train, Split::Validation})
    for (int64_t batch = 0; batch < 4; ++batch) {
      std::vector<int32_t> in = fill(batches, program, split, batch, false);
      std::vector<int32_t> out = fill(batches, program, split, batch, true);
      for (size_t i = 0; i < in.size(); ++i) {
        ASSERT_GE(out[i], 0);
        ASSERT_LT(out[i], 64);
        if (i % 512 != 511)
          ASSERT_EQ(out[i], in[i + 1]);
        follows += out[i] == (in[i] + 1) % 64;
        ++all;
      }
      for (size_t s = 0; s < in.size(); s += 512)
        sequences.emplace(in.begin() + s, in.begin() + s + 512);
    }
  EXPECT_EQ(sequences.size(), 64u);
  EXPECT_NEAR(static_cast<double>(follows) / all, 7.0 / 8 + 1.0 / 512, 0.01);
  Part part{{4, 512}, {1, 300}, {2, 7}, {2, 7}};
  std::vector<int32_t> few(14);
  std::vector<int32_t> whole = fill(batches, program, Split::Train, 0, true);
  batches.fill(Split::Train, 0, {},
               {part, reinterpret_cast<char *>(few.data())});
  for (int64_t s = 0; s < 2; ++s)
    for (int64_t i = 0; i < 7; ++i)
      EXPECT_EQ(few[7 * s + i], whole[512 * (s + 1) + 300 + i]);
}
