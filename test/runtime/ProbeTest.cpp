// SPDX-License-Identifier: Apache-2.0
//
// The command `probe` of a trainer, on the model of LineModel.h.
#include "runtime/Error.h"
#include "test/runtime/TemporaryFolder.h"
#include "test/runtime/TrainerRun.h"

using namespace rota;
using namespace rota::test;

TEST(Probe, WritesWhatIsAskedFor) {
  TemporaryFolder folder;
  std::vector<float> inputs(2 * kActivation), targets(2 * kActivation);
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = 0.1f * static_cast<float>(i % 7) - 0.2f;
    targets[i] = 0.3f * static_cast<float>(i % 5) - 0.5f;
  }
  float w0[] = {1, 2, -1, 0.5f}, w1[] = {0.5f, 1, 1.5f, -2}, b[] = {0, 1, 2, 3};
  auto view = [](float *data, std::vector<int64_t> shape) {
    TensorView v{"F32", std::move(shape), reinterpret_cast<char *>(data), 0};
    v.bytes = 4 * v.elements();
    return v;
  };
  writeSafetensors(folder.path("batch.safetensors"),
                   {{"inputs", view(inputs.data(), {2, kSequence, kEmbed})},
                    {"targets", view(targets.data(), {2, kSequence, kEmbed})}});
  writeSafetensors(folder.path("weights.safetensors"),
                   {{"layers.0.weight", view(w0, {2, 2})},
                    {"layers.1.weight", view(w1, {2, 2})},
                    {"bias", view(b, {4})}});
  Outcome o = run({"probe", "--tokens", folder.path("batch.safetensors"),
                   "--weights", folder.path("weights.safetensors"), "--write",
                   "loss,gradients,loss-curve", "--steps", "3", "-o",
                   folder.path("out.safetensors")});
  ASSERT_EQ(o.code, kExitSuccess) << o.err;
  LineReference line;
  line.w0.assign(w0, w0 + 4);
  line.w1.assign(w1, w1 + 4);
  line.b.assign(b, b + 4);
  line.dw0 = line.dw1 = line.db = std::vector<double>(4, 0.0);
  for (int m = 0; m < 2; ++m)
    line.accumulate(&inputs[m * kActivation], &targets[m * kActivation]);
  SafetensorsFile out(folder.path("out.safetensors"));
  EXPECT_NEAR(readTensor(out, "loss")[0], line.sum / line.weight, 1e-5);
  std::vector<float> curve = readTensor(out, "loss_curve");
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_EQ(curve[0], readTensor(out, "loss")[0]);
  EXPECT_LT(curve[2], curve[1]);
  EXPECT_LT(curve[1], curve[0]);
  for (int e = 0; e < 4; ++e) {
    EXPECT_NEAR(readTensor(out, "grad.layers.0.weight")[e],
                line.dw0[e] / line.weight, 1e-5);
    EXPECT_NEAR(readTensor(out, "grad.layers.1.weight")[e],
                line.dw1[e] / line.weight, 1e-5);
    EXPECT_NEAR(readTensor(out, "grad.bias")[e], line.db[e] / line.weight,
                1e-5);
  }
  Outcome logits = run({"probe", "--tokens", folder.path("batch.safetensors"),
                        "--write", "logits", "-o", folder.path("l")});
  EXPECT_EQ(logits.code, kExitBadInput);
  EXPECT_EQ(logits.err, "error: this program was compiled without logits\n");
}

TEST(Probe, WritesTheSameHoweverTensorsAreSpread) {
  TemporaryFolder folder;
  std::vector<float> values(4 * kActivation);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.1f * static_cast<float>(i % 13) - 0.5f;
  TensorView view{"F32",
                  {4, kSequence, kEmbed},
                  reinterpret_cast<char *>(values.data()),
                  static_cast<int64_t>(4 * values.size())};
  writeSafetensors(folder.path("b"), {{"inputs", view}, {"targets", view}});
  auto probe = [&](LineShape shape, const char *what) {
    shape.logits = true;
    Outcome o = runWith(makeLine(shape),
                        {"probe", "--tokens", folder.path("b"), "--write", what,
                         "--steps", "3", "-o", folder.path("o")});
    EXPECT_EQ(o.code, kExitSuccess) << o.err;
    return folder.read("o");
  };
  const char *all = "loss,gradients,logits,loss-curve";
  std::string expected = probe({1, 2, 2}, all);
  for (LineShape shape : std::vector<LineShape>{
           {2, 2, 2}, {1, 2, 2, 1, true}, {2, 2, 2, 1, true, false, 2}})
    EXPECT_EQ(probe(shape, all), expected);
  // Microbatches are concatenated in their order, and so are parts.
  EXPECT_EQ(probe({1, 4}, "logits"), probe({2, 2, 1, 2}, "logits"));
}

TEST(Probe, RefusesTokensThatDoNotFit) {
  TemporaryFolder folder;
  std::vector<int64_t> tokens(9, 3);
  Program program = tokenProgram();
  auto probeWith = [&](std::vector<int64_t> shape) {
    writeSafetensors(folder.path("t"),
                     {{"tokens",
                       {"I64", std::move(shape),
                        reinterpret_cast<char *>(tokens.data()), 72}}});
    return runWith(program, {"probe", "--tokens", folder.path("t"), "-o",
                             folder.path("out")});
  };
  Outcome o = probeWith({9, 1});
  EXPECT_EQ(o.code, kExitBadInput);
  EXPECT_NE(o.err.find("tensor 'tokens': expected shape [1, 9], got [9, 1]"),
            std::string::npos)
      << o.err;
  tokens[4] = 256;
  o = probeWith({1, 9});
  EXPECT_EQ(o.code, kExitBadInput);
  EXPECT_NE(o.err.find("position [0, 4]: expected a token below the vocabulary "
                       "of 256, got 256"),
            std::string::npos)
      << o.err;
  // The first token is no target, the last no input.
  tokens = {9, 3, 3, 3, 3, 3, 3, 3, 11};
  program.vocabulary = 10;
  program.classes = 8;
  o = probeWith({1, 9});
  EXPECT_EQ(o.code, kExitBadInput);
  EXPECT_NE(o.err.find("position [0, 8]: expected a token below the 8 classes "
                       "of the loss, got 11"),
            std::string::npos)
      << o.err;
}
