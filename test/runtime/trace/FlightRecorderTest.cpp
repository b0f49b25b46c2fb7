// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/FlightRecorder.h"
#include "runtime/program/Program.h"
#include "runtime/trace/FlightWriter.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <unistd.h>

using namespace rota;
using namespace rota::test;
using nlohmann::json;

namespace {

/// One stage: 3F0, 3F1, then 2SEND_B1.
Program makeProgram() {
  Program program;
  program.mesh = {{"stage", 1}};
  Stage &stage = program.stages.emplace_back();
  ActionTemplate forward, send;
  forward.chunk = 3;
  send.kind = ActionKind::SendBackward;
  send.chunk = 2;
  stage.addAction(forward, 0);
  stage.addAction(forward, 1);
  stage.addAction(send, 1);
  return program;
}

/// Events as "B 3F0" in the order of the file.
std::vector<std::string> eventsOf(const std::string &text) {
  std::vector<std::string> events;
  json trace = json::parse(text);
  for (const json &event : trace["traceEvents"])
    if (event["ph"] != "M")
      events.push_back(event["ph"].get<std::string>() + " " +
                       event["name"].get<std::string>());
  return events;
}

} // namespace

TEST(FlightRecorder, KeepsTheLastEvents) {
  Program program = makeProgram();
  FlightRecorder recorder(program, 0, 0);
  int64_t count = FlightRecorder::kEvents + 100;
  for (int64_t i = 0; i < count; ++i)
    recorder.add(FlightEvent::StepBegin, i);
  EXPECT_EQ(recorder.size(), static_cast<uint64_t>(count));
  for (int64_t i = 100; i < count; ++i)
    EXPECT_EQ(recorder.at(i).value, i);
  EXPECT_LE(recorder.at(100).time, recorder.at(count - 1).time);
  recorder.add(FlightEvent::DeviceReached, -1);
  EXPECT_EQ(recorder.at(count).value, -1);
  EXPECT_EQ(recorder.at(count).event, FlightEvent::DeviceReached);
}

TEST(FlightRecorder, WritesATraceAndPrintsTheLastFive) {
  TemporaryFolder folder;
  Program program = makeProgram();
  FlightRecorder first(program, 4, 0), second(program, 5, 0);
  first.add(FlightEvent::StepBegin, 7);
  second.add(FlightEvent::StepBegin, 7);
  second.add(FlightEvent::ActionBegin, 0);
  second.add(FlightEvent::ActionEnd, 0);
  second.add(FlightEvent::TransferStart, 2);
  second.add(FlightEvent::WaitBegin, 2);
  second.add(FlightEvent::Failure, 0);
  testing::internal::CaptureStderr();
  {
    FlightReport report(folder.path("flight.json"), /*isNew=*/false,
                        /*prints=*/true);
    reportFlight(5);
    reportFlight(4); // once
  }
  std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(eventsOf(folder.read("flight.json")),
            (std::vector<std::string>{"B step 7", "B step 7", "B 3F0", "E 3F0",
                                      "i start of 2SEND_B1",
                                      "B wait for 2SEND_B1", "i failure"}));
  EXPECT_NE(printed.find("last events of 2 of 2 ranks of this process; all "
                         "kept ones are in '" +
                         folder.path("flight.json") + "', for Perfetto\n"),
            std::string::npos)
      << printed;
  size_t failed = printed.find("  rank 5: 3F0 begins 0.0");
  EXPECT_NE(failed, std::string::npos) << printed;
  EXPECT_NE(printed.find("wait for 2SEND_B1 begins 0.0"), std::string::npos);
  EXPECT_GT(printed.find("  rank 4: step 7 begins 0.0"), failed);
  EXPECT_EQ(printed.find("last events", 5), std::string::npos);
}

TEST(FlightRecorder, ANewReportFollowsNoLink) {
  TemporaryFolder folder;
  folder.write("victim", "precious");
  std::filesystem::create_symlink("victim", folder.path("flight.json"));
  Program program = makeProgram();
  FlightRecorder recorder(program, 4, 0);
  recorder.add(FlightEvent::StepBegin, 7);
  FlightReport report(folder.path("flight.json"), /*isNew=*/true,
                      /*prints=*/false);
  reportFlight();
  EXPECT_EQ(folder.read("victim"), "precious");
  EXPECT_EQ(eventsOf(folder.read("flight.json")),
            std::vector<std::string>{"B step 7"});
}

TEST(FlightRecorder, SaysNothingWithoutAReport) {
  testing::internal::CaptureStderr();
  reportFlight();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(FlightRecorder, NumbersThatAStageLacksAreNotRead) {
  Program program = makeProgram();
  FlightRecorder recorder(program, 0, 0);
  recorder.add(FlightEvent::ActionBegin, 99);
  recorder.add(FlightEvent::DeviceReached, -1);
  TemporaryFolder folder;
  FlightReport report(folder.path("flight.json"), /*isNew=*/false,
                      /*prints=*/false);
  reportFlight();
  EXPECT_EQ(eventsOf(folder.read("flight.json")),
            (std::vector<std::string>{"B -", "i device at -"}));
}

TEST(FlightRecorderDeathTest, ACrashLeavesTheEventsAndItsSignal) {
  TemporaryFolder folder;
  Program program = makeProgram();
  FlightRecorder recorder(program, 0, 0);
  recorder.add(FlightEvent::ActionBegin, 1);
  EXPECT_EXIT(
      {
        FlightReport report(folder.path("flight.json"), /*isNew=*/false,
                            /*prints=*/true);
        std::raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "rank 0: 3F1 begins");
  EXPECT_EQ(eventsOf(folder.read("flight.json")),
            (std::vector<std::string>{"B 3F1"}));
}
