// SPDX-License-Identifier: Apache-2.0
//
// The program's binary form and the checks made before a program runs.
#include "runtime/program/Program.h"
#include "runtime/program/Verify.h"
#include "test/runtime/TwoStageProgram.h"

#include <gtest/gtest.h>

#include <limits>

#include <algorithm>
#include <random>

using namespace rota;
using namespace rota::test;

namespace {

bool verifyFails(const Program &program, const std::string &expected) {
  std::string error;
  bool ok = verify(program, error);
  EXPECT_NE(error.find(expected), std::string::npos) << error;
  return !ok;
}

} // namespace

TEST(Program, RoundTrips) {
  Program program = makeProgram(), back;
  program.parameters[0].joined = {"layers.{layer}.joined", 1, 0, 3};
  std::string bytes = toBytes(program), error;
  ASSERT_TRUE(fromBytes(bytes, back, error)) << error;
  EXPECT_EQ(toBytes(back), bytes);
  EXPECT_EQ(back.timeline, program.timeline);
  EXPECT_EQ(back.parameters[0].compute, ElementType::BF16);
  EXPECT_EQ(back.parameters[0].layers, program.parameters[0].layers);
  EXPECT_EQ(back.parameters[0].init.scale, 0.02);
  EXPECT_EQ(back.stages[0].templates[0].calls[1].frame[11].offset, 512);
  EXPECT_EQ(back.stages[0].templates[0].calls[1].layer, 3);
  EXPECT_EQ(back.stages[0].updates[0].copies[0].stage, 1);
  EXPECT_EQ(back.stages[1].kindOf(0), ActionKind::RecvForward);
  EXPECT_EQ(back.stages[1].waitsOf(1)[0], 0);
  EXPECT_EQ(back.stages[0].tables[0].frequencies[1], 0.01);
  EXPECT_EQ(back.auxiliaryLosses[0].weight, 64.0);
  EXPECT_EQ(back.lossTerms[0].coefficient, 0.25);
  EXPECT_EQ(back.lossCalls, 3);
  EXPECT_EQ(back.parameters[0].states[0].initial, 0.5);
  EXPECT_EQ(back.parameters[0].joined.name, "layers.{layer}.joined");
  EXPECT_EQ(back.parameters[0].joined.size, 3);
  EXPECT_EQ(back.constantTensors, program.constantTensors);
  EXPECT_EQ(back.scalars, program.scalars);
  EXPECT_EQ(back.options[0].most, 0.999);
  EXPECT_EQ(back.stages[0].step.scratch, 640);
  EXPECT_EQ(back.stages[1].auxiliarySums[0].losses, std::vector<int>{0});
  EXPECT_EQ(back.observations, program.observations);
  EXPECT_EQ(back.stages[1].observedTables[0].offset, 3264);
  EXPECT_EQ(back.modelOptions[0].value, "1.5");
}

TEST(Program, IntegersOfAllSizesRoundTrip) {
  std::string error;
  for (int64_t value : {int64_t(0), int64_t(-1), int64_t(63), int64_t(64),
                        int64_t(-65), int64_t(1) << 40, INT64_MAX, INT64_MIN}) {
    Program program, back;
    program.parameterCount = value;
    ASSERT_TRUE(fromBytes(toBytes(program), back, error)) << error;
    EXPECT_EQ(back.parameterCount, value);
  }
}

TEST(Program, RefusesBytesThatAreNotAProgram) {
  Program program;
  std::string error;
  std::string start = toBytes(program).substr(0, 8);
  for (std::string bytes : {std::string(), std::string("{"), start,
                            "rotaprg1" + toBytes(program).substr(8)}) {
    EXPECT_FALSE(fromBytes(bytes, program, error)) << bytes;
    EXPECT_NE(error.find("expected a program's description"), std::string::npos)
        << error;
  }
}

TEST(Program, RefusesEveryDamagedByteAndEveryTruncation) {
  std::string bytes = toBytes(makeProgram()), error;
  Program program;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 0x10;
    EXPECT_FALSE(fromBytes(damaged, program, error)) << i;
    EXPECT_NE(error.find("description"), std::string::npos) << error;
    EXPECT_FALSE(fromBytes(bytes.substr(0, i), program, error)) << i;
    EXPECT_NE(error.find("description"), std::string::npos) << error;
  }
}

/// Has the checksum fit the fields, so that the reader sees them.
std::string sealed(const std::string &fields) {
  uint64_t sum = 0xcbf29ce484222325;
  for (char byte : fields)
    sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  std::string bytes = toBytes(Program()).substr(0, 8);
  for (int i = 0; i < 8; ++i)
    bytes.push_back(static_cast<char>(sum >> (8 * i)));
  return bytes + fields;
}

TEST(Program, NamesTheFieldThatIsWrong) {
  std::string fields = toBytes(makeProgram()).substr(16), error;
  Program program;
  ASSERT_TRUE(fromBytes(sealed(fields), program, error)) << error;
  EXPECT_FALSE(fromBytes(sealed(fields + "x"), program, error));
  EXPECT_EQ(error,
            "expected the end of the program's description, got 1 bytes more");
  EXPECT_FALSE(fromBytes(sealed(fields.substr(0, 3)), program, error));
  EXPECT_EQ(error, "field 'model': expected at most 1 elements, got 4");
  // The kind of the second stage's first template, in front of its chunk and
  // peer, is after the number of templates.
  Program one = makeProgram(), other = makeProgram();
  other.stages[1].templates[0].kind = ActionKind::RecvBackward;
  std::string changed = toBytes(other).substr(16);
  size_t at =
      std::mismatch(fields.begin(), fields.end(), changed.begin()).first -
      fields.begin();
  changed[at] = 77;
  EXPECT_FALSE(fromBytes(sealed(changed), program, error));
  EXPECT_EQ(error, "field 'stages[1].templates[0].kind': expected a value of "
                   "at most 14, got 77");
}

/// Whatever the bytes are, the outcome is a program that holds or an error.
TEST(Program, SurvivesRandomDamage) {
  std::mt19937 random(1);
  std::string fields = toBytes(makeProgram()).substr(16);
  int read = 0, held = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = fields;
    for (size_t n = random() % 4 + 1; n > 0; --n)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    if (random() % 4 == 0)
      damaged.resize(random() % damaged.size());
    Program program;
    std::string error;
    bool good = fromBytes(sealed(damaged), program, error);
    EXPECT_EQ(good, error.empty());
    read += good;
    held += good && verify(program, error);
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(held, 100);
  EXPECT_LT(held, read);
}

TEST(Verify, AcceptsAGoodProgram) {
  std::string error;
  EXPECT_TRUE(verify(makeProgram(), error)) << error;
}

TEST(Verify, RefusesObservations) {
  Program program = makeProgram();
  program.stages[1].observedTables[0].offset = 4096 - 127; // with its mean
  EXPECT_TRUE(verifyFails(program, "stage 1: observations of layer 3: "
                                   "expected bytes within the arena"));
  program.observations[0].isAveraged = false;
  std::string error;
  EXPECT_TRUE(verify(program, error)) << error;
  program = makeProgram();
  program.stages[1].observedTables[0].observations = {1};
  EXPECT_TRUE(verifyFails(program, "observations of layer 3: expected a number "
                                   "below 1, got 1"));
  program = makeProgram();
  program.observations[0].rows = 3;
  EXPECT_TRUE(verifyFails(program,
                          "observation 'load': expected columns and "
                          "rows that divide 4 parts of sequences, got 3 x "
                          "5"));
  program.observations[0].parts = 3;
  EXPECT_TRUE(verify(program, error)) << error;
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
  program.stages[0].startCalls = {program.stages[0].templates[0].calls[0]};
  EXPECT_TRUE(verifyFails(program, "stage 0: expected a place of the losses"));
}

TEST(Verify, RefusesPlacesOfLosses) {
  // Each microbatch has 3 calls with 3 numbers.
  Program program = makeProgram();
  Stage &stage = program.stages[1];
  int64_t bytes = program.microbatches * 3 * 3 * 4;
  stage.loss = stage.arenaBytes - bytes;
  std::string error;
  EXPECT_TRUE(verify(program, error)) << error;
  stage.loss += 4;
  EXPECT_TRUE(verifyFails(program, "stage 1: losses"));
  program = makeProgram();
  program.lossCalls = 0;
  EXPECT_TRUE(verifyFails(
      program, "expected from 1 to 2147483647 calls of the loss in a "
               "microbatch, got 0"));
}

TEST(Verify, RefusesWhatLiesOutsideTheArena) {
  Program p = makeProgram();
  p.stages[0].updates[0].states = 4096;
  EXPECT_TRUE(verifyFails(p, "states: expected bytes within the arena of "
                             "4096, got offset 4096 and 64 bytes"));
  p = makeProgram();
  p.parameters[0].states[0].offset = 41;
  EXPECT_TRUE(verifyFails(p, "state 'moment' of 'layers.{layer}.weight': "
                             "expected bytes within the states of 64, got "
                             "offset 41 and 24 bytes"));
  p = makeProgram();
  p.stages[0].step.scalars = 4089;
  EXPECT_TRUE(verifyFails(p, "stage 0: scalars: expected bytes within"));
  p = makeProgram();
  p.stages[1].step.constants = 4096 - 64 - 2;
  EXPECT_TRUE(verifyFails(p, "stage 1: constant tensor: expected bytes within "
                             "the arena of 4096, got offset 4094 and 3 "
                             "bytes"));
  p = makeProgram();
  p.stages[0].step.constants = -1;
  EXPECT_TRUE(verifyFails(p, "constant tensor: expected a place, got"));
  p = makeProgram();
  p.stages[0].step.squares = 4089;
  EXPECT_TRUE(verifyFails(p, "sums of squares: expected bytes within"));
  p = makeProgram();
  p.stages[0].templates[0].calls[0].frame[2] = 5000;
  EXPECT_TRUE(verifyFails(p, "stage 0: chunk 0, microbatch 0, F (action 0)"));
}

TEST(Verify, RefusesGradientsOfFrozenParameters) {
  Program good = makeProgram();
  Parameter &p = good.parameters[0];
  p.isFrozen = true;
  p.states.clear();
  p.stateBytes = 0;
  p.updateTask = p.squareTask = -1;
  good.stages[0].updates[0].gradient = -1;
  good.stages[0].updates[0].gradients.clear();
  std::string error;
  EXPECT_TRUE(verify(good, error)) << error;
  Program bad = good;
  bad.stages[0].updates[0].gradient = 256;
  EXPECT_TRUE(verifyFails(bad, "'layers.{layer}.weight': expected no gradient, "
                               "as it is frozen"));
  bad = good;
  bad.parameters[0].updateTask = 1;
  EXPECT_TRUE(verifyFails(bad, "parameter 'layers.{layer}.weight': expected no "
                               "gradient, states and update, as it is frozen"));
  bad = good;
  bad.parameters[0].isFrozen = false;
  EXPECT_TRUE(verifyFails(bad, "summed gradient"));
}

TEST(Verify, RefusesAccumulationStepsOutOfBounds) {
  Program p = makeProgram();
  p.accumulationSteps = 0;
  EXPECT_TRUE(
      verifyFails(p, "expected from 1 to 1048576 accumulation steps, got 0"));
}

TEST(Verify, RefusesUnknownTasksKernelsAndStages) {
  Program p = makeProgram();
  p.stages[0].templates[0].calls[0].task = 3;
  EXPECT_TRUE(verifyFails(p, "task: expected a number below 3, got 3"));
  p = makeProgram();
  p.parameters[0].updateTask = 3;
  EXPECT_TRUE(verifyFails(p, "expected a number below 3, got 3"));
  p = makeProgram();
  p.scalars[1].option = "beta2";
  EXPECT_TRUE(verifyFails(p, "a scalar: expected one of the program's options, "
                             "got 'beta2'"));
  p = makeProgram();
  p.scalars[0].factor = -1.0;
  EXPECT_TRUE(verifyFails(p, "a scalar: expected a factor of at least 0"));
  p = makeProgram();
  p.scalars[1].factor = 0.5;
  EXPECT_TRUE(verifyFails(p,
                          "1 unless it is of the learning rate or an option, "
                          "got 0.5"));
  p = makeProgram();
  p.stages[0].templates[1].peer = 2;
  EXPECT_TRUE(verifyFails(p, "peer: expected a number below 2, got 2"));
}

TEST(Verify, RefusesTimelinesThatDoNotMatch) {
  Program p = makeProgram();
  p.stages[0].templates[1].bytes = 32;
  EXPECT_TRUE(verifyFails(p, "expected 32 bytes as in stage 0"));
  p = makeProgram();
  p.stages[0].actions.pop_back();
  EXPECT_TRUE(verifyFails(p, "the timelines never end: stage 1: chunk 0"));
  p = makeProgram();
  p.stages[1].waits = {1};
  EXPECT_TRUE(verifyFails(p, "wait for an earlier send, receive or transfer"));
}

TEST(Verify, RefusesSlotsOutsideTheArena) {
  Program p = makeProgram();
  Stage &stage = p.stages[0];
  stage.templates[0].slotCount = 1;
  stage.templates[0].calls[0].frame[4] = SlotAddress(0, 96);
  stage.actions[0].firstSlot = 1;
  EXPECT_TRUE(verifyFails(p, "action 0: expected slots among the stage's 0"));
  stage.slots = {-1, 4000};
  std::string error;
  EXPECT_TRUE(verify(p, error)) << error;
  stage.slots[1] = 4001;
  EXPECT_TRUE(verifyFails(p, "F (action 0): slot 0: expected bytes within the "
                             "arena of 4096, got offset 4001 and 96 bytes"));
  stage.slots[1] = -1; // an empty block
  EXPECT_TRUE(verify(p, error)) << error;
  stage.templates[0].calls[0].frame[4].slot = 1;
  EXPECT_TRUE(verifyFails(p, "slot: expected a number below 1, got 1"));
  stage.templates[0].calls[0].frame[4] = 96;
  stage.templates[0].calls[0].frame[4].stride = 4096;
  EXPECT_TRUE(verify(p, error)) << error; // there is one microbatch
  p.microbatches = 2;
  EXPECT_TRUE(verifyFails(p, "frame: expected bytes within the arena"));
  stage.actions[0].microbatch = 2;
  EXPECT_TRUE(verifyFails(p, "microbatch: expected a number below 2, got 2"));
  stage.actions[0].templateNumber = 2;
  EXPECT_TRUE(verifyFails(p, "template: expected a number below 2, got 2"));
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
  Update &update = p.stages[0].updates[0];
  EXPECT_TRUE(verifyFails(p, "expected the summed gradient apart from its "
                             "accumulator"));
  update.gradient = 320;
  EXPECT_TRUE(verifyFails(p, "expected what is updated apart from the stored "
                             "copy"));
  update.updated = 384;
  std::string error;
  EXPECT_TRUE(verify(p, error)) << error;
}

TEST(Verify, AcceptsReductionsOverMajorAxesInPlace) {
  Program p = makeProgram();
  p.mesh = {{"data", 2}, {"stage", 2}, {"tensor", 2}};
  Parameter &weight = p.parameters[0];
  weight.shape = {8, 16};
  weight.stateBytes = 128;
  weight.optimizerDivision = {{0, 2}};
  Collective scatter;
  scatter.kind = Collective::Kind::ReduceScatter;
  scatter.axes = {0};
  scatter.size = 128;
  p.collectives = {scatter, scatter};
  p.collectives[1].kind = Collective::Kind::AllGather;
  p.collectives[1].axes = {0, 2};
  p.collectives[1].type = ElementType::BF16;
  weight.reduce = {0};
  weight.refresh = 1;
  std::string error;
  EXPECT_TRUE(verify(p, error)) << error;
  p.collectives[0].axes = {2};
  EXPECT_TRUE(verifyFails(p, "reduce: output elements: expected 32, got 64"));
  weight.reduce = {}; // the gradient is the same on all ranks
  EXPECT_TRUE(verify(p, error)) << error;
}

TEST(Verify, RefusesPartsThatAreNoTensor) {
  Program p = makeProgram();
  p.parameters[0].joined = {"layers.{layer}.joined", 1, 0, 4};
  EXPECT_TRUE(verifyFails(
      p, "joined tensor 'layers.{layer}.joined': expected 4, got 3"));
  Parameter &rest = p.parameters.emplace_back(p.parameters[0]);
  rest.name = "layers.{layer}.rest";
  rest.shape = {2, 1};
  rest.joined.begin = 2;
  EXPECT_TRUE(verifyFails(p, "'layers.{layer}.rest': its place in the tensor: "
                             "expected 3, got 2"));
  rest.joined.begin = 3;
  std::string error;
  EXPECT_TRUE(verify(p, error)) << error;
  rest.joined.dimension = 2;
  EXPECT_TRUE(verifyFails(p, "joined dimension: expected a number below 2"));
  rest.joined.dimension = 1;
  rest.states[0].type = ElementType::BF16;
  EXPECT_TRUE(verifyFails(p, "expected the type, shape and states of "
                             "'layers.{layer}.weight', which is joined"));
  p.parameters.pop_back();
  p.parameters[0].joined.size = 3;
  Parameter &other = p.parameters.emplace_back(p.parameters[0]);
  other.name = p.parameters[0].joined.name;
  other.joined = {};
  EXPECT_TRUE(verifyFails(p, "expected a name that no joined tensor has"));
}

TEST(Verify, RefusesShiftsThatAreNoPosition) {
  Program p = makeProgram();
  p.mesh = {{"context", 2}, {"stage", 2}};
  Collective ring;
  ring.kind = Collective::Kind::Permute;
  ring.axes = ring.order = {0};
  p.collectives = {ring};
  for (int64_t shift : {-1, 2}) {
    p.collectives[0].shift = shift;
    EXPECT_TRUE(verifyFails(
        p, "collective 0: expected a shift below the 2 ranks of the group, "
           "got " +
               std::to_string(shift)));
  }
  p.collectives[0].shift = 1;
  std::string error;
  EXPECT_TRUE(verify(p, error)) << error;
}

TEST(Verify, RefusesShardOffsetsOfNoPosition) {
  Program p = makeProgram();
  p.mesh = {{"context", 2}, {"stage", 2}};
  ShardOffset offset;
  offset.axes = {0};
  offset.shift = 2;
  p.stages[0].shardOffsets.push_back(offset);
  EXPECT_TRUE(verifyFails(
      p, "shard offset: expected a shift below the 2 ranks of the group, got "
         "2"));
  p.stages[0].shardOffsets[0].shift = 1;
  std::string error;
  EXPECT_TRUE(verify(p, error)) << error;
}

TEST(Verify, RefusesTransfersOutsideTheirArenas) {
  Program p = makeProgram();
  ActionTemplate offload;
  offload.kind = ActionKind::Offload;
  offload.transfers = {{-1, 64, 0, 128}};
  p.stages[0].addAction(offload, 0);
  EXPECT_TRUE(verifyFails(p, "expected bytes within the host arena of 0"));
  p.stages[0].hostBytes = 128;
  std::string error;
  EXPECT_TRUE(verify(p, error)) << error;
  p.stages[0].templates.back().kind = ActionKind::Unshard;
  EXPECT_TRUE(verifyFails(p, "collective: expected a number below 0, got -1"));
}

TEST(Verify, RefusesPairsOfOtherHalvesAndWaitsBetweenThem) {
  Program program = makeProgram();
  program.stages[0].templates[0].startsPair = true; // SEND_F is behind it
  EXPECT_TRUE(verifyFails(program, "expected a pair of an F and a B or I"));
  for (std::vector<int> waits : {std::vector<int>{}, {0}}) {
    Program pair = makeProgram();
    Stage &stage = pair.stages[1];
    ActionTemplate backward = stage.templateOf(1);
    backward.kind = ActionKind::Backward;
    stage.templates[stage.actions[1].templateNumber].startsPair = true;
    stage.addAction(backward, 0, waits);
    std::string error;
    if (waits.empty())
      EXPECT_TRUE(verify(pair, error)) << error;
    else
      EXPECT_TRUE(
          verifyFails(pair, "expected the first half of its pair to wait"));
  }
}

TEST(Verify, RefusesEstimatesThatAreNoTimes) {
  Program p = makeProgram();
  for (double wrong : {-1.0, std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::quiet_NaN()}) {
    p.stages[0].templates[0].estimate = wrong;
    EXPECT_TRUE(verifyFails(p, "expected an estimate from 0 to"));
  }
  p = makeProgram();
  for (double wrong : {-0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    p.stages[0].templates[0].slowsWork = wrong;
    EXPECT_TRUE(verifyFails(p, "expected a share of speed from 0 to 1"));
  }
}
