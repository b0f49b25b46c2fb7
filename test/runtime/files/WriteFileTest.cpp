// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/WriteFile.h"
#include "runtime/Error.h"
#include "test/runtime/TemporaryFolder.h"

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace rota;
using namespace rota::test;
namespace fs = std::filesystem;

namespace {

TEST(WriteFile, LeavesNothingHalfWritten) {
  // A limit on the size of files fails as a full disk does.
  TemporaryFolder folder;
  folder.write("kept", "old");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string error = messageOf<RunError>(
      [&] { writeFile(folder.path("kept"), {std::string(2000, 'x')}); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error,
            "cannot write '" + folder.path("kept") + "': File too large");
  EXPECT_EQ(folder.read("kept"), "old");
  EXPECT_EQ(folder.count(), 1);
}

TEST(WriteFile, PlacesThatCannotBeWrittenAreFoundEarly) {
  TemporaryFolder folder;
  EXPECT_NE(messageOf<InputError>([&] {
              checkWritable(folder.path("no/file"));
            }).find("No such file or directory"),
            std::string::npos);
  EXPECT_NE(messageOf<InputError>([&] {
              checkWritable(folder.path(""));
            }).find("it is a folder"),
            std::string::npos);
  fs::create_symlink("loop", folder.path("loop"));
  EXPECT_NE(messageOf<InputError>([&] {
              checkWritable(folder.path("loop/file"));
            }).find("cannot write '"),
            std::string::npos);
  fs::remove(folder.path("loop"));
  checkWritable(folder.path("fine"));
  EXPECT_EQ(folder.count(), 0);
}

TEST(WriteFile, DevicesAreWrittenInPlace) {
  checkWritable("/dev/null");
  writeFile("/dev/null", {"text"});
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(tryWriteFile("/dev/full", "text"),
            "cannot write '/dev/full': No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(WriteFile, PipesTakeBytesInOrder) {
  TemporaryFolder folder;
  std::string path = folder.path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  checkWritable(path); // does not wait for a reader
  std::string read;
  std::thread reader([&] { read = folder.read("pipe"); });
  writeFile(path, {"one ", "two"});
  reader.join();
  EXPECT_EQ(read, "one two");
  EXPECT_TRUE(fs::is_fifo(path));

  reader = std::thread([&] { read = folder.read("pipe"); });
  EXPECT_EQ(messageOf<RunError>([&] { PendingFile(path).write(1, "late"); }),
            "cannot write '" + path + "': Illegal seek");
  reader.join();
}

TEST(WriteFile, LinksStayAndTheirTargetIsReplaced) {
  TemporaryFolder folder;
  fs::create_directory(folder.path("other"));
  folder.write("other/file", "old");
  fs::create_symlink("other/file", folder.path("second"));
  fs::create_symlink(folder.path("second"), folder.path("first"));
  fs::create_symlink("other/none", folder.path("dangling"));
  EXPECT_EQ(tryWriteFile(folder.path("first"), "new"), "");
  EXPECT_EQ(tryWriteFile(folder.path("dangling"), "made"), "");
  EXPECT_EQ(folder.read("other/file"), "new");
  EXPECT_EQ(folder.read("other/none"), "made");
  for (const char *link : {"first", "second", "dangling"})
    EXPECT_TRUE(fs::is_symlink(folder.path(link))) << link;
  EXPECT_EQ(folder.count(), 4); // nothing beside the links

  fs::create_symlink("loop", folder.path("loop"));
  EXPECT_EQ(tryWriteFile(folder.path("loop"), "text"),
            "cannot write '" + folder.path("loop") +
                "': Too many levels of symbolic links");
}

TEST(WriteFile, FilesInMemoryAreWrittenInPlace) {
  int file = memfd_create("file", MFD_CLOEXEC);
  std::string path = "/proc/self/fd/" + std::to_string(file);
  EXPECT_EQ(tryWriteFile(path, "text"), "");
  char text[5] = {};
  EXPECT_EQ(pread(file, text, 4, 0), 4);
  EXPECT_STREQ(text, "text");
  close(file);
}

TEST(WriteFile, OpenFilesAreWrittenInPlace) {
  TemporaryFolder folder;
  int file = open(folder.write("open", "old").c_str(), O_RDONLY);
  EXPECT_EQ(tryWriteFile("/proc/self/fd/" + std::to_string(file), "new"), "");
  char text[4] = {};
  EXPECT_EQ(pread(file, text, 3, 0), 3);
  EXPECT_STREQ(text, "new"); // the same file, not another of its name
  close(file);
}

TEST(WriteFile, PlantedLinksAreNotFollowed) {
  TemporaryFolder folder;
  folder.write("victim", "precious");
  // The first temporary name of a file of this process beside its path.
  std::string name = "out." + std::to_string(getpid());
  fs::create_symlink("victim", folder.path(name + ".part"));
  fs::create_symlink("victim", folder.path(name + "-0.part"));
  EXPECT_EQ(tryWriteFile(folder.path("out"), "text"), "");
  EXPECT_EQ(folder.read("victim"), "precious");
  EXPECT_EQ(folder.read("out"), "text");
  EXPECT_EQ(folder.count(), 4);
}

} // namespace
