// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/Communicator.h"
#include "runtime/program/Part.h"

#include <gtest/gtest.h>

using namespace rota;

static const std::vector<MeshAxis> kMesh = {
    {"data", 2}, {"stage", 3}, {"tensor", 2}};

TEST(RankGroup, RanksAreRowMajorOverTheMesh) {
  EXPECT_EQ(coordinatesOf(kMesh, 0), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(coordinatesOf(kMesh, 9), (std::vector<int64_t>{1, 1, 1}));
  for (int rank = 0; rank < 12; ++rank)
    EXPECT_EQ(rankOf(kMesh, coordinatesOf(kMesh, rank)), rank);
}

TEST(RankGroup, TheFirstAxisIsSlowest) {
  RankGroup group = groupOf(kMesh, 9, {0, 2});
  EXPECT_EQ(group.ranks, (std::vector<int>{2, 3, 8, 9}));
  EXPECT_EQ(group.index, 3);
  group = groupOf(kMesh, 8, {2, 0});
  EXPECT_EQ(group.ranks, (std::vector<int>{2, 8, 3, 9}));
  EXPECT_EQ(group.index, 1);
  EXPECT_EQ(group.sizes, (std::vector<int64_t>{2, 2}));
}

TEST(RankGroup, WithoutAxesIsTheRankAlone) {
  RankGroup group = groupOf(kMesh, 5, {});
  EXPECT_EQ(group.ranks, std::vector<int>{5});
  EXPECT_EQ(group.index, 0);
}
