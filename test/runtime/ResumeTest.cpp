// SPDX-License-Identifier: Apache-2.0
//
// The train state out of checkpoints: on ranks that divide it in another way
// than its writer, and with checkpoints that are damaged or of another run.
#include "runtime/train/state/Resume.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/program/Convert.h"
#include "runtime/program/State.h"
#include "test/runtime/LineModel.h"
#include "test/runtime/TemporaryFolder.h"
#include "test/runtime/checkpoint/SavedFolder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace rota;
using namespace rota::test;
namespace fs = std::filesystem;

namespace {

/// Each tensor of the state is `first`, `first` + 0.25, ...
float firstOf(size_t tensor, int64_t step) {
  return 100.0f * static_cast<float>(step) + 10.0f * static_cast<float>(tensor);
}

using Identity = std::map<std::string, std::string>;

class ResumeTest : public testing::Test {
protected:
  /// Writes a checkpoint of the line model in random pieces; returns its path.
  std::string save(int64_t step, const Identity &identity = {}) {
    std::string path = folder.path(checkpointName(step));
    SavedFolder saved(path, 3);
    saved.manifest.run.step = step;
    saved.manifest.identity = identity;
    std::vector<StateTensor> tensors = stateTensors(makeLine(1, 2));
    for (size_t t = 0; t < tensors.size(); ++t) {
      std::string whole;
      for (int64_t i = 0; i < tensors[t].bytes() / 4; ++i) {
        float value = firstOf(t, step) + 0.25f * static_cast<float>(i);
        whole.append(reinterpret_cast<char *>(&value), 4);
      }
      saved.add(tensors[t].name, "F32", tensors[t].shape, whole,
                randomPieces(tensors[t].shape, random));
    }
    saved.write();
    return path;
  }

  /// Resumes all ranks; the step of the checkpoint that they took, -1: none.
  int64_t resumeAll(LocalRanks &ranks, const Identity &identity = {}) {
    std::vector<int64_t> steps(static_cast<size_t>(ranks.count()), -1);
    testing::internal::CaptureStderr();
    auto restore = [&] { said = testing::internal::GetCapturedStderr(); };
    try {
      ranks.run([&](Rank &rank) {
        auto resumed =
            resume(rank, {options, folder.path(""), identity, extent});
        if (resumed)
          steps[rank.number()] = resumed->state.step;
      });
    } catch (...) {
      restore();
      throw;
    }
    restore();
    for (int64_t step : steps)
      EXPECT_EQ(step, steps[0]);
    return steps[0];
  }
  int64_t resumeAll(const LineShape &shape) {
    Program program = makeLine(shape);
    LocalRanks ranks(makeLineExecutable(program), 2);
    return resumeAll(ranks);
  }
  std::string refusal(const Program &program, const Identity &identity = {}) {
    LocalRanks ranks(makeLineExecutable(program), 2);
    return messageOf<InputError>([&] { resumeAll(ranks, identity); });
  }
  void damage(int64_t step) {
    fs::resize_file(folder.path(checkpointName(step) + "/" + rankFileName(1)),
                    3);
  }

  TemporaryFolder folder;
  std::mt19937 random{11};
  ResumeOptions options;
  StateExtent extent = StateExtent::All;
  std::string said; // on standard error
};

/// The part that a rank should have of the tensor: its values, and zeroes as
/// padding.
std::vector<float> expectedPart(const StatePiece &piece, float first) {
  std::vector<float> values(piece.part.elements());
  forEachRun(piece.part, 0, piece.part.elements(),
             [&](int64_t whole, int64_t inPart, int64_t count) {
               for (int64_t i = 0; i < count; ++i)
                 values[inPart + i] =
                     first + 0.25f * static_cast<float>(whole + i);
             });
  return values;
}

} // namespace

TEST_F(ResumeTest, AnyRanksReadTheirParts) {
  save(7);
  for (const LineShape &shape : std::vector<LineShape>{{1, 2},
                                                       {2, 2, 2},
                                                       {2, 2, 1, 2},
                                                       {1, 2, 2, 3},
                                                       {2, 2, 2, 1, true},
                                                       {2, 2, 2, 3, true}}) {
    Program program = makeLine(shape);
    LocalRanks ranks(makeLineExecutable(program), 2);
    ASSERT_EQ(resumeAll(ranks), 7);
    std::vector<StateTensor> tensors = stateTensors(program);
    for (int r = 0; r < ranks.count(); ++r) {
      Rank &rank = ranks.at(r);
      for (const StatePiece &piece :
           statePieces(program, tensors, rank.coordinates()))
        EXPECT_EQ(rank.read<float>(piece.offset, piece.part.elements()),
                  expectedPart(piece, firstOf(piece.tensor, 7)))
            << tensors[piece.tensor].name << " of rank " << r;
    }
  }
}

TEST_F(ResumeTest, MastersAloneLeaveStatesAsTheyAre) {
  save(7, {{"data", "of another run"}});
  extent = StateExtent::Masters;
  Program program = makeLine(1, 2);
  LocalRanks ranks(makeLineExecutable(program), 1);
  ASSERT_EQ(resumeAll(ranks), 7);
  std::vector<StateTensor> tensors = stateTensors(program);
  Rank &rank = ranks.at(0);
  for (const StatePiece &piece :
       statePieces(program, tensors, rank.coordinates()))
    EXPECT_EQ(rank.read<float>(piece.offset, 1)[0],
              tensors[piece.tensor].state < 0 ? firstOf(piece.tensor, 7)
                                              : 0.0f);
}

TEST_F(ResumeTest, FrozenMastersAreRounded) {
  save(7);
  extent = StateExtent::Masters;
  Program program = makeLine({2, 2, 2});
  for (Parameter &parameter : program.parameters) {
    parameter.isFrozen = true;
    parameter.compute = ElementType::BF16;
    parameter.states.clear();
  }
  LocalRanks ranks(makeLineExecutable(program), 1);
  ASSERT_EQ(resumeAll(ranks), 7);
  std::vector<StateTensor> tensors = stateTensors(program);
  size_t before = stateTensors(makeLine(1, 2)).size() / tensors.size();
  for (int r = 0; r < ranks.count(); ++r)
    for (const StatePiece &piece :
         statePieces(program, tensors, ranks.at(r).coordinates())) {
      std::vector<float> wide =
          expectedPart(piece, firstOf(before * piece.tensor, 7));
      std::vector<uint16_t> rounded(wide.size());
      std::ranges::transform(wide, rounded.begin(), toBf16);
      EXPECT_EQ(ranks.at(r).read<uint16_t>(piece.offset, piece.part.elements()),
                rounded);
    }
}

TEST_F(ResumeTest, TheOptionSaysFromWhere) {
  EXPECT_EQ(resumeAll({1, 2}), -1);
  std::string older = save(7);
  save(8);
  EXPECT_EQ(resumeAll({1, 2}), 8);
  options.from = "never";
  EXPECT_EQ(resumeAll({1, 2}), -1);
  options.from = older;
  EXPECT_EQ(resumeAll({1, 2}), 7);
  options.from = folder.path("");
  EXPECT_EQ(resumeAll({1, 2}), 8);
  options.from = folder.path("nowhere");
  EXPECT_EQ(refusal(makeLine(1, 2)),
            "expected a checkpoint or a folder of checkpoints, got '" +
                folder.path("nowhere") + "'");
}

TEST_F(ResumeTest, DamagedOnesAreSkippedByAllRanks) {
  save(7);
  save(8);
  std::string newest = save(9);
  // Only ranks that read the piece find the first kind of damage.
  Program program = makeLine(1, 2);
  Checkpoint checkpoint(newest);
  const SavedPiece &piece = checkpoint.manifest().tensors.back().pieces[0];
  std::string name = checkpointName(9) + "/" + rankFileName(piece.file);
  std::string bytes = folder.read(name);
  bytes[static_cast<size_t>(piece.offset)] ^= 4;
  folder.write(name, bytes);
  damage(8);
  EXPECT_EQ(resumeAll({2, 2, 1, 2}), 7);
  EXPECT_TRUE(said.starts_with("warning: skipped a damaged checkpoint: '" +
                               folder.path(name) + "': tensor '"))
      << said;
  EXPECT_NE(said.find("\nwarning: skipped a damaged checkpoint: '" +
                      folder.path(checkpointName(8)) + "/rank-1.safetensors"),
            std::string::npos)
      << said;
  EXPECT_TRUE(fs::exists(newest));

  options.from = folder.path(checkpointName(8));
  EXPECT_TRUE(refusal(program).starts_with(
      "'" + folder.path(checkpointName(8)) + "/rank-1.safetensors': expected "))
      << refusal(program);
  EXPECT_EQ(said, "");
  options.from = "auto";
  damage(7);
  EXPECT_EQ(refusal(program), "no checkpoint in '" + folder.path("") +
                                  "' is whole; '--resume never' begins the "
                                  "run anew");
}

TEST_F(ResumeTest, AnotherModelNamesItsFirstTensor) {
  std::string path = save(7);
  auto message = [&](const std::string &rest) {
    return "checkpoint '" + path + "': tensor " + rest;
  };
  Program program = makeLine(1, 2);
  program.parameters[1].shape = {5};
  EXPECT_EQ(refusal(program), message("'bias': expected F32 [5], got F32 [4]"));
  program = makeLine(1, 2);
  program.parameters[1].name = "offset";
  EXPECT_EQ(refusal(program),
            message("'offset': expected F32 [4], got no such tensor"));
  program = makeLine(1, 2);
  program.parameters[0].states[1].type = ElementType::BF16;
  EXPECT_EQ(refusal(program),
            message("'layers.0.weight/second_moment': expected BF16 "
                    "[2, 2], got F32 [2, 2]"));
  program = makeLine(1, 2);
  program.parameters[1].states.pop_back();
  EXPECT_EQ(
      refusal(program),
      message("'bias/second_moment': expected no such tensor, got F32 [4]"));
}

TEST_F(ResumeTest, AnotherIdentityNeedsTheUser) {
  std::string path = save(7, {{"data", "1 MB"}, {"seed", "1"}});
  Program program = makeLine(1, 2);
  EXPECT_EQ(refusal(program, {{"data", "2 MB"}, {"seed", "1"}}),
            "checkpoint '" + path +
                "' is of a run with another 'data': expected '1 MB', got '2 "
                "MB'; '--accept-change data' goes on with the new one");
  EXPECT_EQ(refusal(program, {{"data", "1 MB"}}),
            "checkpoint '" + path +
                "' is of a run with another 'seed': expected '1', got none; "
                "'--accept-change seed' goes on with the new one");
  options.accepted = {"data", "seed"};
  LocalRanks ranks(makeLineExecutable(program), 1);
  EXPECT_EQ(resumeAll(ranks, {{"data", "2 MB"}}), 7);
}

/// A list of settings is long: those that are the same are not said.
TEST_F(ResumeTest, AnotherOptimizerNamesTheSettingsThatDiffer) {
  std::string path =
      save(7, {{"optimizer", "optimizer=adamw rate=0.1 decay=0 step:F32"}});
  EXPECT_EQ(
      refusal(makeLine(1, 2),
              {{"optimizer", "optimizer=adamw rate=0.15 decay=0 step:F32"}}),
      "checkpoint '" + path +
          "' is of a run with another 'optimizer': expected 'rate=0.1', got "
          "'rate=0.15'; '--accept-change optimizer' goes on with the new one");
  EXPECT_NE(refusal(makeLine(1, 2), {{"optimizer", "optimizer=adamw"}})
                .find("expected 'rate=0.1 decay=0 step:F32', got none;"),
            std::string::npos);
}
