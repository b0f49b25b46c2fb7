// SPDX-License-Identifier: Apache-2.0
//
// The verifier accepts valid timelines and refuses damaged ones.
#include "test/passes/pipeline/Damage.h"

using namespace rota::pipe;

namespace {

using Random = std::mt19937;

TEST(TimelineVerifier, acceptsRandomOrders) {
  Random random(11);
  for (int trial = 0; trial < 300; ++trial) {
    Timeline timeline = randomTimeline(random);
    ASSERT_EQ(verified(timeline), "") << printCsv(timeline.ranks);
    ASSERT_EQ(verified(addCommunication(timeline)), "")
        << printCsv(timeline.ranks);
  }
}

/// A valid timeline, with communication or without.
Timeline anyTimeline(Random &random) {
  static const std::vector<Example> all = [] {
    std::vector<Example> all = examples(), pairs = pairedExamples();
    all.insert(all.end(), pairs.begin(), pairs.end());
    return all;
  }();
  Timeline timeline = random() % 2 ? randomTimeline(random)
                                   : all[random() % all.size()].timeline;
  return random() % 2 ? addCommunication(timeline) : timeline;
}

TEST(TimelineVerifier, refusesARemovedAction) {
  expectRefused(1, 400, anyTimeline, removed);
}

TEST(TimelineVerifier, refusesADoubledAction) {
  expectRefused(2, 400, anyTimeline, [](const DamagePlace &place) {
    Action action = place.action();
    place.insert(place.rank, action);
    return toString(action) + ": expected the action once";
  });
}

TEST(TimelineVerifier, refusesAnActionOnAnotherRank) {
  auto move = [](const DamagePlace &place) -> std::optional<std::string> {
    size_t ranks = place.timeline.ranks.size();
    if (ranks == 1)
      return std::nullopt;
    Action action = place.remove();
    place.insert((place.rank + 1 + place.below(ranks - 1)) % ranks, action);
    return "belongs to rank " + std::to_string(place.rank);
  };
  expectRefused(3, 400, anyTimeline, move);
}

/// True when the order of two actions of one rank follows from the rules that
/// concern that rank alone.
bool orderMatters(const Shape &shape, const Action &a, const Action &b) {
  if (a.microbatch != b.microbatch || !isCompute(a.kind) || !isCompute(b.kind))
    return false;
  if (a.chunk == b.chunk)
    return true;
  // All forwards of a microbatch depend on each other, through other ranks too,
  // and so do its backwards on them and on each other. W waits for its own I.
  return a.kind != ActionKind::BackwardWeight &&
         b.kind != ActionKind::BackwardWeight;
}

/// Swaps the action and another of its rank, for which `matters` is true.
Damage swapped(bool (*matters)(const Shape &, const Action &, const Action &)) {
  return [=](const DamagePlace &place) -> std::optional<std::string> {
    size_t other = place.below(place.row().size());
    if (other == place.position ||
        !matters(place.timeline.shape, place.action(), place.row()[other]))
      return std::nullopt;
    std::swap(place.action(), place.row()[other]);
    return "";
  };
}

TEST(TimelineVerifier, refusesASwapWhereOrderMatters) {
  expectRefused(4, 400, anyTimeline, swapped(orderMatters));
}

bool areOfOneChannel(const Shape &, const Action &a, const Action &b) {
  return !isCompute(a.kind) && a.kind == b.kind && a.chunk == b.chunk;
}

TEST(TimelineVerifier, refusesSwappedMessagesOfAChannel) {
  expectRefused(5, 200, anyTimeline, swapped(areOfOneChannel));
}

TEST(TimelineVerifier, namesRankPositionActionAndRule) {
  // Place and shape.
  EXPECT_EQ(verified({{2, 1, 1}, {{}}, 1}),
            "expected 2 rows, one for each stage, got 1\n");
  Timeline far = parsed("0F0,0B0\n1F0,1B0,7F0,1F9\n");
  far.shape = {2, 1, 1};
  EXPECT_EQ(verified(far),
            "rank 1, position 2, 7F0: expected a chunk below 2, got 7\n"
            "rank 1, position 3, 1F9: expected a microbatch below 1, got 9\n");
  // Once.
  EXPECT_EQ(verified(parsed("0F0,0F0\n")),
            "rank 0, position 1, 0F0: expected the action once, it is at "
            "position 0 already\n"
            "rank 0, 0B0: missing: each chunk runs B, or I and W, once for "
            "each microbatch\n");
  EXPECT_EQ(verified(parsed("0F0,0B0\n1F0,2B0\n")),
            "rank 1, position 1, 2B0: expected actions of 4 chunks, got none "
            "of chunk 3\n");
  EXPECT_EQ(verified(parsed("0F0,0F7,0B0,0B1\n")),
            "rank 0, position 1, 0F7: expected actions of 8 microbatches, got "
            "none of microbatch 2\n");
  EXPECT_EQ(verified(parsed("0F0,0I0\n")),
            "rank 0, 0W0: missing: its I is there\n");
  EXPECT_EQ(verified(parsed("0F0,0B0,0W0\n")),
            "rank 0, position 2, 0W0: B computes the weight gradient too\n");
  // Communication.
  EXPECT_EQ(verified(parsed("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n")),
            "rank 0, 0RECV_B0: missing: the value crosses ranks\n"
            "rank 1, 1SEND_B0: missing: the value crosses ranks\n");
  EXPECT_EQ(verified(parsed("0F0,0SEND_F0,1F0,1B0,0B0\n")),
            "rank 0, position 1, 0SEND_F0: no other rank reads the chunk's "
            "output\n");
  // Order on a rank.
  EXPECT_EQ(verified(parsed("0B0,0F0\n")),
            "rank 0, position 0, 0B0: expected it after 0F0, which is at "
            "position 1\n");
  EXPECT_EQ(verified(parsed("0F0,0W0,0I0\n")),
            "rank 0, position 1, 0W0: expected it after 0I0, which is at "
            "position 2\n");
  EXPECT_EQ(verified(parsed("0SEND_F0,0F0,0RECV_B0,0B0\n"
                            "1F0,1RECV_F0,1B0,1SEND_B0\n")),
            "rank 0, position 0, 0SEND_F0: expected it after 0F0, which is at "
            "position 1\n"
            "rank 1, position 0, 1F0: expected it after 1RECV_F0, which is at "
            "position 1\n");
}

// LoopedBFS of torch.distributed.pipelining: forwards ascend, backwards
// descend.
TEST(TimelineVerifier, acceptsDescendingBackwards) {
  Timeline timeline =
      parsed("0F0,0F1,0F2,2F0,2F1,2F2,,,2B2,2B1,2B0,0B2,0B1,0B0\n"
             ",1F0,1F1,1F2,3F0,3F1,3F2,3B2,3B1,3B0,1B2,1B1,1B0\n");
  EXPECT_EQ(verified(timeline), "");
  EXPECT_EQ(verified(addCommunication(timeline)), "");
}

TEST(TimelineVerifier, checksWeightWindows) {
  EXPECT_EQ(verified(parsed("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD,"
                            "0REDUCE_GRAD\n")),
            "");
  EXPECT_EQ(verified(parsed("0UNSHARD,0UNSHARD,0F0,0RESHARD,0B0,0RESHARD,"
                            "0REDUCE_GRAD,0REDUCE_GRAD\n")),
            "rank 0, position 1, 0UNSHARD: the chunk's window is open already\n"
            "rank 0, position 4, 0B0: expected an open window of the chunk's "
            "weights\n"
            "rank 0, position 5, 0RESHARD: the chunk has no open window\n"
            "rank 0, position 7, 0REDUCE_GRAD: there is no gradient to "
            "reduce\n");
  EXPECT_EQ(verified(parsed("0F0,0F1,0B0,0REDUCE_GRAD,0B1\n")),
            "rank 0, position 4, 0B1: expected a REDUCE_GRAD of the chunk "
            "after it\n");
}

TEST(TimelineVerifier, findsDeadlocks) {
  // Each rank waits for the other's gradient or activation.
  EXPECT_EQ(verified(parsed("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n")),
            "rank 0, position 1, 0B0: deadlock: waits for ever for the "
            "gradient of microbatch 0 from chunk 1 to chunk 0\n"
            "rank 1, position 1, 1F1: deadlock: waits for ever for the "
            "activation of microbatch 1 from chunk 0 to chunk 1\n");
  // Two messages that wait to be sent fit into the buffers.
  const char *sends = "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n";
  EXPECT_EQ(verified(parsed((std::string(sends) +
                             "1RECV_F0,1RECV_F1,1F0,1F1,1B0,1SEND_B0,1B1,"
                             "1SEND_B1\n")
                                .c_str())),
            "");
  // Three messages before the first is sent do not fit.
  EXPECT_EQ(verified(parsed("0F0,0F1,0F2,0SEND_F0,0SEND_F1,0SEND_F2,0RECV_B0,"
                            "0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
                            "1RECV_F0,1RECV_F1,1RECV_F2,1F0,1F1,1F2,1B0,"
                            "1SEND_B0,1B1,1SEND_B1,1B2,1SEND_B2\n")),
            "rank 0, position 2, 0F2: deadlock: waits for ever for the buffer "
            "that holds the activation of microbatch 0 from chunk 0 to chunk "
            "1, which has not been both sent and received\n"
            "rank 1, position 3, 1F0: deadlock: waits for ever for the "
            "activation of microbatch 0 from chunk 0 to chunk 1\n");
  // Receives in another order than the sends.
  EXPECT_EQ(verified(parsed("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,"
                            "0B1\n"
                            "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,"
                            "1SEND_B1\n")),
            "rank 0, position 1, 0SEND_F0: send 0 to rank 1 meets 1RECV_F1 at "
            "position 0: expected sends and receives in one order\n");
}

// In the form in which PyTorch writes DualPipeV: two chunks on each rank in V
// placement, with overlapped pairs, some backwards split.
TEST(TimelineVerifier, acceptsADualPipe) {
  Timeline timeline = parsed(
      "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,"
      "3B2,(3F3;0B1)OVERLAP_F_B,3B3,0B2,0I3,0W3\n"
      "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
      "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n");
  EXPECT_EQ(timeline.shape, (Shape{2, 2, 4, Placement::V}));
  EXPECT_EQ(verified(timeline), "");
  EXPECT_EQ(verified(addCommunication(timeline)), "");
}

} // namespace
