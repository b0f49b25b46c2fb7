// SPDX-License-Identifier: Apache-2.0
//
// The elements of a rank, against a count of them one by one.
#include "runtime/program/Part.h"
#include "runtime/program/UpdatePlaces.h"

#include <gtest/gtest.h>

#include <array>

using namespace rota;

namespace {

const std::vector<MeshAxis> kMesh = {
    {"data", 2}, {"stage", 3}, {"fsdp", 3}, {"tensor", 2}};
enum { Data, StageAxis, Fsdp, Tensor };

using Span = std::array<int64_t, 3>;

std::vector<Span> runs(const Part &part) {
  std::vector<Span> all;
  forEachRun(part, 0, part.elements(),
             [&](int64_t whole, int64_t inPart, int64_t count) {
               all.push_back({whole, inPart, count});
             });
  return all;
}

} // namespace

TEST(Part, OfAnUndividedTensorIsOneRun) {
  Part part = partOf({2, 3, 4}, {}, kMesh, {1, 2, 0, 1});
  EXPECT_EQ(runs(part), (std::vector<Span>{{0, 0, 24}}));
  EXPECT_EQ(runs(partOf({}, {}, kMesh, {0, 0, 0, 0})),
            (std::vector<Span>{{0, 0, 1}}));
}

TEST(Part, HasRoomButNoElementsBehindTheEnd) {
  // 5 rows over 3: 2, 2 and 1.
  Part last = partOf({5, 2}, {{Fsdp}}, kMesh, {0, 0, 2, 0});
  EXPECT_EQ(last.elements(), 4);
  EXPECT_EQ(last.validElements(), 2);
  EXPECT_EQ(runs(last), (std::vector<Span>{{8, 0, 2}}));
  // 1 row over 3: the others have none.
  Part none = partOf({1, 2}, {{Fsdp}}, kMesh, {0, 0, 1, 0});
  EXPECT_EQ(none.elements(), 2);
  EXPECT_TRUE(runs(none).empty());
}

TEST(Part, RunsEndWhereTheWholeTensorGoesOn) {
  Part part = partOf({2, 4, 2}, {{}, {Tensor}}, kMesh, {0, 0, 0, 1});
  EXPECT_EQ(runs(part), (std::vector<Span>{{4, 0, 4}, {12, 4, 4}}));
  // A piece of it.
  std::vector<Span> piece;
  forEachRun(part, 3, 5, [&](int64_t whole, int64_t inPart, int64_t count) {
    piece.push_back({whole, inPart, count});
  });
  EXPECT_EQ(piece, (std::vector<Span>{{7, 3, 1}, {12, 4, 1}}));
}

TEST(Part, TheOptimizersCutsWhatStorageLeaves) {
  // 10 rows: tensor 5 and 5, each over fsdp 2, 2, 1, each of these over data.
  Parameter p;
  p.shape = {10, 3};
  p.computeDivision = {{Tensor}};
  p.storageDivision = {{Tensor, Fsdp}};
  p.optimizerDivision = {{Tensor, Fsdp, Data}};
  std::vector<int> owners(30, 0);
  int64_t ranks = 0;
  for (int64_t data = 0; data < 2; ++data)
    for (int64_t fsdp = 0; fsdp < 3; ++fsdp)
      for (int64_t tensor = 0; tensor < 2; ++tensor) {
        Part part = optimizerPart(p, kMesh, {data, 0, fsdp, tensor});
        EXPECT_EQ(part.elements(), 3);
        ranks += part.validElements() > 0;
        forEachRun(part, 0, part.elements(),
                   [&](int64_t whole, int64_t, int64_t count) {
                     for (int64_t i = whole; i < whole + count; ++i)
                       ++owners[i];
                   });
      }
  EXPECT_EQ(owners, std::vector<int>(30, 1));
  EXPECT_EQ(ranks, 10); // the last of fsdp has one row for two ranks of data
  EXPECT_EQ(optimizerPart(p, kMesh, {1, 0, 1, 1}).begin[0], 5 + 2 + 1);
}

// Columns 3 to 7 of 9, of which the second of two ranks has 6 and 7.
TEST(Part, AJoinedParameterLiesInTheTensorOfFiles) {
  Parameter p;
  p.shape = {2, 5};
  p.joined = {"joined", 1, 3, 9};
  p.computeDivision = p.storageDivision = p.optimizerDivision = {{}, {Tensor}};
  Part part = optimizerPart(p, kMesh, {0, 0, 0, 1});
  EXPECT_EQ(part.whole, (std::vector<int64_t>{2, 9}));
  EXPECT_EQ(part.begin, (std::vector<int64_t>{0, 6}));
  EXPECT_EQ(runs(part), (std::vector<Span>{{6, 0, 2}, {15, 3, 2}}));
}

TEST(Part, OneOfTheReplicasIsFirst) {
  Division division = {{Tensor}, {Fsdp}};
  EXPECT_TRUE(isFirstReplica(division, kMesh, {0, 2, 1, 1}));
  EXPECT_FALSE(isFirstReplica(division, kMesh, {1, 2, 1, 1}));
  EXPECT_FALSE(isFirstReplica({}, kMesh, {0, 0, 1, 0}));
}

namespace {

/// A parameter that data and tensor divide for the optimizer alone.
Parameter parameterOf(std::vector<int64_t> shape, Division storage,
                      Division optimizer) {
  Parameter p;
  p.shape = std::move(shape);
  p.storageDivision = std::move(storage);
  p.optimizerDivision = std::move(optimizer);
  return p;
}

bool isInPlace(std::vector<int64_t> shape, Division storage,
               Division optimizer) {
  return hasPartsInPlace(
      parameterOf(std::move(shape), std::move(storage), std::move(optimizer)),
      kMesh);
}

} // namespace

TEST(UpdatePlaces, PartsAreInPlaceWhereTheyAreRuns) {
  EXPECT_TRUE(isInPlace({8, 32}, {}, {{Data, Tensor}}));
  EXPECT_TRUE(isInPlace({6, 32}, {{Fsdp}}, {{Fsdp, Data}}));
  // One expert on each rank: its matrix begins with the dimension that is cut.
  EXPECT_TRUE(isInPlace({3, 8, 32}, {{Fsdp}}, {{Fsdp}, {Data}}));
  // Columns lie apart.
  EXPECT_FALSE(isInPlace({8, 64}, {}, {{}, {Data}}));
  // Padding: 5 rows over 2.
  EXPECT_FALSE(isInPlace({5, 64}, {}, {{Data}}));
  // Parts of 62 bytes in bf16.
  EXPECT_FALSE(isInPlace({2, 31}, {}, {{Data}}));
  // Nothing is divided.
  EXPECT_FALSE(isInPlace({8, 32}, {{Fsdp}}, {{Fsdp}}));
}

TEST(UpdatePlaces, AreThoseOfTheRanksPart) {
  Program program;
  program.mesh = kMesh;
  program.parameters = {parameterOf({8, 32}, {}, {{Data, Tensor}})};
  program.parameters[0].refresh = 0;
  program.parameters[0].compute = ElementType::BF16;
  Update update;
  update.master = 0;
  update.stored = update.updated = 4096;
  update.gradient = 8192;
  update.gradients = {{0, 8192}};
  // Coordinates 1 of data and 1 of tensor: part 3 of 4, of 64 elements.
  EXPECT_EQ(gradientPlace(program, update, {1, 0, 2, 1}), 8192 + 4 * 3 * 64);
  EXPECT_EQ(updatedPlace(program, update, {1, 0, 2, 1}), 4096 + 2 * 3 * 64);
  EXPECT_EQ(gradientPlace(program, update, {0, 1, 1, 1}), 8192 + 4 * 64);
  program.parameters[0].gradient = ElementType::BF16;
  EXPECT_EQ(gradientPlace(program, update, {1, 0, 2, 0}), 8192 + 2 * 2 * 64);
  // Buffers of their own begin with the part.
  update.gradient = 64;
  update.updated = 128;
  EXPECT_EQ(gradientPlace(program, update, {1, 0, 2, 1}), 64);
  EXPECT_EQ(updatedPlace(program, update, {1, 0, 2, 1}), 128);
}
