// SPDX-License-Identifier: Apache-2.0
//
// Names in a folder of checkpoints, and the hash of their bytes.
#include "runtime/Error.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/Hash.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

TEST(CheckpointFolder, StepsHaveNamesThatSort) {
  EXPECT_EQ(checkpointName(7), "step-0000000007");
  EXPECT_LT(checkpointName(99), checkpointName(100));
  for (int64_t step : {0L, 7L, 1234567890L, 12345678901L, INT64_MAX})
    EXPECT_EQ(stepOfCheckpoint(checkpointName(step)), step);
}

TEST(CheckpointFolder, OtherNamesAreNoCheckpoints) {
  for (const char *name :
       {"", "step-", "step-7", "step-00000000070", "step--000000007",
        "step-0000000007x", ".step-0000000007.partial", "lock",
        "step-99999999999999999999"})
    EXPECT_EQ(stepOfCheckpoint(name), std::nullopt) << name;
}

TEST(CheckpointFolder, UnfinishedNamesAreHidden) {
  EXPECT_EQ(partialName(7), ".step-0000000007.partial");
  EXPECT_EQ(removedName(7), ".step-0000000007.old");
  EXPECT_TRUE(isUnfinished(partialName(7)));
  EXPECT_TRUE(isUnfinished(removedName(7)));
  for (const char *name : {"", ".", "..", ".partial", ".old", "step-0000000007",
                           ".x.partial", ".step-0000000007"})
    EXPECT_FALSE(isUnfinished(name)) << name;
}

TEST(CheckpointFolder, ListsCheckpointsAlone) {
  TemporaryFolder folder;
  EXPECT_TRUE(checkpointsIn(folder.path("none")).empty());
  for (const std::string &name :
       {checkpointName(200), checkpointName(30), partialName(300),
        removedName(10), std::string("other")})
    std::filesystem::create_directory(folder.path(name));
  EXPECT_EQ(checkpointsIn(folder.path("")), (std::vector<int64_t>{30, 200}));
  std::string file = folder.write("file", "");
  EXPECT_EQ(messageOf<InputError>([&] { checkpointsIn(file); }),
            "cannot read folder '" + file + "': Not a directory");
}

// Values of the hash's own implementation in another language.
TEST(Hash, IsXxh3) {
  EXPECT_EQ(hashOf(""), 0x2D06800538D394C2U);
  EXPECT_EQ(hashOf("abc"), 0x78AF5F94892F3950U);
  EXPECT_EQ(hashOf(std::string(1000, '\0')), 0x24C1EA6074DD588CU);
}
