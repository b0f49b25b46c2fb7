// SPDX-License-Identifier: Apache-2.0
//
// The text form of actions and timelines: round trips, PyTorch's files, and
// messages about malformed files.
#include "ir/pipe/Timeline.h"

#include <gtest/gtest.h>

#include <random>

using namespace rota::pipe;

namespace {

TEST(Action, printsAndParsesEveryKind) {
  for (const char *text :
       {"0F0", "1F12", "3B0", "2I1", "0W3", "2SEND_F2", "3RECV_F2", "2SEND_B2",
        "0RECV_B31", "1UNSHARD", "10RESHARD", "7REDUCE_GRAD"}) {
    std::optional<Action> action = parseAction(text);
    ASSERT_TRUE(action) << text;
    EXPECT_EQ(toString(*action), text);
  }
  EXPECT_EQ(*parseAction("2SEND_B5"), (Action{2, ActionKind::SendBackward, 5}));
  EXPECT_EQ(*parseAction("12I34"), (Action{12, ActionKind::BackwardInput, 34}));
}

TEST(Action, refusesEverythingElse) {
  for (const char *text :
       {"", "F0", "0F", "0", "0X1", "0f1", "0F1 ", " 0F1", "0F-1", "-1F0",
        "0UNSHARD3", "0SEND_F", "0FF1", "1BW0", "0F1234567890", "0F1F2"})
    EXPECT_FALSE(parseAction(text)) << text;
}

TEST(Csv, roundTripsRandomRows) {
  std::mt19937 random(7);
  auto below = [&](int n) { return int(random() % n); };
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::vector<Action>> rows(1 + below(5));
    for (std::vector<Action> &row : rows)
      for (int i = 0, n = 1 + below(8); i < n; ++i) {
        ActionKind kind = static_cast<ActionKind>(below(11));
        bool bare = kind >= ActionKind::Unshard;
        row.push_back({below(100), kind, bare ? 0 : below(1000)});
        if (row.size() > 1 && !endsPair(row, row.size() - 2))
          row[row.size() - 2].startsPair = below(2) == 0;
      }
    std::string error;
    auto back = parseCsv(printCsv(rows), error);
    ASSERT_TRUE(back) << error;
    EXPECT_EQ(*back, rows);
  }
}

TEST(Csv, readsIdleCellsSpacesAndLineEnds) {
  std::string error;
  auto rows = parseCsv("0F0, 0F1,,0B0\r\n,1F0,1B0,\r\n\r\n  \n", error);
  ASSERT_TRUE(rows) << error;
  EXPECT_EQ(printCsv(*rows), "0F0,0F1,0B0\n1F0,1B0\n");
}

TEST(Csv, readsPairs) {
  std::string error;
  auto rows = parseCsv("0F0,( 0F7; 7B3)OVERLAP_F_B,7B4\n", error);
  ASSERT_TRUE(rows) << error;
  ASSERT_EQ(rows->front().size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(rows->front()[i].startsPair, i == 1) << i;
  EXPECT_TRUE(endsPair(rows->front(), 2));
  EXPECT_EQ(printCsv(*rows), "0F0,(0F7;7B3)OVERLAP_F_B,7B4\n");
  Timeline timeline{inferShape(*rows), *rows};
  EXPECT_TRUE(hasPairs(timeline));
  dropPairs(timeline);
  EXPECT_FALSE(hasPairs(timeline));
  EXPECT_EQ(printCsv(timeline.ranks), "0F0,0F7,7B3,7B4\n");
}

TEST(Csv, skipsWaits) {
  std::string error;
  auto rows = parseCsv("0F0,0SEND_F0,0WAIT_SEND_F0,0WAIT_REDUCE_GRAD\n", error);
  ASSERT_TRUE(rows) << error;
  EXPECT_EQ(printCsv(*rows), "0F0,0SEND_F0\n");
  EXPECT_FALSE(parseCsv("0WAIT_SEND_F0x\n", error));
  EXPECT_FALSE(parseCsv("WAIT_SEND_F0\n", error));
}

std::string errorOf(std::string_view text) {
  std::string error;
  EXPECT_FALSE(parseCsv(text, error)) << text;
  return error;
}

TEST(Csv, namesLineAndColumn) {
  EXPECT_EQ(errorOf("0F0,0F1\n1F0,  1Q1,1B0\n"),
            "line 2, column 7: expected an action such as 0F0 or 2SEND_B1, got "
            "'1Q1'");
  EXPECT_EQ(errorOf("F0"), "line 1, column 1: expected an action such as 0F0 "
                           "or 2SEND_B1, got 'F0'");
  EXPECT_EQ(errorOf("0F0;0F1"), "line 1, column 1: expected an action such as "
                                "0F0 or 2SEND_B1, got '0F0;0F1'");
  EXPECT_EQ(errorOf("0F0,(0F1;)OVERLAP_F_B"),
            "line 1, column 5: expected an action such as 0F0 or 2SEND_B1, got "
            "'(0F1;)OVERLAP_F_B'");
  EXPECT_EQ(errorOf("(0F1)OVERLAP_F_B"),
            "line 1, column 1: expected an action such as 0F0 or 2SEND_B1, got "
            "'(0F1)OVERLAP_F_B'");
  EXPECT_EQ(errorOf("(0F1;1B0;0F2)OVERLAP_F_B"),
            "line 1, column 1: expected an action such as 0F0 or 2SEND_B1, got "
            "'(0F1;1B0;0F2)OVERLAP_F_B'");
  EXPECT_EQ(errorOf(std::string_view("0F0\n\0\x7f", 6)),
            "line 2, column 1: expected an action such as 0F0 or 2SEND_B1, got "
            "'?"
            "?'");
  EXPECT_EQ(errorOf("\n\n"), "line 1, column 1: expected a row of actions for "
                             "each rank, got an empty file");
  for (const char *blank : {"0F0\n\n1F0\n", "0F0\r\n \t\r\n1F0"})
    EXPECT_EQ(errorOf(blank),
              "line 2: expected a row of actions, got a blank line");
  EXPECT_EQ(errorOf("\n0F0\n"),
            "line 1: expected a row of actions, got a blank line");
  EXPECT_EQ(errorOf(std::string(1000, 'x')),
            "line 1, column 1: expected an action such as 0F0 or 2SEND_B1, got "
            "'" +
                std::string(40, 'x') + "...'");
}

TEST(Shape, placesChunksBothWays) {
  Shape loop{3, 3, 1, Placement::Loop}, v{3, 3, 1, Placement::V};
  int loopRanks[] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
  int vRanks[] = {0, 1, 2, 2, 1, 0, 0, 1, 2};
  for (int chunk = 0; chunk < 9; ++chunk) {
    EXPECT_EQ(loop.rankOf(chunk), loopRanks[chunk]);
    EXPECT_EQ(v.rankOf(chunk), vRanks[chunk]);
  }
  for (const Shape &shape : {loop, v})
    for (int rank = 0; rank < 3; ++rank)
      for (int repeat = 0; repeat < 3; ++repeat) {
        int chunk = shape.chunkOf(rank, repeat);
        EXPECT_EQ(shape.rankOf(chunk), rank);
        EXPECT_EQ(chunk / 3, repeat);
      }
  EXPECT_TRUE(loop.sendsForward(2));
  EXPECT_FALSE(v.sendsForward(2)); // the next chunk is on the same stage
  EXPECT_FALSE(v.sendsBackward(3));
  EXPECT_FALSE(loop.sendsForward(8));
  EXPECT_FALSE(loop.sendsBackward(0));
}

// The stages divide the microbatches of the unpipelined chunk, the last.
TEST(Shape, UnpipelinedChunk) {
  Shape shape{3, 2, 6, Placement::V, true};
  EXPECT_EQ(shape.chunks(), 7);
  EXPECT_TRUE(shape.isUnpipelined(6));
  EXPECT_FALSE(shape.isUnpipelined(5));
  for (int m = 0; m < 6; ++m) {
    EXPECT_EQ(shape.rankOf(6, m), m % 3);
    // Chunk 5 is on rank 0.
    EXPECT_EQ(shape.sendsForward(5, m), m % 3 != 0);
    EXPECT_EQ(shape.sendsBackward(6, m), m % 3 != 0);
    EXPECT_FALSE(shape.sendsForward(6, m));
  }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(shape.owns(rank, 6));
    EXPECT_EQ(shape.owns(rank, 5), rank == 0);
    EXPECT_EQ(shape.chunkOf(rank, 2), 6);
  }
  EXPECT_EQ(shape.rowOf(6), 2);
}

TEST(Shape, isInferredFromRows) {
  std::string error;
  auto loop = parseCsv("0F0,2F0,0F4\n1F0,3F0\n", error);
  EXPECT_EQ(inferShape(*loop), (Shape{2, 2, 5, Placement::Loop}));
  auto v = parseCsv("0F0,3F0\n1F0,2F0,2F1\n", error);
  EXPECT_EQ(inferShape(*v), (Shape{2, 2, 2, Placement::V}));
  // A last chunk on several ranks is an unpipelined one.
  auto unpipelined = parseCsv("0F0,2F0\n1F0,2F1\n", error);
  EXPECT_EQ(inferShape(*unpipelined), (Shape{2, 1, 2, Placement::Loop, true}));
}

TEST(Shape, refusesImpossibleNumbers) {
  EXPECT_EQ(checkShape({4, 2, 8}), "");
  EXPECT_EQ(checkShape({0, 2, 8}),
            "expected a positive number of stages, got 0");
  EXPECT_EQ(checkShape({4097, 2, 8}), "expected at most 4096 stages, got 4097");
  EXPECT_EQ(checkShape({4, -1, 8}),
            "expected a positive number of repeats, got -1");
  EXPECT_EQ(checkShape({4, 2, 0}),
            "expected a positive number of microbatches, got 0");
  EXPECT_EQ(checkShape({4096, 2000000000, 2000000000}),
            "expected stages * repeats * microbatches to be at most 1048576, "
            "got 4096 * 2000000000 * 2000000000");
  EXPECT_EQ(checkShape({4, 1, 6, Placement::Loop, true}),
            "expected microbatches to be a multiple of stages, which divide "
            "those of the layers outside of the pipeline, got 6 and 4");
}

} // namespace
