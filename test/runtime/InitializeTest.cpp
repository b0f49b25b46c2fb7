// SPDX-License-Identifier: Apache-2.0
//
// What the arenas hold before the first step.
#include "runtime/train/Initialize.h"
#include "runtime/checkpoint/Convert.h"
#include "runtime/data/Batches.h"
#include "runtime/random/Philox.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace rota;
using namespace rota::test;

namespace {

constexpr int64_t kCount = 200000; // elements: several pieces of a fill

/// One parameter of `type` on rank 0 with a compute copy there and one on
/// rank 1.
Program makeProgram(ElementType type, Initializer init) {
  Program program;
  Parameter parameter;
  parameter.name = "w";
  parameter.shape = {kCount};
  parameter.init = init;
  parameter.compute = type;
  parameter.rows = 1;
  program.parameters = {parameter};
  program.stages.resize(2);
  for (Stage &rank : program.stages)
    rank.arenaBytes = 8 * kCount;
  Update update;
  update.master = 0;
  update.stored = update.updated = 4 * kCount;
  update.copies = {{1, 64}};
  program.stages[0].updates = {update};
  return program;
}

} // namespace

TEST(Initialize, FillsMasterAndAllCopies) {
  Initializer normal{Initializer::Kind::Normal, 0.0, 0.02};
  for (ElementType type : {ElementType::F32, ElementType::BF16}) {
    Program program = makeProgram(type, normal);
    Machine machine({&program, nullptr, nullptr}, 3, false);
    initialize(machine, 9, nullptr);
    std::vector<float> expected(kCount);
    RandomStream(9, "w", 0).normal(0, kCount, 0.0, 0.02, expected.data());
    auto master = machine.at<float>(0, 0);
    EXPECT_EQ(std::vector<float>(master, master + kCount), expected);
    for (Place place : {Place{0, 4 * kCount}, Place{1, 64}})
      for (int64_t i = 0; i < kCount; ++i)
        if (type == ElementType::F32)
          ASSERT_EQ(machine.at<float>(place)[i], expected[i]);
        else
          ASSERT_EQ(machine.at<uint16_t>(place)[i], toBf16(expected[i]));
  }
}

TEST(Initialize, KnowsUniformAndConstant) {
  Program program =
      makeProgram(ElementType::F32, {Initializer::Kind::Constant, 1.5, 0.0});
  Machine machine({&program, nullptr, nullptr}, 1, false);
  initialize(machine, 1, nullptr);
  EXPECT_EQ(machine.at<float>(0, 0)[kCount - 1], 1.5f);
  program.parameters[0].init = {Initializer::Kind::Uniform, 2.0, 3.0};
  initialize(machine, 1, nullptr);
  EXPECT_GE(machine.at<float>(0, 0)[7], 2.0f);
  EXPECT_LE(machine.at<float>(0, 0)[7], 3.0f);
  EXPECT_NE(machine.at<float>(0, 0)[7], machine.at<float>(0, 0)[8]);
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
  Machine machine({&program, nullptr, nullptr}, 2, false);
  initialize(machine, 1, &weights);
  for (int64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(machine.at<float>(1, 64)[i], static_cast<float>(i % 100));
}

TEST(Initialize, FillsRotaryTables) {
  Program program = makeProgram(ElementType::F32, {});
  program.stages[1].tables = {{128, 5, 2.0, {1.0, 0.25}}};
  Machine machine({&program, nullptr, nullptr}, 1, false);
  program.stages[0].updates[0].copies.clear();
  initialize(machine, 1, nullptr);
  const float *table = machine.at<float>(1, 128); // [position, frequency, 2]
  EXPECT_EQ(table[0], 2.0f);
  EXPECT_EQ(table[1], 0.0f);
  EXPECT_EQ(table[(3 * 2 + 1) * 2], static_cast<float>(2.0 * std::cos(0.75)));
  EXPECT_EQ(table[(4 * 2 + 0) * 2 + 1],
            static_cast<float>(2.0 * std::sin(4.0)));
}

TEST(NormalBatches, AreRoundedForBf16Models) {
  Program program;
  program.input = {ElementType::F32, {1, 3, 5}};
  program.target = {ElementType::BF16, {1, 3, 5}};
  std::vector<uint16_t> narrow(15);
  std::vector<float> wide(15);
  NormalBatches batches(program, 1);
  batches.fill(Split::Train, 0, 0, nullptr,
               reinterpret_cast<char *>(narrow.data()));
  program.target.type = ElementType::F32;
  batches.fill(Split::Train, 0, 0, nullptr,
               reinterpret_cast<char *>(wide.data()));
  for (int i = 0; i < 15; ++i)
    EXPECT_EQ(narrow[i], toBf16(wide[i]));
}
