// SPDX-License-Identifier: Apache-2.0
//
// A rank of the tests of the MPI communicator; mpirun or srun starts several.
//   mpi-ranks [gtest options]     random collectives against the reference
//   mpi-ranks fail                rank 1 fails, the others wait for it
//   mpi-ranks free                rank 1 fails and unmaps memory in use
//   mpi-ranks leave               rank 1 leaves with an exception
//   mpi-ranks die FOLDER          all wait for rank 1, which waits for ever;
//                                 each writes its process number to FOLDER/rank
#include "runtime/Error.h"
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "test/runtime/collective/RandomCollective.h"
#include "test/runtime/collective/RandomRows.h"

#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace rota;
using namespace rota::test;

namespace {

class Body : public testing::Test {
public:
  explicit Body(std::function<void()> body) : body(std::move(body)) {}
  void TestBody() override { body(); }

private:
  std::function<void()> body;
};

void addTest(const char *name, const std::function<void()> &body) {
  testing::RegisterTest("MpiCommunicator", name, nullptr, nullptr, __FILE__,
                        __LINE__, [body] { return new Body(body); });
}

void addTests(Communicator &communicator) {
  addTest("EveryCollectiveGivesTheReference", [&] {
    for (uint64_t seed : {1, 2, 3})
      exchangeRandomly(communicator, seed, 60, 200);
  });
  addTest("LargeCollectivesGiveTheReference",
          [&] { exchangeRandomly(communicator, 12, 10, 600000); });
  addTest("FilledRowsTravelAndOthersAreCleared", [&] {
    exchangeRowsRandomly(communicator, 1, 40, 30);
    exchangeRowsRandomly(communicator, 2, 3, 300000);
  });
  addTest("TimesLeaveOutTheWaitForOtherRanks", [&] {
    if (communicator.size() > 2) // and no core is free
      return;
    constexpr double kLate = 1.0; // seconds
    float value = 0.0f;
    double from = communicator.now();
    if (communicator.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(kLate));
      communicator.wait(
          communicator.send(Stream::Forward, 1, &value, sizeof value));
      return;
    }
    TransferTime span = communicator.wait(
        communicator.receive(Stream::Forward, 0, &value, sizeof value));
    EXPECT_LT(span.end - span.begin, kLate / 2);
    EXPECT_GT(span.end - from, kLate / 2);
  });
  addTest("CopiesRunBesideTheCaller", [&] {
    std::vector<char> large(3 << 20, 2), copy(large.size());
    communicator.wait(
        communicator.copy(large.data(), copy.data(), large.size()));
    EXPECT_EQ(large, copy);
  });
}

/// All ranks wait for a message of rank 1.
void waitForRankOne(Communicator &communicator) {
  communicator.setPosition(fmt::format("stage {}, chunk 3, microbatch 2, "
                                       "RECV_F from rank 1",
                                       communicator.rank()));
  float value = 0.0f;
  communicator.wait(
      communicator.receive(Stream::Forward, 1, &value, sizeof value));
}

void fail(Communicator &communicator) {
  if (communicator.rank() == 1)
    communicator.fail("rank 1: the disk is full");
  waitForRankOne(communicator);
}

/// Rank 1 fails while it copies, and while rank 0 sends to it.
void freeAfterFailure(Communicator &communicator) {
  constexpr int64_t kBytes = 64 << 20;
  auto *memory =
      static_cast<char *>(mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (communicator.rank() == 0)
    communicator.wait(communicator.send(Stream::Forward, 1, memory, kBytes));
  if (communicator.rank() == 1) {
    communicator.receive(Stream::Forward, 0, memory, kBytes);
    communicator.copy(memory, memory + kBytes, kBytes);
    communicator.fail("rank 1: the disk is full");
    munmap(memory, 2 * kBytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  waitForRankOne(communicator);
}

void leave(Communicator &communicator) {
  communicator.setPosition("stage 1, chunk 0, microbatch 0, F");
  if (communicator.rank() == 1)
    throw RunError("rank 1 throws");
  waitForRankOne(communicator);
}

void die(Communicator &communicator, const std::string &folder) {
  std::string path = fmt::format("{}/{}", folder, communicator.rank());
  if (FILE *file = std::fopen((path + ".new").c_str(), "w")) {
    fmt::print(file, "{}\n", getpid());
    std::fclose(file);
    std::rename((path + ".new").c_str(), path.c_str());
  }
  if (communicator.rank() == 1) {
    communicator.setPosition("stage 1, chunk 5, microbatch 2, F");
    while (true)
      std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  waitForRankOne(communicator);
}

int run(int argc, char **argv) {
  std::unique_ptr<Communicator> communicator = makeMpiCommunicator();
  std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "fail")
    fail(*communicator);
  else if (mode == "free")
    freeAfterFailure(*communicator);
  else if (mode == "leave")
    leave(*communicator);
  else if (mode == "die" && argc > 2)
    die(*communicator, argv[2]);
  else {
    addTests(*communicator);
    if (communicator->rank() == 0)
      fmt::print("{} ranks\n", communicator->size());
    return RUN_ALL_TESTS();
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    return run(argc, argv);
  } catch (const RunError &error) {
    fmt::print(stderr, "{}\n", error.what());
    return kExitRunFailed;
  }
}
