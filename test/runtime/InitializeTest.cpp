// SPDX-License-Identifier: Apache-2.0
//
// The contents of the arenas before the first step.
#include "runtime/train/state/Initialize.h"
#include "runtime/data/Batches.h"
#include "runtime/program/Convert.h"
#include "runtime/random/Philox.h"
#include "test/runtime/LineModel.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace rota;
using namespace rota::test;

namespace {

constexpr int64_t kCount = 200000; // elements: several pieces of a fill

/// One parameter of `type` on stage 0 with a compute copy there and one on
/// stage 1.
Program makeProgram(ElementType type, Initializer init) {
  Program program;
  Parameter parameter;
  parameter.name = "w";
  parameter.shape = {kCount};
  parameter.init = init;
  parameter.compute = type;
  parameter.rows = 1;
  program.parameters = {parameter};
  program.mesh = {{"stage", 2}};
  program.stages.resize(2);
  for (Stage &stage : program.stages)
    stage.arenaBytes = 8 * kCount;
  Update update;
  update.master = 0;
  update.stored = update.updated = 4 * kCount;
  update.copies = {{1, 64}};
  program.stages[0].updates = {update};
  return program;
}

/// The matrix [5, 8] of makeProgram on one stage: its columns over tensor, its
/// rows at rest over fsdp, each of these parts over data.
Program makeDivided(ElementType type) {
  Program program = makeProgram(type, {Initializer::Kind::Normal, 0.0, 0.02});
  program.mesh = {{"data", 2}, {"stage", 1}, {"fsdp", 2}, {"tensor", 2}};
  program.stages.resize(1);
  program.stages[0].arenaBytes = 4096;
  Parameter &p = program.parameters[0];
  p.shape = {5, 8};
  p.computeDivision = {{}, {3}};
  p.storageDivision = {{2}, {3}};
  p.optimizerDivision = {{2}, {3, 0}};
  Collective gather;
  gather.axes = {0};
  gather.type = type;
  gather.outer = 3; // rows of a part
  gather.size = 4;  // columns
  program.collectives = {gather};
  p.refresh = 0;
  Update update;
  update.master = 0;
  update.updated = type == ElementType::F32 ? 0 : 1024;
  update.stored = 2048;
  program.stages[0].updates = {update};
  return program;
}

void start(LocalRanks &ranks, uint64_t seed, const Weights *weights) {
  ranks.run([&](Rank &rank) { initialize(rank, seed, weights); });
}

float element(Rank &rank, int64_t offset, int64_t i, ElementType type) {
  return type == ElementType::F32
             ? rank.read<float>(offset + 4 * i, 1)[0]
             : fromBf16(rank.read<uint16_t>(offset + 2 * i, 1)[0]);
}

} // namespace

TEST(Initialize, FillsMasterAndAllCopies) {
  Initializer normal{Initializer::Kind::Normal, 0.0, 0.02};
  for (ElementType type : {ElementType::F32, ElementType::BF16}) {
    Program program = makeProgram(type, normal);
    LocalRanks ranks({&program, nullptr, nullptr}, 3);
    start(ranks, 9, nullptr);
    std::vector<float> expected(kCount);
    RandomStream(9, "w", 0).normal(0, kCount, 0.0, 0.02, expected.data());
    auto master = addressOf<float>(ranks.at(0), 0);
    EXPECT_EQ(std::vector<float>(master, master + kCount), expected);
    for (ArenaAddress place :
         {ArenaAddress{0, 4 * kCount}, ArenaAddress{1, 64}})
      for (int64_t i = 0; i < kCount; ++i)
        ASSERT_EQ(element(ranks.at(place.stage), place.offset, i, type),
                  type == ElementType::F32 ? expected[i]
                                           : fromBf16(toBf16(expected[i])));
  }
}

TEST(Initialize, FrozenMasterIsWhatTasksRead) {
  Program program =
      makeProgram(ElementType::BF16, {Initializer::Kind::Normal, 0.0, 0.02});
  program.parameters[0].isFrozen = true;
  Update &update = program.stages[0].updates[0];
  update.master = update.stored;
  LocalRanks ranks({&program, nullptr, nullptr}, 3);
  start(ranks, 9, nullptr);
  std::vector<float> expected(kCount);
  RandomStream(9, "w", 0).normal(0, kCount, 0.0, 0.02, expected.data());
  for (ArenaAddress place : {ArenaAddress{0, 4 * kCount}, ArenaAddress{1, 64}})
    for (int64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(
          element(ranks.at(place.stage), place.offset, i, ElementType::BF16),
          fromBf16(toBf16(expected[i])));
}

TEST(Initialize, EachRankDrawsItsPart) {
  std::vector<float> whole(40);
  RandomStream(4, "w", 0).normal(0, 40, 0.0, 0.02, whole.data());
  for (ElementType type : {ElementType::F32, ElementType::BF16}) {
    Program program = makeDivided(type);
    LocalRanks ranks({&program, nullptr, nullptr}, 2);
    start(ranks, 4, nullptr);
    for (int r = 0; r < ranks.count(); ++r) {
      Rank &rank = ranks.at(r);
      int64_t data = rank.coordinates()[0], fsdp = rank.coordinates()[2],
              tensor = rank.coordinates()[3];
      int64_t rows = fsdp ? 2 : 3; // rows of 5
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 4; ++j) {
          float expected =
              i < rows ? whole[(3 * fsdp + i) * 8 + 4 * tensor + j] : 0.0f;
          if (j / 2 == data)
            ASSERT_EQ(rank.read<float>(0, 6)[i * 2 + j % 2], expected);
          if (type == ElementType::BF16)
            expected = fromBf16(toBf16(expected));
          ASSERT_EQ(element(rank, 2048, i * 4 + j, type), expected);
        }
    }
  }
}

// The parts of a joined tensor draw what the whole would have in their place.
TEST(Initialize, JoinedParametersDrawTheirRange) {
  Program program;
  program.mesh = {{"stage", 1}, {"tensor", 2}};
  Parameter p;
  p.shape = {5, 4};
  p.init = {Initializer::Kind::Normal, 0.0, 0.02};
  p.rows = 5;
  p.computeDivision = p.storageDivision = p.optimizerDivision = {{}, {1}};
  program.stages.resize(1);
  program.stages[0].arenaBytes = 256;
  for (int i : {0, 1}) {
    p.name = "part " + std::to_string(i);
    p.joined = {"w", 1, 4 * i, 8};
    program.parameters.push_back(p);
    Update update;
    update.parameter = i;
    update.master = update.updated = update.stored = 128 * i;
    program.stages[0].updates.push_back(update);
  }
  std::vector<float> whole(40);
  RandomStream(4, "w", 0).normal(0, 40, 0.0, 0.02, whole.data());
  LocalRanks ranks({&program, nullptr, nullptr}, 2);
  start(ranks, 4, nullptr);
  for (int r : {0, 1})
    for (int part : {0, 1})
      for (int i = 0; i < 10; ++i)
        EXPECT_EQ(ranks.at(r).read<float>(128 * part, 10)[i],
                  whole[i / 2 * 8 + 4 * part + 2 * r + i % 2]);
}

TEST(Initialize, KnowsUniformAndConstant) {
  Program program =
      makeProgram(ElementType::F32, {Initializer::Kind::Constant, 1.5, 0.0});
  LocalRanks ranks({&program, nullptr, nullptr}, 1);
  start(ranks, 1, nullptr);
  const float *values = addressOf<float>(ranks.at(0), 0);
  EXPECT_EQ(values[kCount - 1], 1.5f);
  program.parameters[0].init = {Initializer::Kind::Uniform, 2.0, 3.0};
  start(ranks, 1, nullptr);
  EXPECT_GE(values[7], 2.0f);
  EXPECT_LE(values[7], 3.0f);
  EXPECT_NE(values[7], values[8]);
}

TEST(Initialize, TakesWeightsInHalfPrecision) {
  TemporaryFolder folder;
  std::vector<uint16_t> values(kCount);
  for (int64_t i = 0; i < kCount; ++i)
    values[i] = toBf16(static_cast<float>(i % 100));
  writeSafetensors(folder.path("model.safetensors"),
                   {{"w",
                     {"BF16",
                      {kCount},
                      reinterpret_cast<char *>(values.data()),
                      2 * kCount}}});
  Program program = makeProgram(ElementType::F32, {});
  Weights weights(folder.path("model.safetensors"), program);
  LocalRanks ranks({&program, nullptr, nullptr}, 2);
  start(ranks, 1, &weights);
  for (int64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(addressOf<float>(ranks.at(1), 64)[i],
              static_cast<float>(i % 100));
}

TEST(Initialize, EachRankReadsItsPartOfWeights) {
  TemporaryFolder folder;
  std::vector<float> values(40);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i + 1);
  writeSafetensors(
      folder.path("w"),
      {{"w", {"F32", {5, 8}, reinterpret_cast<char *>(values.data()), 160}}});
  Program program = makeDivided(ElementType::F32);
  Weights weights(folder.path("w"), program);
  LocalRanks ranks({&program, nullptr, nullptr}, 2);
  start(ranks, 1, &weights);
  // data 1, fsdp 1, tensor 0: columns 2 and 3 of rows 3 and 4.
  const float *part = addressOf<float>(ranks.at(6), 0);
  EXPECT_EQ(std::vector<float>(part, part + 6),
            (std::vector<float>{27, 28, 35, 36, 0, 0}));
}

TEST(Initialize, FillsConstants) {
  Program program = makeDivided(ElementType::F32);
  program.stages[0].tables = {{3072, 5, 2.0, {1.0, 0.25}}};
  program.stages[0].shardOffsets = {{3584, {3, 0}, 100}};
  program.stages[0].step.constants = 3584;
  program.constantTensors = {{64, "first"}, {128, "second"}};
  LocalRanks ranks({&program, nullptr, nullptr}, 1);
  start(ranks, 1, nullptr);
  const float *table =
      addressOf<float>(ranks.at(1), 3072); // [position, frequency, 2]
  EXPECT_EQ(table[0], 2.0f);
  EXPECT_EQ(table[1], 0.0f);
  EXPECT_EQ(table[(3 * 2 + 1) * 2], static_cast<float>(2.0 * std::cos(0.75)));
  EXPECT_EQ(table[(4 * 2 + 0) * 2 + 1],
            static_cast<float>(2.0 * std::sin(4.0)));
  for (int r = 0; r < ranks.count(); ++r) {
    const std::vector<int64_t> &at = ranks.at(r).coordinates();
    EXPECT_EQ(*addressOf<int32_t>(ranks.at(r), 3584),
              100 * (2 * at[3] + at[0]));
    EXPECT_STREQ(addressOf<char>(ranks.at(r), 3584 + 64), "first");
    EXPECT_STREQ(addressOf<char>(ranks.at(r), 3584 + 128), "second");
  }
}

TEST(NormalBatches, AreRoundedForBf16Models) {
  Program program;
  program.input = {ElementType::F32, {1, 3, 5}};
  program.target = {ElementType::BF16, {1, 3, 5}};
  std::vector<uint16_t> narrow(15);
  std::vector<float> wide(15);
  NormalBatches batches(program, 1);
  Part part = partOf(program.target.shape, {}, {}, {});
  batches.fill(Split::Train, 0, {},
               {part, reinterpret_cast<char *>(narrow.data())});
  program.target.type = ElementType::F32;
  batches.fill(Split::Train, 0, {},
               {part, reinterpret_cast<char *>(wide.data())});
  for (int i = 0; i < 15; ++i)
    EXPECT_EQ(narrow[i], toBf16(wide[i]));
}
