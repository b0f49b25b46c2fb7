// SPDX-License-Identifier: Apache-2.0
//
// A program of two ranks for tests of its form, its checks and its clock.
#ifndef ROTA_TEST_RUNTIME_TWOSTAGEPROGRAM_H
#define ROTA_TEST_RUNTIME_TWOSTAGEPROGRAM_H

#include "runtime/program/Program.h"

namespace rota::test {

inline ActionTemplate makeMessage(ActionKind kind, int peer, int64_t offset,
                                  int64_t bytes) {
  ActionTemplate actionTemplate;
  actionTemplate.kind = kind;
  actionTemplate.peer = peer;
  actionTemplate.message = offset;
  actionTemplate.bytes = bytes;
  return actionTemplate;
}

/// Two ranks: the first computes and sends, the second receives and computes.
inline Program makeProgram() {
  Program p;
  p.model = "line";
  p.schedule = "by hand";
  p.timeline = "0F0\n1F0 \"quoted\"";
  p.config = "{\"hidden_size\": 4}\n";
  p.bubble = 0.25;
  p.steadyBubble = 0.125;
  p.vocabulary = 17;
  p.input = {ElementType::I32, {2, 3}, {}};
  p.logits = {ElementType::BF16, {2, 3, 17}, {}};
  p.parameterCount = 6;
  p.tasks = {"forward", "update", "squares"};
  p.kernels = {"fused"};
  p.options = {{"beta1", "decay", 0.9, 0.0, 0.999}};
  p.scalars = {{Scalar::Kind::LearningRate, "", 0.5},
               {Scalar::Kind::Complement, "beta1"}};
  Parameter weight;
  weight.name = "layers.{layer}.weight";
  weight.shape = {2, 3};
  weight.layers = {0, 2};
  weight.init = {Initializer::Kind::Normal, 0.0, 0.02};
  weight.compute = ElementType::BF16;
  weight.rows = 2;
  weight.states = {{"moment", ElementType::F32, 0.5, 0}};
  weight.stateBytes = 64;
  weight.updateTask = 1;
  weight.squareTask = 2;
  p.parameters = {weight};
  p.auxiliaryLosses = {{"balance", 0.01, 64.0}};
  p.input.shape = {4, 8};
  p.observations = {{"load", 2, 5, 1, 16, /*isAveraged=*/true}};
  p.modelOptions = {{"expert-capacity", "1.5"}};
  Stage rank;
  rank.arenaBytes = 4096;
  rank.regions = {{"parameters", 0, 256}};
  rank.tables = {{2048, 4, 1.5, {1.0, 0.01}}};
  Update update{0, 2, 0, 64, 64, 128, 256, {{0, 256}}, {{1, 64}}};
  rank.updates = {update};
  rank.step = {512, 576, 640, 1024};
  p.constantTensors = {{64, std::string("a\0b", 3)}};
  p.mesh = {{"stage", 2}};
  p.lossTerms = {{"z", 0.25}};
  p.lossCalls = 3;
  p.stages = {rank, rank};
  p.stages[1].auxiliarySums = {{3, 3072, {0}}};
  p.stages[1].auxiliaryCotangents = 3200;
  p.stages[1].observedTables = {{3, 3264, {0}}};
  p.stages[1].updates.clear();
  ActionTemplate compute;
  Call call{0, {0, -1, 64, -1, -1, 128, -1, -1, -1, -1, -1, 512, -1, -1}};
  call.layer = 3;
  compute.calls = {call, call};
  compute.evalCalls = {call};
  p.stages[0].addAction(compute, 0);
  p.stages[0].addAction(makeMessage(ActionKind::SendForward, 1, 1024, 64), 0);
  p.stages[1].addAction(makeMessage(ActionKind::RecvForward, 0, 512, 64), 0);
  p.stages[1].addAction(compute, 0, std::vector<int>{0});
  return p;
}

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_TWOSTAGEPROGRAM_H
