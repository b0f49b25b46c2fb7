// SPDX-License-Identifier: Apache-2.0
//
// Planned times beside real ones.
#include "runtime/trace/ChromeTrace.h"
#include "runtime/trace/PlannedTimes.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace rota;
using nlohmann::json;

namespace {

/// One stage: F of 1 s, then B of 3 s.
Program makeProgram(double scale) {
  Program program;
  program.mesh = {{"stage", 1}};
  Stage &stage = program.stages.emplace_back();
  ActionTemplate forward, backward;
  forward.estimate = 1 * scale;
  backward.kind = ActionKind::Backward;
  backward.estimate = 3 * scale;
  stage.addAction(forward, 0);
  stage.addAction(backward, 0);
  return program;
}

std::map<std::string, int> lanesOf(const json &trace) {
  std::map<std::string, int> lanes;
  for (const json &event : trace["traceEvents"])
    if (event["name"] == "thread_name")
      lanes[event["args"]["name"]] = event["tid"];
  return lanes;
}

} // namespace

// The real step computes for 2 + 6 s, twice as long as planned, from 10 s on.
TEST(ChromeTrace, HasPlannedTimesScaledToTheRealOnes) {
  json trace =
      json::parse(chromeTrace(makeProgram(1), {{0, 0, 0, 4, true, 10, 12},
                                               {0, 0, 1, 4, true, 15, 21}}));
  std::map<std::string, int> lanes = lanesOf(trace);
  ASSERT_EQ(lanes.size(), 2u);
  std::map<std::string, std::pair<double, double>> planned;
  for (const json &event : trace["traceEvents"])
    if (event["ph"] == "X" && event["tid"] == lanes["rank 0 planned"]) {
      EXPECT_EQ(event["cat"], "planned");
      EXPECT_EQ(event["args"]["run"], 4);
      planned[event["name"]] = {event["ts"], event["dur"]};
    }
  EXPECT_EQ(planned, (std::map<std::string, std::pair<double, double>>{
                         {"0F0", {10e6, 2e6}}, {"0B0", {12e6, 6e6}}}));
}

TEST(ChromeTrace, HasNoPlannedTimesWithoutEstimates) {
  EXPECT_FALSE(plannedTimes(makeProgram(0)));
  json trace =
      json::parse(chromeTrace(makeProgram(0), {{0, 0, 0, 0, true, 10, 12}}));
  EXPECT_EQ(lanesOf(trace).size(), 1u);
}

TEST(ChromeTrace, HasNoPlannedTimesOfEvaluations) {
  json trace =
      json::parse(chromeTrace(makeProgram(1), {{0, 0, 0, 0, false, 10, 12}}));
  EXPECT_EQ(lanesOf(trace).size(), 1u);
}

// Halves that ran at the same time would hide one another in one lane.
TEST(ChromeTrace, HasALaneForSecondHalvesOfPairs) {
  Program program = makeProgram(1);
  program.stages[0].templates[0].startsPair = true;
  json trace = json::parse(chromeTrace(
      program, {{0, 0, 0, 4, true, 10, 12}, {0, 0, 1, 4, true, 10, 15}}));
  std::map<std::string, int> lanes = lanesOf(trace);
  std::map<std::string, int> places;
  for (const json &event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "training")
      places[event["name"]] = event["tid"];
  EXPECT_EQ(places["0F0"], lanes.at("rank 0"));
  EXPECT_EQ(places["0B0"], lanes.at("rank 0 pair"));
}
