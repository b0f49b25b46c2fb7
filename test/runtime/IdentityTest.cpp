// SPDX-License-Identifier: Apache-2.0
//
// The identity of a run: what changes it, and what does not.
#include "runtime/train/state/Identity.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/program/IdentityKeys.h"
#include "test/runtime/LineModel.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

using namespace rota;
using namespace rota::test;

namespace {

Options optionsOf(const Program &program) {
  Options options;
  options.optimizer.own = program.options;
  options.data = {"synthetic"};
  return options;
}

std::map<std::string, std::string> identityOf(const Program &program) {
  return runIdentity(program, optionsOf(program));
}

/// The keys whose values differ from those of the plain run.
std::vector<std::string>
changedBy(const std::function<void(Program &, Options &)> &edit) {
  Program program = makeLine(1, 2);
  program.lossTerms = {{"z_loss", 1e-4}};
  program.modelOptions = {{"expert-capacity", "1.5"}};
  Options options = optionsOf(program);
  auto before = runIdentity(program, options);
  edit(program, options);
  auto after = runIdentity(program, options);
  std::vector<std::string> keys;
  for (const auto &[key, value] : before)
    if (!after.contains(key) || after[key] != value)
      keys.push_back(key);
  return keys;
}

using Keys = std::vector<std::string>;

} // namespace

/// `--accept-change` takes no other names.
TEST(Identity, HasKeysOfTheListAlone) {
  Program program = makeLine(1, 2);
  program.lossTerms = {{"z_loss", 1e-4}};
  program.parameters[0].gradient = ElementType::BF16;
  Options options = optionsOf(program);
  options.optimizer.schedule = LearningRateSchedule::Cosine;
  options.skip.spikes = 2;
  for (const auto &[key, value] : runIdentity(program, options))
    EXPECT_NE(std::ranges::find(identity::kKeys, key),
              std::end(identity::kKeys))
        << key;
}

TEST(Identity, DependsNeitherOnMeshNorOnMicrobatches) {
  auto one = identityOf(makeLine(LineShape{1, 4, 1}));
  for (const LineShape &shape : std::vector<LineShape>{
           {2, 4, 1}, {1, 2, 2}, {2, 2, 1, 2, true}, {2, 1, 2, 2}})
    EXPECT_EQ(identityOf(makeLine(shape)), one);
}

TEST(Identity, KnowsTensorsOfFilesAlone) {
  Program one = makeLine(1, 2), joined = one;
  one.parameters[0].shape = {2, 6};
  Parameter &first = joined.parameters[0], second;
  first.joined = {first.name, 1, 0, 6};
  first.name = "first";
  first.shape = {2, 4};
  second = first;
  second.name = "second";
  second.shape = {2, 2};
  second.joined.begin = 4;
  joined.parameters.insert(joined.parameters.begin() + 1, second);
  EXPECT_EQ(identityOf(joined), identityOf(one));
}

TEST(Identity, NamesWhatTheNumbersDependOn) {
  EXPECT_EQ(changedBy([](Program &, Options &) {}), Keys());
  EXPECT_EQ(changedBy([](Program &p, Options &) { // as of two kinds of layers
              p.parameters.push_back(p.parameters[0]);
              p.parameters.front().layers.resize(1);
              p.parameters.back().layers.erase(
                  p.parameters.back().layers.begin());
            }),
            Keys());
  EXPECT_EQ(changedBy([](Program &p, Options &) { p.config = "{}"; }),
            Keys{"model"});
  EXPECT_EQ(
      changedBy([](Program &p, Options &) { p.parameters[0].shape = {7}; }),
      Keys{"model"});
  EXPECT_EQ(changedBy([](Program &p, Options &) { p.microbatches = 4; }),
            Keys{"batch-size"});
  EXPECT_EQ(changedBy([](Program &p, Options &) {
              p.lossTerms.front().coefficient = 2e-4;
            }),
            Keys{"loss-terms"});
  EXPECT_EQ(changedBy([](Program &p, Options &) { p.lossTerms.clear(); }),
            Keys{"loss-terms"});
  EXPECT_EQ(changedBy([](Program &p, Options &) {
              p.auxiliaryLosses.push_back({"load_balance", 0.1, 1.0});
            }),
            Keys{"loss-terms"});
  EXPECT_EQ(changedBy([](Program &p, Options &) {
              p.modelOptions.front().value = "1.25";
            }),
            Keys{"expert-capacity"});
  EXPECT_EQ(changedBy([](Program &p, Options &) { p.modelOptions.clear(); }),
            Keys{"expert-capacity"});
  EXPECT_EQ(changedBy([](Program &p, Options &) { p.input.shape[1] = 9; }),
            Keys{"sequence-length"});
  EXPECT_EQ(changedBy([](Program &p, Options &) {
              p.parameters[0].compute = ElementType::BF16;
            }),
            Keys{"dtype"});
  EXPECT_EQ(changedBy([](Program &p, Options &) {
              p.parameters[0].states[0].type = ElementType::BF16;
            }),
            Keys{"optimizer"});
  EXPECT_EQ(changedBy([](Program &, Options &o) {
              o.optimizer.own.front().value += 0.001;
            }),
            Keys{"optimizer"});
  EXPECT_EQ(changedBy([](Program &p, Options &) {
              p.optimizer = "optimizer=sgd nesterov=true";
            }),
            Keys{"optimizer"});
  EXPECT_EQ(
      changedBy([](Program &, Options &o) { o.optimizer.warmupSteps = 7; }),
      Keys{"optimizer"});
  EXPECT_EQ(changedBy([](Program &, Options &o) { o.steps = 7; }),
            Keys{"steps"});
  EXPECT_EQ(changedBy([](Program &, Options &o) { o.seed = 7; }), Keys{"seed"});
  EXPECT_EQ(
      changedBy([](Program &, Options &o) { o.tokenType = TokenType::Uint16; }),
      Keys{"data"});
  // Output files, printed lines and the calls of the loss are no part of it.
  EXPECT_EQ(changedBy([](Program &p, Options &o) {
              p.lossCalls = 2;
              o.save = "x";
              o.logInterval = 3;
              o.threads = 1;
              o.checkpoints.folder = "y";
            }),
            Keys());
}

/// A step that is not finite would end a run without 'skip-nonfinite'.
TEST(Identity, HasSpikesThatAreSkipped) {
  Program program = makeLine(1, 2);
  Options options = optionsOf(program);
  auto plain = runIdentity(program, options);
  EXPECT_FALSE(plain.contains("skip-spikes"));
  options.skip.nonfinite = true;
  EXPECT_EQ(runIdentity(program, options), plain);
  options.skip.spikes = 6.5;
  EXPECT_EQ(runIdentity(program, options).at("skip-spikes"), "6.5");
}

TEST(Identity, HasFilesByNameAndSize) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("moved"));
  std::string file = folder.write("a", "1234");
  std::string moved = folder.write("moved/a", "5678");
  std::string longer = folder.write("b", "12345");
  Program program = makeLine(1, 2);
  auto dataOf = [&](const std::string &path) {
    Options options = optionsOf(program);
    options.data = {path};
    return runIdentity(program, options).at("data");
  };
  EXPECT_EQ(dataOf(file), "a of 4 bytes, tokens as files say, validation 0.05");
  EXPECT_EQ(dataOf(moved), dataOf(file));
  EXPECT_NE(dataOf(longer), dataOf(file));
  folder.write("a.mask", "1011");
  EXPECT_EQ(dataOf(file), "a of 4 bytes with a mask, tokens as files say, "
                          "validation 0.05");
}

TEST(Identity, HasTheTokenizersThatFilesName) {
  TemporaryFolder folder;
  Program program = makeLine(1, 2);
  Options options = optionsOf(program);
  EXPECT_FALSE(runIdentity(program, options).contains("tokenizer"));
  std::string header = "\x93NUMPY" + std::string("\1\0\xF6\0", 4) +
                       "{'descr': '<u2', 'fortran_order': False, 'shape': "
                       "(1,), } # tokenizer 0123456789abcdef, vocabulary 420";
  header.resize(256, ' ');
  options.data = {folder.write("a.npy", header + "ab"),
                  folder.write("b.npy", header + "cd"),
                  folder.write("c", "ef")};
  EXPECT_EQ(runIdentity(program, options).at("tokenizer"),
            "0123456789abcdef of 420 tokens");
}

TEST(Identity, IsThatOfAManifestAlsoWithNamesThatAreNoUtf8) {
  TemporaryFolder folder;
  Program program = makeLine(1, 2);
  Options options = optionsOf(program);
  options.data = {folder.write("a\xFFz", "1234")};
  Manifest manifest;
  manifest.identity = runIdentity(program, options);
  EXPECT_EQ(manifestFromJson(toJson(manifest), "m").identity,
            manifest.identity);
}
