// SPDX-License-Identifier: Apache-2.0
//
// The file of algorithms: what is written is read, by any number of users at
// once, and what is damaged is not.
#include "runtime/device/cuda/AlgorithmFile.h"
#include "test/runtime/EnvironmentVariable.h"
#include "test/runtime/TemporaryFolder.h"

#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace rota::cuda;
using Variable = rota::test::EnvironmentVariable;
using rota::test::TemporaryFolder;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

namespace {

BlasLtAlgorithm algorithmOf(uint64_t number) {
  return {{number, ~number, 0, 1, 2, 3, uint64_t(1) << 63, 0xabcdef}};
}

std::string warningOf(const std::string &path) {
  return "warning: '" + path + "' is damaged or unreadable, and is ignored\n";
}

TEST(AlgorithmFile, HasItsPlaceInTheUsersCache) {
  Variable home("HOME", "/me"), cache("XDG_CACHE_HOME", nullptr),
      file("ROTA_ALGORITHM_FILE", nullptr);
  EXPECT_EQ(defaultAlgorithmFile(), "/me/.cache/rota/cublaslt-algorithms");
  Variable otherCache("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(defaultAlgorithmFile(), "/cache/rota/cublaslt-algorithms");
  Variable none("ROTA_ALGORITHM_FILE", "");
  EXPECT_EQ(defaultAlgorithmFile(), "");
}

TEST(AlgorithmFile, ReadsWhatWasWritten) {
  TemporaryFolder folder;
  std::string path = folder.path("algorithms");
  AlgorithmFile file(path);
  EXPECT_EQ(file.find("one"), std::nullopt);
  EXPECT_EQ(file.keep("one", algorithmOf(1)), algorithmOf(1));
  EXPECT_EQ(file.keep("two, of spaces", algorithmOf(2)), algorithmOf(2));
  AlgorithmFile again(path);
  EXPECT_EQ(again.find("one"), algorithmOf(1));
  EXPECT_EQ(again.find("two, of spaces"), algorithmOf(2));
  EXPECT_EQ(folder.count(), 2) << "the file and its lock";
}

TEST(AlgorithmFile, IgnoresAndReplacesADamagedFile) {
  TemporaryFolder folder;
  std::string path = folder.path("algorithms");
  AlgorithmFile(path).keep("one", algorithmOf(1));
  std::string whole = folder.read("algorithms");
  std::string changed = whole;
  changed[changed.find("one")] = 'O';
  std::string changedDigit = whole;
  changedDigit[changedDigit.find('\t') + 3] ^= 1;
  for (const std::string &damaged :
       {std::string(), whole.substr(0, whole.size() - 1),
        whole.substr(0, whole.size() / 2), changed, changedDigit, whole + "\n",
        std::string("rota cublasLt algorithms 2\n")}) {
    folder.write("algorithms", damaged);
    CaptureStderr();
    AlgorithmFile file(path);
    EXPECT_EQ(file.find("one"), std::nullopt) << damaged;
    EXPECT_EQ(file.keep("one", algorithmOf(2)), algorithmOf(2));
    EXPECT_EQ(GetCapturedStderr(), warningOf(path));
    EXPECT_EQ(AlgorithmFile(path).find("one"), algorithmOf(2));
  }
}

TEST(AlgorithmFile, IsClosedWhereItCannotBeWritten) {
  TemporaryFolder folder;
  std::string path = folder.path("folder");
  std::filesystem::create_directory(path);
  CaptureStderr();
  AlgorithmFile file(path);
  EXPECT_EQ(file.keep("one", algorithmOf(1)), std::nullopt);
  EXPECT_EQ(file.find("one"), std::nullopt);
  EXPECT_FALSE(file.isOpen());
  EXPECT_EQ(file.keep("one", algorithmOf(1)), std::nullopt);
  EXPECT_EQ(GetCapturedStderr(),
            warningOf(path) + "warning: algorithms are not kept in '" + path +
                "': cannot write '" + path + "': Is a directory\n");
}

TEST(AlgorithmFile, UsersAtOnceAgree) {
  TemporaryFolder folder;
  std::string path = folder.path("algorithms");
  constexpr int kUsers = 3, kKeys = 6;
  std::vector<std::optional<BlasLtAlgorithm>> kept(kUsers * kKeys);
  std::vector<std::thread> users;
  for (int user = 0; user < kUsers; ++user)
    users.emplace_back([&, user] {
      AlgorithmFile file(path);
      for (int key = 0; key < kKeys; ++key) {
        kept[user * kKeys + key] =
            file.keep(fmt::format("key {}", key), algorithmOf(100 + user));
        file.keep(fmt::format("key {} of {}", key, user), algorithmOf(user));
      }
    });
  for (std::thread &user : users)
    user.join();
  AlgorithmFile file(path);
  for (int user = 0; user < kUsers; ++user) {
    for (int key = 0; key < kKeys; ++key) {
      EXPECT_EQ(kept[user * kKeys + key], kept[key]);
      EXPECT_EQ(file.find(fmt::format("key {}", key)), kept[key]);
      EXPECT_EQ(file.find(fmt::format("key {} of {}", key, user)),
                algorithmOf(user));
    }
  }
}

} // namespace
