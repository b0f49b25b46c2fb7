// SPDX-License-Identifier: Apache-2.0
//
// Drawings of timelines.
#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/drawing/Markup.h"
#include "passes/pipeline/timeline/Offloading.h"
#include "passes/pipeline/timeline/WeightWindows.h"
#include "test/passes/pipeline/Examples.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <set>

using namespace rota::pipe;
using rota::roundTicks;

namespace {

std::string grid(const Timeline &timeline, const CostTable &costs = {}) {
  return "\n" + drawGrid(timeline, *simulate(timeline, costs));
}

TEST(Grid, circular) {
  EXPECT_EQ(grid(generated("circular", 2, 2, 2)), R"(
slot    0   1   2   3   4   5   6   7   8   9
rank 0  0F0 0F1 2F0 2F1 .   .   2B0 2B1 0B0 0B1
rank 1  .   1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1 .
)");
  EXPECT_EQ(grid(generated("circular", 3, 1, 6, 2)), R"(
slot    0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15 16 17 18 19
rank 0  F0 F1 F2 F3 F4 F5 .  .  .  .  .  .  .  ~  B0 B1 B2 B3 B4 B5
rank 1  .  ~  F0 F1 F2 F3 F4 F5 .  .  .  ~  B0 B1 B2 B3 B4 B5 .  .
rank 2  .  .  .  ~  F0 F1 F2 F3 F4 F5 B0 B1 B2 B3 B4 B5 .  .  .  .
)");
}

TEST(Grid, gpipe) {
  EXPECT_EQ(grid(generated("gpipe", 3, 1, 5)), R"(
slot    0  1  2  3  4  5  6  7  8  9  10 11 12 13
rank 0  F0 F1 F2 F3 F4 .  .  .  .  B0 B1 B2 B3 B4
rank 1  .  F0 F1 F2 F3 F4 .  .  B0 B1 B2 B3 B4 .
rank 2  .  .  F0 F1 F2 F3 F4 B0 B1 B2 B3 B4 .  .
)");
  EXPECT_EQ(grid(generated("gpipe", 2, 2, 3, 1, false, Placement::V)), R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15
rank 0  0F0 0F1 0F2 .   .   3F0 3F1 3F2 3B0 3B1 3B2 .   .   0B0 0B1 0B2
rank 1  .   1F0 1F1 1F2 2F0 2F1 2F2 .   .   2B0 2B1 2B2 1B0 1B1 1B2 .
)");
}

TEST(Grid, oneFOneB) {
  EXPECT_EQ(grid(generated("1f1b", 3, 1, 5)), R"(
slot    0  1  2  3  4  5  6  7  8  9  10 11 12 13
rank 0  F0 F1 F2 .  .  B0 F3 B1 F4 B2 .  B3 .  B4
rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 F4 B3 .  B4 .
rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 .  .
)");
  EXPECT_EQ(grid(generated("1f1b", 3, 1, 5, 1, true)), R"(
slot    0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15 16 17 18
rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 F4 I2 W2 .  I3 W3 .  I4 W4
rank 1  .  F0 F1 .  I0 W0 F2 I1 W1 F3 I2 W2 F4 I3 W3 .  I4 W4 .
rank 2  .  .  F0 I0 W0 F1 I1 W1 F2 I2 W2 F3 I3 W3 F4 I4 W4 .  .
)");
}

TEST(Grid, interleavedOneFOneB) {
  EXPECT_EQ(grid(generated("interleaved-1f1b", 2, 2, 4)), R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17
rank 0  0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 .   2B2 .   2B3 0B2 0B3
rank 1  .   1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3 .
)");
  EXPECT_EQ(grid(generated("interleaved-1f1b", 3, 2, 3)), R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15
rank 0  0F0 0F1 0F2 3F0 3F1 3F2 .   .   3B0 .   3B1 .   3B2 0B0 0B1 0B2
rank 1  .   1F0 1F1 1F2 4F0 4F1 4F2 4B0 .   4B1 .   4B2 1B0 1B1 1B2 .
rank 2  .   .   2F0 2F1 2F2 5F0 5B0 5F1 5B1 5F2 5B2 2B0 2B1 2B2 .   .
)");
}

TEST(Grid, longActionsTakeSeveralColumns) {
  CostTable costs;
  costs.backward = 2;
  EXPECT_EQ(grid(generated("gpipe", 2, 1, 2), costs), R"(
slot    0  1  2  3  4  5  6  7  8
rank 0  F0 F1 .  .  .  B0 -  B1 -
rank 1  .  F0 F1 B0 -  B1 -  .  .
)");
  costs.forward = 0;
  EXPECT_EQ(grid(generated("gpipe", 1, 1, 2), costs), R"(
slot    0  1  2  3
rank 0  F0 F1 B0 B1
)");
}

// Two columns for each pair, which '+' joins, one above the other in pictures.
TEST(Grid, pairs) {
  Timeline timeline = parsed("0F0,0F1,1F0,(0F2;1B0)OVERLAP_F_B,0B0,1F1,"
                             "(1F2;1B1)OVERLAP_F_B,0B1,1B2,0B2\n");
  EXPECT_EQ(grid(timeline), R"(
slot    0    1    2    3    4    5    6    7    8    9    10   11
rank 0  0F0  0F1  1F0  0F2+ 1B0  0B0  1F1  1F2+ 1B1  0B1  1B2  0B2
)");
  CostTable costs;
  costs.pairShare = 0; // halves of the same slot
  EXPECT_EQ(grid(parsed("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"), costs), R"(
slot    0   1   2   3   4   5
rank 0  F0  -   F1+ B0  B1  -
)");
}

TEST(Csv, hasOneCellForAPair) {
  Timeline timeline = parsed("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n"
                             "1F0,1B0,1F1,1B1,1F2,1B2\n");
  std::string csv = drawCsv(timeline, *simulate(timeline, {}));
  EXPECT_EQ(csv, "0F0,0F1,,(0F2;0B0)OVERLAP_F_B,0B1,,0B2\n"
                 ",1F0,1B0,1F1,1B1,1F2,1B2\n");
  std::string error;
  EXPECT_EQ(*parseCsv(csv, error), timeline.ranks);
}

TEST(Svg, hasTheHalvesOfAPairOneAboveTheOther) {
  Timeline timeline = parsed("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  std::string svg = drawSvg(timeline, *simulate(timeline, {}), "pair");
  auto of = [&](const char *name, const char *key) {
    size_t title = svg.find("<title>" + std::string(name) + "<");
    std::string element = svg.substr(0, title);
    element = element.substr(element.rfind("<rect"));
    size_t at = element.find(key + std::string("=\""));
    return std::stoi(element.substr(element.find('"', at) + 1));
  };
  EXPECT_EQ(of("0F1", " x"), of("0B0", " x"));
  EXPECT_EQ(of("0F1", "width"), of("0B0", "width"));
  EXPECT_EQ(of("0F1", "height"), 26 / 2 - 2);
  EXPECT_EQ(of("0B0", " y"), of("0F1", " y") + 26 / 2);
}

TEST(Trace, hasALaneForSecondHalvesOfPairs) {
  Timeline timeline = parsed("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  auto simulation = simulate(timeline, {});
  auto trace = nlohmann::json::parse(drawTrace(timeline, *simulation, "pair"),
                                     nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  std::map<int, std::string> names;
  std::map<std::string, std::string> lanes;
  for (const auto &event : trace["traceEvents"])
    if (event["name"] == "thread_name")
      names[event["tid"].get<int>()] = event["args"]["name"];
    else if (event["ph"] == "X")
      lanes[event["name"]] = names[event["tid"].get<int>()];
  EXPECT_EQ(lanes["0F1"], "rank 0");
  EXPECT_EQ(lanes["0B0"], "rank 0 pair");
  auto json = nlohmann::json::parse(drawJson(timeline, *simulation, {}, "pair"),
                                    nullptr, false);
  const auto &actions = json["timeline"][0]["actions"];
  EXPECT_EQ(actions[1]["lane"], "compute");
  EXPECT_EQ(actions[2]["lane"], "pair");
  EXPECT_EQ(actions[1]["start"], actions[2]["start"]);
}

TEST(Grid, coloursChangeNothingElse) {
  Timeline timeline = generated("1f1b", 3, 1, 5, 1, true);
  auto simulation = simulate(timeline, {});
  std::string plain = drawGrid(timeline, *simulation);
  std::string coloured = drawGrid(timeline, *simulation, {true});
  EXPECT_NE(coloured.find("\33[34mF0\33[0m "), std::string::npos);
  for (size_t at; (at = coloured.find('\33')) != std::string::npos;)
    coloured.erase(at, coloured.find('m', at) + 1 - at);
  EXPECT_EQ(coloured, plain);
}

TEST(Grid, leavesOutTheMiddleOfLongLines) {
  Timeline timeline = generated("1f1b", 2, 1, 12);
  auto simulation = simulate(timeline, {});
  EXPECT_EQ("\n" + drawGrid(timeline, *simulation, {false, 36}), R"(
slot    0   1   2   ..  23  24  25
rank 0  F0  F1  .   ..  B10 .   B11
rank 1  .   F0  B0  ..  F11 B11 .
slots 3 to 22 are left out; `rota schedule --format svg` draws all
)");
  for (int width : {20, 36, 60, 90}) {
    std::string grid = drawGrid(timeline, *simulation, {false, width});
    size_t length = grid.find('\n');
    EXPECT_GT(length, size_t(width) - 8);
    EXPECT_LE(length, size_t(std::max(width, 28)));
    for (const char *end : {"rank 0  F0 ", "B11\n"})
      EXPECT_NE(grid.find(end), std::string::npos) << grid;
  }
  EXPECT_EQ(drawGrid(timeline, *simulation, {false, 200}),
            drawGrid(timeline, *simulation));
}

TEST(Csv, hasAnEmptyCellForEachIdleSlot) {
  Timeline timeline = generated("1f1b", 2, 1, 3);
  std::string csv = drawCsv(timeline, *simulate(timeline, {}));
  EXPECT_EQ(csv, "0F0,0F1,,0B0,0F2,0B1,,0B2\n,1F0,1B0,1F1,1B1,1F2,1B2\n");
  std::string error;
  EXPECT_EQ(*parseCsv(csv, error), timeline.ranks);
}

TEST(Report, isATable) {
  Timeline timeline = addCommunication(generated("circular", 2, 2, 4));
  EXPECT_EQ("\n" + drawReport(timeline, *simulate(timeline, {}),
                              *steadyStep(timeline, {})),
            R"(
makespan 18, bubble 11.1 %, idle 11.1 %
without a step barrier: 18 a step, bubble 11.1 %
rank  busy  bubble  activations  of 1f1b  received F  received B
   0    16  11.1 %            4  200.0 %           3           1
   1    16  11.1 %            4  200.0 %           1           3
)");
}

TEST(Json, holdsEveryAction) {
  for (const Example &example : examples()) {
    Timeline timeline = addCommunication(example.timeline);
    auto simulation = simulate(timeline, {});
    auto json = nlohmann::json::parse(
        drawJson(timeline, *simulation, {7, 0.25}, example.name), nullptr,
        false);
    ASSERT_FALSE(json.is_discarded());
    EXPECT_EQ(json["makespan"].get<double>(), simulation->makespan);
    EXPECT_EQ(json["steady_step"], 7);
    EXPECT_EQ(json["steady_bubble"], 0.25);
    EXPECT_EQ(json["ranks"].get<int>(), timeline.shape.stages);
    ASSERT_EQ(json["timeline"].size(), timeline.ranks.size());
    for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
      const auto &actions = json["timeline"][rank]["actions"];
      ASSERT_EQ(actions.size(), timeline.ranks[rank].size());
      for (size_t i = 0; i < actions.size(); ++i)
        EXPECT_EQ(actions[i]["action"].get<std::string>(),
                  toString(timeline.ranks[rank][i]));
    }
  }
}

// Each value that crosses ranks is an arrow with a start and an end.
TEST(Trace, hasSlicesAndArrows) {
  Timeline timeline = generated("circular", 3, 2, 3);
  auto trace = nlohmann::json::parse(
      drawTrace(timeline, *simulate(timeline, {}), "circular"), nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  std::map<std::string, int> phases;
  for (const auto &event : trace["traceEvents"])
    ++phases[event["ph"].get<std::string>()];
  EXPECT_EQ(phases["X"], 2 * 6 * 3);
  EXPECT_EQ(phases["s"], 2 * 5 * 3);
  EXPECT_EQ(phases["f"], 2 * 5 * 3);
  EXPECT_EQ(phases["M"], 1 + 2 * 3);
}

/// Windows, reductions and copies, each of which takes time.
Timeline withTransfers() {
  std::string error;
  Timeline timeline = offloadResiduals(generated("circular", 2, 2, 2),
                                       std::vector<bool>(4, true), 1);
  return *gatherWeights(timeline, {}, error);
}

CostTable costsOfTransfers() {
  CostTable costs;
  costs.unshard = 3;
  costs.reduceGrad = costs.offload = costs.fetch = 1;
  return costs;
}

// Transfers run beside computation: the grid has no slots for them, and shows
// where a rank waits.
TEST(Grid, leavesTransfersOut) {
  EXPECT_EQ(grid(withTransfers()), grid(generated("circular", 2, 2, 2)));
  EXPECT_EQ(grid(withTransfers(), costsOfTransfers()), R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13
rank 0  ~   ~   ~   0F0 0F1 ~   2F0 2F1 .   .   2B0 2B1 0B0 0B1
rank 1  .   .   .   .   1F0 1F1 .   3F0 3F1 3B0 3B1 1B0 1B1 ~
)");
}

TEST(Trace, hasALaneForEachKindOfTransfer) {
  Timeline timeline = withTransfers();
  auto trace = nlohmann::json::parse(
      drawTrace(timeline, *simulate(timeline, costsOfTransfers()), "circular"),
      nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  std::map<int, std::string> names;
  std::map<std::string, std::set<std::string>> lanes;
  for (const auto &event : trace["traceEvents"])
    if (event["name"] == "thread_name")
      names[event["tid"].get<int>()] = event["args"]["name"];
    else if (event["ph"] == "X")
      lanes[names[event["tid"].get<int>()]].insert(
          event["cat"].get<std::string>());
  using Kinds = std::set<std::string>;
  for (const char *rank : {"rank 0", "rank 1"}) {
    EXPECT_EQ(lanes[rank], (Kinds{"F", "B", "wait"}));
    for (const char *kind : {"UNSHARD", "REDUCE_GRAD", "OFFLOAD", "FETCH"})
      EXPECT_EQ(lanes[std::string(rank) + " " + kind], Kinds{kind});
  }
}

TEST(Svg, hasALaneForEachKindOfTransfer) {
  Timeline timeline = withTransfers();
  std::string svg =
      drawSvg(timeline, *simulate(timeline, costsOfTransfers()), "circular");
  EXPECT_NE(svg.find(">0UNSHARD</text>"), std::string::npos);
  size_t rectangles = 0, actions = 0;
  for (size_t at = 0; (at = svg.find("<rect", at)) != std::string::npos; ++at)
    ++rectangles;
  for (const std::vector<Action> &row : timeline.ranks)
    for (const Action &action : row)
      actions += action.kind != ActionKind::Reshard;
  // Each rank waits for a reduction, rank 0 for two gathers too.
  EXPECT_EQ(rectangles, 1 + actions + 4);
  EXPECT_NE(svg.find("<title>waits for UNSHARD</title>"), std::string::npos);
}

/// The number after `key` in the first element of a picture with `mark`.
int numberIn(const std::string &svg, const std::string &mark,
             const std::string &key) {
  size_t line = svg.rfind('\n', svg.find(mark)) + 1;
  return std::stoi(svg.substr(svg.find(key + "=\"", line) + key.size() + 2));
}

// The width of a picture is time, whatever is long and short.
TEST(Svg, isDrawnToScale) {
  CostTable costs;
  costs.forward = 2;
  costs.backward = 5.5;
  Timeline timeline = generated("1f1b", 2, 1, 1);
  std::string svg = drawSvg(timeline, *simulate(timeline, costs), "1f1b");
  int forward = 34, backward = 94; // the shortest has 34 pixels
  EXPECT_EQ(numberIn(svg, "<title>0F0<", " width"), forward - 2);
  EXPECT_EQ(numberIn(svg, "<title>1B0<", " width"), backward - 2);
  EXPECT_EQ(numberIn(svg, "<title>1B0<", " x"), 64 + 2 * forward);
  EXPECT_EQ(numberIn(svg, "<title>0B0<", " x"), 64 + 2 * forward + backward);
  EXPECT_NE(svg.find(">10</text>"), std::string::npos); // a label of the axis
}

TEST(Svg, ticksAreRoundNumbers) {
  using Ticks = std::vector<double>;
  EXPECT_EQ(roundTicks(0, 10, 5), (Ticks{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(roundTicks(0.5, 3.9, 4), (Ticks{1, 2, 3}));
  EXPECT_EQ(roundTicks(-3, 3, 3), (Ticks{-2, 0, 2}));
  EXPECT_EQ(roundTicks(7, 7, 5), Ticks{7});
}

TEST(Svg, ticksEndWhereNumbersDifferByTheirLastBit) {
  for (double low : {1e-3, 1.0, 2e8, 1e300}) {
    double high = std::nextafter(low, INFINITY);
    EXPECT_EQ(roundTicks(low, high, 5), std::vector<double>{low});
    EXPECT_LE(roundTicks(low, low * (1 + 1e-11), 5).size(), 6u);
  }
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(roundTicks(0, infinity, 5), std::vector<double>{0});
}

TEST(Report, saysWhatIsExposed) {
  Timeline timeline = withTransfers();
  EXPECT_EQ("\n" + drawReport(timeline, *simulate(timeline, costsOfTransfers()),
                              *steadyStep(timeline, costsOfTransfers())),
            R"(
makespan 15, bubble 46.7 %, idle 27.3 %
without a step barrier: 15 a step, bubble 46.7 %
rank  busy  bubble  activations  of 1f1b  offloaded  exposed OFFLOAD  exposed FETCH  windows  exposed UNSHARD  gradients  exposed REDUCE_GRAD
   0     8  46.7 %            1   50.0 %          2                0              0        2                4          2                    1
   1     8  46.7 %            1   50.0 %          2                0              0        2                0          2                    1
)");
}

TEST(Svg, labelsLongNames) {
  Timeline timeline = generated("1f1b", 12, 1, 100);
  std::string svg = drawSvg(timeline, *simulate(timeline, {}), "1f1b");
  for (const char *name : {">0F0</text>", ">3B15</text>", ">11B99</text>"})
    EXPECT_NE(svg.find(name), std::string::npos) << name;
}

TEST(Svg, hasARectangleForEachAction) {
  Timeline timeline = generated("1f1b", 3, 1, 5);
  std::string svg = drawSvg(timeline, *simulate(timeline, {}), "a<b&c\x80");
  size_t rectangles = 0;
  for (size_t at = 0; (at = svg.find("<rect", at)) != std::string::npos; ++at)
    ++rectangles;
  EXPECT_EQ(rectangles, 1u + 2 * 3 * 5);
  EXPECT_NE(svg.find("a&lt;b&amp;c?, bubble 28.6 %"), std::string::npos);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

} // namespace
