// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/collective/CommunicatorChecks.h"

#include <gtest/gtest.h>
#include <stdexcept>

namespace rota::test {

Collective gather(int64_t size) {
  Collective collective;
  collective.kind = Collective::Kind::AllGather;
  collective.axes = {0};
  collective.size = size;
  return collective;
}

Collective addParts(int64_t size) {
  Collective collective = gather(size);
  collective.kind = Collective::Kind::ReduceScatter;
  collective.accumulate = true;
  return collective;
}

RankGroup allRanks(const Communicator &communicator) {
  return groupOf({{"all", communicator.size()}}, communicator.rank(), {0});
}

std::string failureOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "nothing was thrown";
}

void expectFailureWakesAllThatWait(Communicator &communicator, void *message) {
  if (communicator.rank() == 2) {
    communicator.fail("rank 2: the disk is full");
    communicator.fail("rank 2: and on fire");
  }
  EXPECT_EQ(failureOf([&] {
              communicator.wait(communicator.receive(
                  Stream::Forward, (communicator.rank() + 1) % 3, message, 4));
            }),
            "rank 2: the disk is full");
}

void expectDisagreementFailsTheRun(Communicator &communicator, void *part,
                                   void *whole) {
  communicator.setPosition("chunk 3, UNSHARD");
  int64_t size = communicator.rank() == 0 ? 8 : 6;
  std::string failure = failureOf([&] {
    communicator.run(Stream::Weights, gather(size), allRanks(communicator),
                     part, whole);
  });
  // Either may have arrived first.
  EXPECT_TRUE(
      failure == "rank 1: chunk 3, UNSHARD: expected all-gather of [1, 8, "
                 "1] f32, as other ranks started, got all-gather of [1, 6, "
                 "1] f32" ||
      failure == "rank 0: chunk 3, UNSHARD: expected all-gather of [1, 6, "
                 "1] f32, as other ranks started, got all-gather of [1, 8, "
                 "1] f32")
      << failure;
}

} // namespace rota::test
