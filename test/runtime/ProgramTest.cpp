// SPDX-License-Identifier: Apache-2.0
//
// The program's JSON form and the checks made before a program runs.
#include "runtime/program/Program.h"
#include "runtime/program/Verify.h"

#include <gtest/gtest.h>

using namespace rota;

namespace {

Action makeAction(ActionKind kind, int peer, int64_t offset, int64_t bytes,
                  std::vector<int> waits = {}) {
  Action action;
  action.kind = kind;
  action.peer = peer;
  action.offset = offset;
  action.bytes = bytes;
  action.waits = std::move(waits);
  return action;
}

/// Two ranks: the first computes and sends, the second receives and computes.
Program makeProgram() {
  Program p;
  p.model = "line";
  p.schedule = "by hand";
  p.timeline = "0F0\n1F0 \"quoted\"";
  p.bubble = 0.25;
  p.vocabulary = 17;
  p.input = {ElementType::I32, {2, 3}, {}};
  p.logits = {ElementType::BF16, {2, 3, 17}, {}};
  p.parameterCount = 6;
  p.tasks = {"forward"};
  p.kernels = {"update", "square"};
  Parameter weight;
  weight.name = "layers.{layer}.weight";
  weight.shape = {2, 3};
  weight.layers = {0, 2};
  weight.init = {Initializer::Kind::Normal, 0.0, 0.02};
  weight.compute = ElementType::BF16;
  weight.rows = 2;
  weight.updateKernel = 0;
  weight.squareKernel = 1;
  p.parameters = {weight};
  p.auxiliaryLosses = {{"balance", 0.01, 64.0}};
  Stage rank;
  rank.arenaBytes = 4096;
  rank.regions = {{"parameters", 0, 256}};
  rank.tables = {{2048, 4, 1.5, {1.0, 0.01}}};
  Update update{0, 2, 0, 64, 64, 128, 192, 256, {{0, 256}}, {{1, 64}}};
  rank.updates = {update};
  p.mesh = {{"stage", 2}};
  p.stages = {rank, rank};
  p.stages[1].auxiliarySums = {{3, 3072, {0}}};
  p.stages[1].auxiliaryCotangents = 3200;
  p.stages[1].updates.clear();
  Action compute;
  Call call{0, {0, -1, 64, -1, -1, 128, -1, -1, -1, -1, -1, 512, -1, -1}};
  compute.calls = {call, call};
  compute.evalCalls = {call};
  p.stages[0].actions = {compute,
                         makeAction(ActionKind::SendForward, 1, 1024, 64)};
  compute.waits = {0};
  p.stages[1].actions = {makeAction(ActionKind::RecvForward, 0, 512, 64),
                         compute};
  return p;
}

bool verifyFails(const Program &program, const std::string &expected) {
  std::string error;
  bool ok = verify(program, error);
  EXPECT_NE(error.find(expected), std::string::npos) << error;
  return !ok;
}

} // namespace

TEST(Program, RoundTrips) {
  Program program = makeProgram(), back;
  std::string text = toJson(program), error;
  ASSERT_TRUE(fromJson(text.data(), text.size(), back, error)) << error;
  EXPECT_EQ(toJson(back), text);
  EXPECT_EQ(back.timeline, program.timeline);
  EXPECT_EQ(back.parameters[0].compute, ElementType::BF16);
  EXPECT_EQ(back.parameters[0].layers, program.parameters[0].layers);
  EXPECT_EQ(back.stages[0].actions[0].calls[1].frame[11], 512);
  EXPECT_EQ(back.stages[0].updates[0].copies[0].stage, 1);
  EXPECT_EQ(back.stages[1].actions[0].kind, ActionKind::RecvForward);
  EXPECT_EQ(back.stages[0].tables[0].frequencies[1], 0.01);
  EXPECT_EQ(back.auxiliaryLosses[0].weight, 64.0);
  EXPECT_EQ(back.stages[1].auxiliarySums[0].losses, std::vector<int>{0});
}

TEST(Program, RefusesTextThatIsNotAProgram) {
  Program program;
  std::string error;
  for (std::string text : {"", "{", "[]", "3", "{}"}) {
    EXPECT_FALSE(fromJson(text.data(), text.size(), program, error)) << text;
    EXPECT_FALSE(error.empty());
  }
}

TEST(Program, NamesTheFieldThatIsWrong) {
  Program program = makeProgram();
  std::string text = toJson(program), error;
  std::string number = "\"arenaBytes\":4096";
  std::string broken = text;
  broken.replace(broken.find(number), number.size(), "\"arenaBytes\":\"big\"");
  EXPECT_FALSE(fromJson(broken.data(), broken.size(), program, error));
  EXPECT_EQ(error, "field 'stages[0].arenaBytes': expected an integer, got "
                   "string");
  broken = text;
  broken.replace(broken.find("RECV_F"), 6, "RECV_X");
  EXPECT_FALSE(fromJson(broken.data(), broken.size(), program, error));
  EXPECT_EQ(error, "field 'stages[1].actions[0].kind': unknown name 'RECV_X'");
}

TEST(Verify, AcceptsAGoodProgram) {
  std::string error;
  EXPECT_TRUE(verify(makeProgram(), error)) << error;
}

TEST(Verify, RefusesPlacesOfAuxiliaryLosses) {
  Program program = makeProgram();
  program.stages[1].auxiliarySums[0].offset = 4094;
  EXPECT_TRUE(verifyFails(program, "stage 1: auxiliary losses of layer 3: "
                                   "expected bytes within the arena"));
  program = makeProgram();
  program.stages[1].auxiliarySums[0].losses = {1};
  EXPECT_TRUE(verifyFails(program, "auxiliary losses of layer 3: expected a "
                                   "number below 1, got 1"));
  program = makeProgram();
  program.stages[1].auxiliaryCotangents = 4094;
  EXPECT_TRUE(verifyFails(program, "stage 1: cotangents of auxiliary losses"));
  program = makeProgram();
  program.stages[0].startCalls = {program.stages[0].actions[0].calls[0]};
  EXPECT_TRUE(verifyFails(program, "stage 0: expected a place of the losses"));
}

TEST(Verify, RefusesWhatLiesOutsideTheArena) {
  Program p = makeProgram();
  p.stages[0].updates[0].firstMoment = 4096;
  EXPECT_TRUE(verifyFails(p, "first moment: expected bytes within the arena of "
                             "4096, got offset 4096 and 24 bytes"));
  p = makeProgram();
  p.stages[0].actions[0].calls[0].frame[2] = 5000;
  EXPECT_TRUE(verifyFails(p, "stage 0: chunk 0, microbatch 0, F (action 0)"));
}

TEST(Verify, RefusesUnknownTasksKernelsAndStages) {
  Program p = makeProgram();
  p.stages[0].actions[0].calls[0].task = 1;
  EXPECT_TRUE(verifyFails(p, "task: expected a number below 1, got 1"));
  p = makeProgram();
  p.parameters[0].updateKernel = 2;
  EXPECT_TRUE(verifyFails(p, "expected a number below 2, got 2"));
  p = makeProgram();
  p.stages[0].actions[1].peer = 2;
  EXPECT_TRUE(verifyFails(p, "peer: expected a number below 2, got 2"));
}

TEST(Verify, RefusesTimelinesThatDoNotMeet) {
  Program p = makeProgram();
  p.stages[0].actions[1].bytes = 32;
  EXPECT_TRUE(verifyFails(p, "expected 32 bytes as in stage 0"));
  p = makeProgram();
  p.stages[0].actions.pop_back();
  EXPECT_TRUE(verifyFails(p, "the timelines never end: stage 1: chunk 0"));
  p = makeProgram();
  p.stages[1].actions[1].waits = {1};
  EXPECT_TRUE(verifyFails(p, "wait for an earlier send, receive or transfer"));
}

TEST(Verify, RefusesAMeshThatDoesNotFitTheStages) {
  Program p = makeProgram();
  p.mesh = {{"data", 2}};
  EXPECT_TRUE(verifyFails(p, "expected a mesh axis 'stage'"));
  p.mesh = {{"data", 2}, {"stage", 3}};
  EXPECT_TRUE(
      verifyFails(p, "the size of mesh axis 'stage': expected 2, got 3"));
  p.mesh = {{"data", 0}, {"stage", 2}};
  EXPECT_TRUE(verifyFails(p, "mesh axis 'data': expected at least 1 rank"));
  p.mesh = {{"stage", 2}, {"data", 2}, {"data", 2}};
  EXPECT_TRUE(verifyFails(p, "mesh axis 'data' is there twice"));
}

TEST(Verify, RefusesDivisionsAndCollectivesThatDisagree) {
  Program p = makeProgram();
  p.mesh = {{"data", 2}, {"stage", 2}};
  p.parameters[0].storageDivision = {{0}, {0}};
  EXPECT_TRUE(verifyFails(p, "storage division: expected each axis once"));
  p.parameters[0].storageDivision = {{2}};
  EXPECT_TRUE(verifyFails(p, "axis: expected a number below 2, got 2"));
  p.parameters[0].storageDivision = {};
  p.parameters[0].optimizerDivision = {{0}};
  EXPECT_TRUE(
      verifyFails(p, "expected a reduce-scatter or slice from storage"));
  Collective scatter;
  scatter.kind = Collective::Kind::ReduceScatter;
  scatter.axes = {0};
  scatter.size = 3;
  scatter.inner = 2;
  p.collectives = {scatter};
  p.parameters[0].reduce = {0};
  EXPECT_TRUE(verifyFails(p, "reduce: output elements: expected 3, got 4"));
  p.collectives[0].size = 2;
  p.collectives[0].inner = 3;
  EXPECT_TRUE(verifyFails(p, "expected a refresh"));
  Collective gather = p.collectives[0];
  gather.kind = Collective::Kind::AllGather;
  p.collectives.push_back(gather);
  p.parameters[0].refresh = 1;
  EXPECT_TRUE(verifyFails(p, "refresh: collective 1 has another element type"));
  p.collectives[1].type = ElementType::BF16;
  std::string error;
  EXPECT_TRUE(verify(p, error)) << error;
}

TEST(Verify, RefusesTransfersOutsideTheirArenas) {
  Program p = makeProgram();
  Action offload;
  offload.kind = ActionKind::Offload;
  offload.transfers = {{-1, 64, 0, 128}};
  p.stages[0].actions.push_back(offload);
  EXPECT_TRUE(verifyFails(p, "expected bytes within the host arena of 0"));
  p.stages[0].hostBytes = 128;
  std::string error;
  EXPECT_TRUE(verify(p, error)) << error;
  p.stages[0].actions.back().kind = ActionKind::Unshard;
  EXPECT_TRUE(verifyFails(p, "collective: expected a number below 0, got -1"));
}

TEST(Verify, ClockTakesTheLongestPath) {
  Program p = makeProgram();
  Clock clock;
  std::string error;
  ASSERT_TRUE(runClock(p, {{2.0, 0.0}, {0.0, 3.0}}, clock, error)) << error;
  EXPECT_EQ(clock.end[0][0], 2.0);
  EXPECT_EQ(clock.end[1][0], 2.0);
  EXPECT_EQ(clock.makespan, 5.0);
}
