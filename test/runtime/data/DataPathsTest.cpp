// SPDX-License-Identifier: Apache-2.0
//
// The items of --data.
#include "runtime/data/DataPaths.h"
#include "runtime/Error.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

using Texts = std::vector<std::string>;

static std::string errorOf(const Texts &items) {
  return messageOf<InputError>([&] { findSources(items); });
}

TEST(DataPaths, FilesAndFoldersAreOneSourceInOrder) {
  TemporaryFolder folder;
  std::string file = folder.write("file", "x");
  std::filesystem::create_directory(folder.path("d"));
  for (const char *name :
       {"b.bin", "a.bin", "B.bin", "a.bin.mask", "b.idx", ".hidden", "c:1"})
    folder.write(std::string("d/") + name, "x");
  std::string d = folder.path("d");
  std::vector<SourcePaths> sources = findSources({d, file});
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(sources[0].share, 1);
  EXPECT_EQ(sources[0].files, (Texts{d + "/B.bin", d + "/a.bin", d + "/b.bin",
                                     d + "/c:1", file}));
}

TEST(DataPaths, WeightsAreSharesInLowestTerms) {
  TemporaryFolder folder;
  std::string a = folder.write("a", "x"), b = folder.write("b", "x"),
              c = folder.write("c:2", "x");
  std::vector<SourcePaths> sources =
      findSources({a + ":0.7", b + ":0.25", "synthetic:5e-2"});
  ASSERT_EQ(sources.size(), 3u);
  EXPECT_EQ(sources[0].name, a);
  EXPECT_EQ(sources[0].share, 14);
  EXPECT_EQ(sources[1].share, 5);
  EXPECT_EQ(sources[2].share, 1);
  EXPECT_EQ(sources[2].files, Texts());
  EXPECT_EQ(findSources({a + ":3", b + ":6"})[1].share, 2);
  // A path that is there is not cut; behind it a weight can stand.
  EXPECT_EQ(findSources({c})[0].files, Texts{c});
  EXPECT_EQ(findSources({c + ":0.5", a + ":1"})[0].files, Texts{c});
  // A text that is no number is part of the path.
  EXPECT_EQ(findSources({"x:y"})[0].files, Texts{"x:y"});
  EXPECT_EQ(findSources({"x:1y", "x:"})[0].files, (Texts{"x:1y", "x:"}));
}

TEST(DataPaths, ItemsKeepTheirPathsAndWeights) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("d"));
  std::string d = folder.path("d"), a = folder.write("d/a", "x");
  std::vector<DataItem> items = findItems({d + ":0.70", "synthetic", a});
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].path, d);
  EXPECT_EQ(items[0].weight, "0.70");
  EXPECT_EQ(items[0].files, Texts{a});
  EXPECT_EQ(items[1].files, Texts());
  EXPECT_EQ(items[2].weight, "");
}

TEST(DataPaths, RefusesWeightsThatDoNotFit) {
  TemporaryFolder folder;
  std::string a = folder.write("a", "x"), b = folder.write("b", "x");
  for (const char *weight : {"0", "-1", "2000000", "nan", "inf", "1e999"})
    EXPECT_EQ(errorOf({a + ":" + weight}),
              "'" + a + "': expected a weight from 0.000001 to 1000000, got " +
                  weight);
  EXPECT_EQ(errorOf({a + ":1", b}),
            "expected a weight after each of 2 items of --data or after "
            "none, got 1 weights");
  EXPECT_EQ(errorOf({a, "synthetic"}),
            "expected '--data synthetic' alone or with weights for all of "
            "--data");
  EXPECT_EQ(errorOf({}), "expected --data with at least one file");
}

TEST(DataPaths, RefusesFoldersWithoutFilesAndFilesNamedTwice) {
  TemporaryFolder folder;
  std::string a = folder.write("a", "x"), link = folder.path("link");
  std::filesystem::create_directory(folder.path("d"));
  std::string d = folder.path("d");
  EXPECT_EQ(errorOf({d}), "'" + d + "': the folder has no data files");
  folder.write("d/x.mask", "x");
  EXPECT_EQ(errorOf({d}), "'" + d + "': the folder has no data files");
  std::filesystem::create_directory(folder.path("d/e"));
  EXPECT_EQ(errorOf({d}), "'" + d +
                              "': expected a folder of files, got the "
                              "folder '" +
                              d + "/e' in it");
  EXPECT_EQ(errorOf({a, a}), "'" + a + "': the data has this file twice");
  std::filesystem::create_symlink(a, link);
  EXPECT_EQ(errorOf({a + ":1", link + ":2"}),
            "'" + a + "' and '" + link +
                "': the data has one file under both names");
}
