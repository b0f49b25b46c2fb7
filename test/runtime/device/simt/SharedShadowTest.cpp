// SPDX-License-Identifier: Apache-2.0
//
// Which accesses of shared memory are ordered. Threads 0 to 31 are warp 0.
#include "runtime/device/simt/SharedShadow.h"

#include <gtest/gtest.h>

using namespace rota::simt;
using Kind = Conflict::Kind;
using WriteKind = SharedShadow::WriteKind;

namespace {

constexpr uint32_t kAll = kAllLanes;

class Shadow : public testing::Test {
protected:
  Shadow() { shadow.startBlock(64, {kAll, kAll, kAll}); }

  Kind read(uint32_t thread, uint64_t offset = 0, uint64_t bytes = 4) {
    return shadow.read(offset, bytes, thread, 1).kind;
  }
  Kind write(uint32_t thread, uint64_t offset = 0, uint64_t bytes = 4,
             WriteKind kind = WriteKind::Plain) {
    return shadow.write(offset, bytes, thread, 2, kind).kind;
  }

  SharedShadow shadow;
};

TEST_F(Shadow, UnwrittenUntilWritten) {
  EXPECT_EQ(read(0), Kind::Unwritten);
  write(0);
  EXPECT_EQ(read(0), Kind::None);
  EXPECT_EQ(read(0, 2, 4), Kind::Unwritten); // its second half
  shadow.startBlock(64, {kAll});
  EXPECT_EQ(read(0), Kind::Unwritten);
}

TEST_F(Shadow, OneThreadIsInOrder) {
  write(5);
  EXPECT_EQ(read(5), Kind::None);
  EXPECT_EQ(write(5), Kind::None);
}

TEST_F(Shadow, RacesInAllDirections) {
  write(0);
  EXPECT_EQ(read(40), Kind::ReadAfterWrite);
  EXPECT_EQ(read(1), Kind::ReadAfterWrite);
  EXPECT_EQ(write(40), Kind::WriteAfterWrite);
  shadow.blockBarrier();
  read(0);
  EXPECT_EQ(write(40), Kind::WriteAfterRead);
}

TEST_F(Shadow, ConflictNamesTheOther) {
  shadow.write(8, 4, 7, 11, WriteKind::Plain);
  Conflict conflict = shadow.read(8, 4, 40, 12);
  EXPECT_EQ(conflict.thread, 7u);
  EXPECT_EQ(conflict.site, 11u);
  EXPECT_EQ(conflict.byte, 8u);
  shadow.blockBarrier();
  shadow.read(8, 4, 9, 13);
  conflict = shadow.write(8, 4, 40, 14, WriteKind::Plain);
  EXPECT_EQ(conflict.thread, 9u);
  EXPECT_EQ(conflict.site, 13u);
}

TEST_F(Shadow, ProductReadsUntilItsWait) {
  write(0);
  shadow.blockBarrier();
  EXPECT_EQ(read(7), Kind::None);
  shadow.startProductRead(0, 4);
  EXPECT_EQ(read(40), Kind::None);
  shadow.blockBarrier();
  EXPECT_EQ(write(7), Kind::InProduct) << "its own thread";
  shadow.blockBarrier();
  EXPECT_EQ(write(40), Kind::InProduct);
  EXPECT_EQ(write(40, 4), Kind::None) << "beside it";
  shadow.blockBarrier();
  shadow.endProductRead(0, 4, 7, 3);
  EXPECT_EQ(write(40), Kind::WriteAfterRead) << "no barrier after the wait";
  shadow.blockBarrier();
  EXPECT_EQ(write(40), Kind::None);
  // A block that did not wait leaves nothing to the next one.
  shadow.startProductRead(0, 4);
  shadow.startBlock(64, {kAll, kAll, kAll});
  EXPECT_EQ(write(40), Kind::None);
}

TEST_F(Shadow, BlockBarrierOrdersAll) {
  write(0);
  shadow.blockBarrier();
  EXPECT_EQ(read(40), Kind::None);
  EXPECT_EQ(read(70), Kind::None);
  shadow.blockBarrier();
  EXPECT_EQ(write(1), Kind::None);
}

TEST_F(Shadow, WarpBarrierOrdersItsWarp) {
  write(0);
  shadow.warpBarrier(0, kAll);
  EXPECT_EQ(read(31), Kind::None);
  EXPECT_EQ(read(32), Kind::ReadAfterWrite);
  shadow.warpBarrier(0, kAll);
  shadow.warpBarrier(1, kAll);
  EXPECT_EQ(write(3), Kind::WriteAfterRead); // thread 32 has read
}

TEST_F(Shadow, WarpBarrierOrdersItsLanes) {
  write(0);
  shadow.warpBarrier(0, 0b0011);
  EXPECT_EQ(read(1), Kind::None);
  EXPECT_EQ(read(2), Kind::ReadAfterWrite);
}

/// A collective orders a write after reads of the warp, but no read after a
/// write.
TEST_F(Shadow, CollectiveOrdersWritesAfterReads) {
  write(0);
  shadow.warpCollective(0, kAll);
  EXPECT_EQ(read(1), Kind::ReadAfterWrite);
  shadow.blockBarrier();
  read(1);
  read(2);
  EXPECT_EQ(write(0, 0, 2), Kind::WriteAfterRead);
  shadow.warpCollective(0, 0b0111);
  EXPECT_EQ(write(0, 2, 2), Kind::WriteAfterRead);
  shadow.blockBarrier();
  read(1);
  read(2);
  shadow.warpCollective(0, kAll);
  EXPECT_EQ(write(0), Kind::None);
}

TEST_F(Shadow, ManyReadersOfSeveralWarps) {
  write(0);
  shadow.blockBarrier();
  for (uint32_t thread : {0, 1, 33, 70})
    read(thread);
  shadow.warpBarrier(0, kAll);
  EXPECT_EQ(write(0), Kind::WriteAfterRead); // the other warps have no barrier
  shadow.blockBarrier();
  EXPECT_EQ(write(0), Kind::None);
}

TEST_F(Shadow, EqualValuesAtOneSiteAreNoRace) {
  write(0);
  EXPECT_EQ(write(40, 0, 4, WriteKind::SameValue), Kind::None);
  EXPECT_EQ(shadow.write(0, 4, 0, 3, WriteKind::SameValue).kind,
            Kind::WriteAfterWrite); // another site
}

TEST_F(Shadow, CopiesArePendingUntilTheyEnd) {
  write(0, 0, 16, WriteKind::CopyStart);
  shadow.blockBarrier();
  EXPECT_EQ(read(0, 4), Kind::Pending);
  EXPECT_EQ(write(0, 8), Kind::Pending);
  write(0, 0, 16, WriteKind::CopyEnd);
  EXPECT_EQ(read(0, 4), Kind::None);
  EXPECT_EQ(read(40, 12), Kind::ReadAfterWrite);
  shadow.blockBarrier();
  EXPECT_EQ(read(40, 12), Kind::None);
}

} // namespace
