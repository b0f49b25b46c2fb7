// SPDX-License-Identifier: Apache-2.0
//
// The declarations of NcclApi.h are those of nccl.h, where there is one.
#include "runtime/collective/nccl/NcclApi.h"
#include "runtime/Error.h"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

using namespace rota;

TEST(NcclApi, OldVersionsAreRefused) {
  EXPECT_NO_THROW(checkNcclVersion(21800));
  EXPECT_NO_THROW(checkNcclVersion(22809));
  try {
    checkNcclVersion(21703);
    FAIL();
  } catch (const InputError &error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 57),
              "expected NCCL 2.18 or later, got 2.17.3: install NCCL 2.1");
  }
}

// Processes that know an address need not exchange identifiers. NCCL itself
// says so where it is installed; it needs no GPU for that.
TEST(NcclApi, AnAddressMakesOneIdentifier) {
  const NcclApi *nccl = nullptr;
  try {
    nccl = &loadNccl();
  } catch (const InputError &error) {
    GTEST_SKIP() << error.what();
  }
  setenv("NCCL_COMM_ID", "127.0.0.1:29501", 1);
  NcclId one = {}, other = {};
  nccl->check(nccl->uniqueId(&one), "identifier");
  nccl->check(nccl->uniqueId(&other), "identifier");
  EXPECT_EQ(std::memcmp(&one, &other, sizeof one), 0);
  setenv("NCCL_COMM_ID", "127.0.0.1:29502", 1);
  nccl->check(nccl->uniqueId(&other), "identifier");
  EXPECT_NE(std::memcmp(&one, &other, sizeof one), 0);
  unsetenv("NCCL_COMM_ID");
}

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>

static_assert(kNcclSuccess == ncclSuccess);
static_assert(kNcclInvalidUsage == ncclInvalidUsage);
static_assert(kNcclInProgress == ncclInProgress);
static_assert(kNcclBytes == ncclUint8);
static_assert(kNcclNoColor == NCCL_SPLIT_NOCOLOR);
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));
static_assert(sizeof(NcclConfig) <= sizeof(ncclConfig_t));
#define SAME_PLACE(ours, theirs)                                               \
  static_assert(offsetof(NcclConfig, ours) == offsetof(ncclConfig_t, theirs))
SAME_PLACE(size, size);
SAME_PLACE(magic, magic);
SAME_PLACE(version, version);
SAME_PLACE(blocking, blocking);
SAME_PLACE(clusterSize, cgaClusterSize);
SAME_PLACE(leastBlocks, minCTAs);
SAME_PLACE(mostBlocks, maxCTAs);
SAME_PLACE(network, netName);
SAME_PLACE(shareSplit, splitShare);

namespace {

/// Types that a call passes in the same way: enums as ints, streams and
/// communicators as the pointers that they are.
template <typename Ours, typename Theirs> constexpr bool same() {
  if constexpr (std::is_same_v<Ours, Theirs>)
    return true;
  else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>)
    return same<std::remove_pointer_t<Ours>, std::remove_pointer_t<Theirs>>();
  else if constexpr (std::is_enum_v<Theirs>)
    return std::is_same_v<Ours, int>;
  else if constexpr (std::is_class_v<Ours>)
    return std::is_class_v<Theirs>; // their layouts: above
  return false;
}

template <typename Ours, typename Theirs> constexpr bool kSameCall = false;
template <typename R, typename S, typename... Ours, typename... Theirs>
constexpr bool kSameCall<R (*)(Ours...), S (*)(Theirs...)> = [] {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs))
    return same<R, S>() && (... && same<Ours, Theirs>());
  return false;
}();

} // namespace

#define SAME_CALL(member, function)                                            \
  static_assert(kSameCall<decltype(NcclApi::member), decltype(&function)>)
SAME_CALL(version, ncclGetVersion);
SAME_CALL(uniqueId, ncclGetUniqueId);
SAME_CALL(connect, ncclCommInitRankConfig);
SAME_CALL(split, ncclCommSplit);
SAME_CALL(destroy, ncclCommDestroy);
SAME_CALL(abort, ncclCommAbort);
SAME_CALL(asyncError, ncclCommGetAsyncError);
SAME_CALL(beginGroup, ncclGroupStart);
SAME_CALL(endGroup, ncclGroupEnd);
SAME_CALL(send, ncclSend);
SAME_CALL(receive, ncclRecv);
SAME_CALL(allGather, ncclAllGather);
SAME_CALL(errorText, ncclGetErrorString);
SAME_CALL(lastError, ncclGetLastError);
#endif
