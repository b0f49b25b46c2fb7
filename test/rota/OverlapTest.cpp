// SPDX-License-Identifier: Apache-2.0
//
// Exposed times of transfers beside work.
#include "ir/rota/cost/Overlap.h"

#include <gtest/gtest.h>

using namespace mlir::rota;

namespace {

/// A step with so much work that waits for `waits`.
OverlapStep work(double seconds, llvm::SmallVector<int, 2> waits = {}) {
  return {seconds, 0, waits};
}
OverlapStep transfer(double seconds, llvm::SmallVector<int, 2> waits = {},
                     double slowsWork = 0) {
  return {0, seconds, waits, slowsWork};
}

TEST(Overlap, WorkBeforeTheFirstUseHides) {
  std::vector<OverlapStep> steps{transfer(10), work(4), work(1, {0}),
                                 work(1, {0})};
  EXPECT_EQ(exposedSeconds(steps, {0, 1, 2, 3}),
            (std::vector<double>{6, 0, 0, 0}));
  EXPECT_EQ(exposedSeconds(steps, {1, 0, 2, 3}),
            (std::vector<double>{10, 0, 0, 0}));
}

/// The second transfer begins when the first has ended, at 10. The wait for it
/// is a wait for both.
TEST(Overlap, TransfersFollowEachOther) {
  std::vector<OverlapStep> steps{transfer(10), transfer(5), work(3),
                                 work(1, {1}), work(1, {0})};
  EXPECT_EQ(exposedSeconds(steps, {0, 1, 2, 3, 4}),
            (std::vector<double>{7, 5, 0, 0, 0}));
}

TEST(Overlap, ATransferWaitsForTheOneThatItPassesOn) {
  std::vector<OverlapStep> steps{transfer(3), work(1), transfer(3, {0}),
                                 work(9), work(1, {2})};
  EXPECT_EQ(exposedSeconds(steps, {0, 1, 2, 3, 4}),
            (std::vector<double>{2, 0, 0, 0, 0}));
}

/// Four of the transfer's ten seconds run beside work, which they make half as
/// fast.
TEST(Overlap, ATransferSlowsTheWorkBesideIt) {
  std::vector<OverlapStep> steps{transfer(10, {}, 0.5), work(4), work(1, {0})};
  EXPECT_EQ(exposedSeconds(steps, {0, 1, 2}), (std::vector<double>{8, 0, 0}));
}

} // namespace
