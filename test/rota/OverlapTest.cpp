// SPDX-License-Identifier: Apache-2.0
//
// Exposed times of transfers beside work.
#include "ir/rota/cost/Overlap.h"

#include <gtest/gtest.h>

using namespace mlir::rota;

namespace {

/// One operation or byte a second; a transfer takes one second more.
constexpr AssumedSpeed kSlow = {1, 1, 1};

/// A step with so much work that waits for `waits`.
OverlapStep work(double flops, llvm::SmallVector<int, 2> waits = {}) {
  return {flops, 0, waits};
}
OverlapStep transfer(int64_t bytes, llvm::SmallVector<int, 2> waits = {}) {
  return {0, bytes, waits};
}

std::vector<double> exposed(llvm::ArrayRef<OverlapStep> steps,
                            llvm::ArrayRef<int> order) {
  return exposedSeconds(steps, order, kSlow);
}

TEST(Overlap, WorkBeforeTheFirstUseHides) {
  std::vector<OverlapStep> steps{transfer(9), work(4), work(1, {0}),
                                 work(1, {0})};
  EXPECT_EQ(exposed(steps, {0, 1, 2, 3}), (std::vector<double>{6, 0, 0, 0}));
  EXPECT_EQ(exposed(steps, {1, 0, 2, 3}), (std::vector<double>{10, 0, 0, 0}));
}

/// The second transfer begins when the first has ended, at 10. The wait for it
/// is a wait for both.
TEST(Overlap, TransfersFollowEachOther) {
  std::vector<OverlapStep> steps{transfer(9), transfer(4), work(3),
                                 work(1, {1}), work(1, {0})};
  EXPECT_EQ(exposed(steps, {0, 1, 2, 3, 4}),
            (std::vector<double>{7, 5, 0, 0, 0}));
}

TEST(Overlap, ATransferWaitsForTheOneThatItPassesOn) {
  std::vector<OverlapStep> steps{transfer(2), work(1), transfer(2, {0}),
                                 work(9), work(1, {2})};
  EXPECT_EQ(exposed(steps, {0, 1, 2, 3, 4}),
            (std::vector<double>{2, 0, 0, 0, 0}));
}

} // namespace
