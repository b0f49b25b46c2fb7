// SPDX-License-Identifier: Apache-2.0
//
// Parts of a checkpoint: the file of a rank, committing and removing, the lock
// of the folder.
#include "runtime/Error.h"
#include "runtime/checkpoint/BestValidation.h"
#include "runtime/checkpoint/Commit.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/FolderLock.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/checkpoint/RankFile.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/program/Convert.h"
#include "test/runtime/LineModel.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace rota;
using namespace rota::test;

/// An error with which each lock ends, as on a file system without locks.
static int lockError = 0;

/// In the place of the C library's function.
extern "C" int flock(int file, int operation) noexcept {
  errno = lockError;
  return lockError ? -1 : int(syscall(SYS_flock, file, operation));
}

namespace {

Manifest ofStep(int64_t step) {
  Manifest manifest;
  manifest.run.step = step;
  return manifest;
}

/// A parameter [3, 5] whose state is divided over a mesh of 2 x 2 ranks, with
/// one bf16 state.
Program dividedProgram() {
  Program program;
  program.mesh = {{"stage", 1}, {"fsdp", 2}, {"tensor", 2}};
  Parameter p;
  p.name = "w";
  p.shape = {3, 5};
  p.computeDivision = p.storageDivision = p.optimizerDivision = {{1}, {2}};
  p.states = {{"moment", ElementType::BF16, 0.0, 0}};
  p.stateBytes = 64;
  program.parameters = {p};
  Stage stage;
  Update update;
  update.master = 0;
  update.states = 64;
  stage.updates = {update};
  program.stages = {stage};
  return program;
}

std::vector<int64_t> addCheckpoints(const TemporaryFolder &folder,
                                    std::vector<int64_t> steps) {
  for (int64_t step : steps) {
    std::filesystem::create_directory(folder.path(checkpointName(step)));
    folder.write(checkpointName(step) + "/" + kManifestFile,
                 toJson(ofStep(step)));
  }
  return steps;
}

} // namespace

// Two parameters [3, 5] and [3, 2] of a tensor [3, 7].
TEST(State, JoinedParametersAreOneTensor) {
  Program program = dividedProgram();
  Parameter &first = program.parameters[0];
  first.joined = {"joined", 1, 0, 7};
  Parameter second = first;
  second.name = "v";
  second.shape = {3, 2};
  second.joined.begin = 5;
  program.parameters.push_back(second);
  Update update = program.stages[0].updates[0];
  update.parameter = 1;
  update.master = 128;
  program.stages[0].updates.push_back(update);
  auto tensors = stateTensors(program);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[1].name, "joined/moment");
  EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(tensors[0].bytes(), 84);
  ASSERT_EQ(masterTensors(program).size(), 1u);
  StateCopy copy = stateCopy(program, tensors, {0, 0, 1});
  ASSERT_EQ(copy.pieces.size(), 4u);
  EXPECT_EQ(pieceName(tensors[0], copy.pieces[0]), "joined@0,3");
  EXPECT_EQ(pieceName(tensors[0], copy.pieces[1]), "joined@0,6");
  EXPECT_EQ(copy.pieces[1].part.valid, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(copy.pieces[1].offset, 128);
  EXPECT_EQ(pieceName(tensors[1], copy.pieces[3]), "joined/moment@0,6");
}

// Rank (0, 1) has rows 0 and 1, columns 3 and 4, in memory for [2, 3].
TEST(RankFile, HoldsPiecesWithoutPadding) {
  Program program = dividedProgram();
  auto tensors = stateTensors(program);
  StateCopy copy = stateCopy(program, tensors, {0, 0, 1});
  ASSERT_EQ(copy.pieces.size(), 2u);
  EXPECT_EQ(copy.places, (std::vector<int64_t>{0, 64}));
  EXPECT_EQ(copy.bytes, 128);
  std::vector<char> memory(128, 'x');
  std::vector<float> master = {3, 4, -1, 8, 9, -1};
  std::vector<uint16_t> moment = {30, 40, 0, 80, 90, 0};
  std::memcpy(memory.data(), master.data(), 24);
  std::memcpy(memory.data() + 64, moment.data(), 12);
  TemporaryFolder folder;
  writeRankFile(folder.path(""), 3, tensors, copy, memory.data(), false);
  waitForRankFiles(folder.path(""), 1, false);
  RankFile file = takePieceTable(folder.path(""), 3, 2);
  EXPECT_EQ(folder.count(), 1);

  SafetensorsFile read(folder.path(rankFileName(3)));
  ASSERT_EQ(read.tensors().size(), 2u);
  const TensorView &w = read.tensors().at("w@0,3");
  EXPECT_EQ(w.type, "F32");
  EXPECT_EQ(w.shape, (std::vector<int64_t>{2, 2}));
  std::vector<float> values(4);
  readFloats(w, 0, 4, values.data());
  EXPECT_EQ(values, (std::vector<float>{3, 4, 8, 9}));
  const TensorView &m = read.tensors().at("w/moment@0,3");
  EXPECT_EQ(m.type, "BF16");
  std::vector<uint16_t> bits(4);
  std::memcpy(bits.data(), m.data, 8);
  EXPECT_EQ(bits, (std::vector<uint16_t>{30, 40, 80, 90}));

  std::string whole = folder.read(rankFileName(3));
  EXPECT_EQ(file.bytes, static_cast<int64_t>(whole.size()));
  ASSERT_EQ(file.pieces.size(), 2u);
  std::string_view bytes = whole;
  EXPECT_EQ(bytes.substr(file.pieces[0].offset, 16),
            std::string_view(w.data, 16));
  EXPECT_EQ(file.pieces[0].hash, hashOf({w.data, 16}));
  EXPECT_EQ(bytes.substr(file.pieces[1].offset, 8),
            std::string_view(m.data, 8));
  EXPECT_EQ(file.pieces[1].hash, hashOf({m.data, 8}));
}

TEST(RankFile, IsNotThereAfterACancellation) {
  Program program = dividedProgram();
  auto tensors = stateTensors(program);
  StateCopy copy = stateCopy(program, tensors, {0, 0, 0});
  std::vector<char> memory(copy.bytes);
  TemporaryFolder folder;
  EXPECT_NE(messageOf<RunError>([&] {
              writeRankFile(folder.path(""), 0, tensors, copy, memory.data(),
                            true);
            }).find("writing was cancelled"),
            std::string::npos);
  EXPECT_EQ(folder.count(), 0);
}

TEST(RankFile, IsAwaitedWithItsTable) {
  TemporaryFolder folder;
  auto wait = [&](bool isCancelled) {
    return messageOf<RunError>(
        [&] { waitForRankFiles(folder.path(""), 1, isCancelled); });
  };
  folder.write(rankFileName(0), "x"); // whole, but its table is not there
  EXPECT_EQ(wait(true), "'" + folder.path("") + "': waiting was cancelled");
  std::string table = folder.write("0.pieces", "short");
  EXPECT_EQ(wait(false), "(no exception)");
  EXPECT_EQ(messageOf<RunError>([&] { takePieceTable(folder.path(""), 0, 1); }),
            "cannot read '" + table + "'");
}

// Each element of each tensor is in the copy of one rank.
TEST(StateCopy, RanksTogetherHaveEachElementOnce) {
  for (const LineShape &shape : std::vector<LineShape>{
           {2, 2, 2}, {2, 2, 2, 1, true}, {1, 2, 1, 3}, {2, 2, 2, 3, true}}) {
    Program program = makeLine(shape);
    auto tensors = stateTensors(program);
    std::vector<std::vector<int>> counts;
    for (const StateTensor &tensor : tensors)
      counts.emplace_back(tensor.bytes() / byteSize(tensor.type));
    int64_t ranks = 1;
    for (const MeshAxis &axis : program.mesh)
      ranks *= axis.size;
    for (int rank = 0; rank < ranks; ++rank)
      for (const StatePiece &piece :
           stateCopy(program, tensors, coordinatesOf(program.mesh, rank))
               .pieces)
        forEachRun(piece.part, 0, piece.part.elements(),
                   [&](int64_t whole, int64_t, int64_t count) {
                     for (int64_t i = 0; i < count; ++i)
                       ++counts[piece.tensor][whole + i];
                   });
    for (const std::vector<int> &tensor : counts)
      EXPECT_EQ(tensor, std::vector<int>(tensor.size(), 1));
  }
}

TEST(Commit, GivesACheckpointItsNameWithItsManifest) {
  TemporaryFolder folder;
  makePartialFolder(folder.path(""), 7);
  makePartialFolder(folder.path(""), 7); // as each rank does
  folder.write(partialName(7) + "/rank-0.safetensors", "x");
  EXPECT_TRUE(checkpointsIn(folder.path("")).empty());
  commitCheckpoint(folder.path(""), ofStep(7));
  EXPECT_EQ(checkpointsIn(folder.path("")), (std::vector<int64_t>{7}));
  EXPECT_EQ(folder.count(), 1);
  std::string name = checkpointName(7) + "/";
  EXPECT_EQ(folder.read(name + "rank-0.safetensors"), "x");
  EXPECT_EQ(manifestFromJson(folder.read(name + kManifestFile), "m").run.step,
            7);
}

static RunState stateOf(int64_t step) {
  RunState run;
  run.step = step;
  return run;
}

TEST(Commit, ReplacesACheckpointOfTheSameStep) {
  TemporaryFolder folder;
  addCheckpoints(folder, {7});
  folder.write(checkpointName(7) + "/old", "x");
  makePartialFolder(folder.path(""), 7);
  commitCheckpoint(folder.path(""), ofStep(7));
  EXPECT_EQ(folder.count(), 1);
  EXPECT_FALSE(
      std::filesystem::exists(folder.path(checkpointName(7) + "/old")));
}

TEST(Commit, KeepsTheNewestAndMultiples) {
  struct Case {
    KeepRules rules;
    std::vector<int64_t> kept;
  };
  for (const Case &c : std::vector<Case>{
           {{1, 0}, {50, 60}},
           {{2, 0}, {40, 50, 60}},
           {{9, 0}, {10, 20, 30, 40, 50, 60}},
           {{1, 20}, {20, 40, 50, 60}},
           {{1, 0, true}, {20, 50, 60}},
           {{1, 40, true}, {20, 40, 50, 60}},
           {{4, 0, true}, {20, 30, 40, 50, 60}},
       }) {
    TemporaryFolder folder;
    addCheckpoints(folder, {10, 20, 30, 40, 50, 60});
    folder.write(checkpointName(10) + "/file", "x");
    // 60 is of a run that went on from an older checkpoint.
    RunState run = stateOf(50);
    setBestValidation(run, {3.5, 20});
    removeOldCheckpoints(folder.path(""), run, c.rules);
    EXPECT_EQ(checkpointsIn(folder.path("")), c.kept);
    EXPECT_EQ(folder.count(), static_cast<int64_t>(c.kept.size()));
  }
}

TEST(Commit, DoesNotCountDamagedOnesAsKept) {
  using Steps = std::vector<int64_t>;
  TemporaryFolder folder;
  addCheckpoints(folder, {10, 20, 30, 40, 50});
  folder.write(checkpointName(40) + "/" + kManifestFile, "{}");
  folder.write(checkpointName(20) + "/" + kManifestFile, "{}");
  removeOldCheckpoints(folder.path(""), stateOf(50), {2, 0});
  EXPECT_EQ(checkpointsIn(folder.path("")), Steps({30, 40, 50}));
  addCheckpoints(folder, {60});
  removeOldCheckpoints(folder.path(""), stateOf(60), {2, 0});
  EXPECT_EQ(checkpointsIn(folder.path("")), Steps({50, 60}));
}

/// The best one stays until a better one is whole.
TEST(Commit, KeepsTheBest) {
  TemporaryFolder folder;
  KeepRules rules{1, 0, /*best=*/true};
  auto keptAfter = [&](RunState run, double loss, int64_t best) {
    setBestValidation(run, {loss, best});
    addCheckpoints(folder, {run.step});
    removeOldCheckpoints(folder.path(""), run, rules);
    return checkpointsIn(folder.path(""));
  };
  using Steps = std::vector<int64_t>;
  EXPECT_EQ(keptAfter(stateOf(10), 3.0, 10), Steps({10}));
  EXPECT_EQ(keptAfter(stateOf(20), 3.0, 10), Steps({10, 20}));
  EXPECT_EQ(keptAfter(stateOf(30), 3.0, 10), Steps({10, 30}));
  EXPECT_EQ(keptAfter(stateOf(40), 2.0, 40), Steps({40}));
  // Its checkpoint may be gone, and a run may not have validated yet.
  EXPECT_EQ(keptAfter(stateOf(50), 1.0, 45), Steps({50}));
  addCheckpoints(folder, {60});
  removeOldCheckpoints(folder.path(""), stateOf(60), rules);
  EXPECT_EQ(checkpointsIn(folder.path("")), Steps({60}));
}

TEST(BestValidation, IsALossAndAStep) {
  RunState run;
  EXPECT_FALSE(bestValidation(run));
  setBestValidation(run, {0.1, 7});
  EXPECT_EQ(bestValidation(run)->loss, 0.1);
  EXPECT_EQ(bestValidation(run)->step, 7);
  for (const std::vector<double> &numbers : std::vector<std::vector<double>>{
           {}, {1}, {1, 2, 3}, {1, -1}, {1, 1e300}, {1, NAN}}) {
    run.values.begin()->second = numbers;
    EXPECT_THROW(bestValidation(run), InputError);
  }
  run.values.begin()->second = {2.5};
  EXPECT_EQ(messageOf<InputError>([&] { bestValidation(run); }),
            "checkpoint value 'best_validation': expected a loss and a step, "
            "got [2.5]");
}

TEST(Commit, RemovesUnfinishedFoldersAlone) {
  TemporaryFolder folder;
  addCheckpoints(folder, {10});
  folder.write("other", "x");
  for (const std::string &name : {partialName(20), removedName(5)}) {
    std::filesystem::create_directory(folder.path(name));
    folder.write(name + "/file", "x");
  }
  removeUnfinished(folder.path(""));
  EXPECT_EQ(folder.count(), 2);
  EXPECT_EQ(checkpointsIn(folder.path("")), (std::vector<int64_t>{10}));
}

TEST(FolderLock, IsHeldOnce) {
  TemporaryFolder folder;
  std::string path = folder.path("a/b"); // both are made
  {
    FolderLock lock(path);
    EXPECT_EQ(messageOf<InputError>(
                  [&] { FolderLock second(path, std::chrono::seconds(0)); }),
              "'" + path +
                  "': expected a folder that no other run writes to, got one "
                  "of process " +
                  std::to_string(getpid()));
  }
  FolderLock again(path);
}

TEST(FolderLock, WaitsForAProcessThatEnds) {
  TemporaryFolder folder;
  auto first = std::make_unique<FolderLock>(folder.path("a"));
  std::thread ending([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    first.reset();
  });
  FolderLock second(folder.path("a"), std::chrono::minutes(1));
  ending.join();
  EXPECT_EQ(first, nullptr);
}

TEST(FolderLock, IsANoteWhereTheFileSystemHasNoLocks) {
  TemporaryFolder folder;
  for (int error : {ENOSYS, ENOLCK, EOPNOTSUPP}) {
    lockError = error;
    testing::internal::CaptureStderr();
    FolderLock lock(folder.path("a"));
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "note: '" + folder.path("a") +
                  "': its file system has no locks (" + std::strerror(error) +
                  "), so that another run which writes to it is not noticed\n");
  }
  lockError = EBADF;
  EXPECT_EQ(messageOf<RunError>([&] { FolderLock lock(folder.path("a")); }),
            "cannot lock '" + folder.path("a/") + kLockFile +
                "': Bad file descriptor");
  lockError = 0;
}

TEST(FolderLock, NamesWhatCannotBeMade) {
  TemporaryFolder folder;
  std::string path = folder.write("file", "") + "/checkpoints";
  EXPECT_EQ(messageOf<InputError>([&] { FolderLock lock(path); }),
            "cannot create '" + path + "': Not a directory");
}
