// SPDX-License-Identifier: Apache-2.0
//
// Reading of checkpoints: their list, damage of each kind, and parts under
// divisions that the writer did not have.
#include "runtime/checkpoint/CheckpointFiles.h"
#include "runtime/checkpoint/ReadPart.h"
#include "runtime/checkpoint/Safetensors.h"
#include "test/runtime/TemporaryFolder.h"
#include "test/runtime/checkpoint/SavedFolder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

using namespace rota;
using namespace rota::test;
namespace fs = std::filesystem;

namespace {

int64_t product(const std::vector<int64_t> &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

/// The values 0, 1, 2, ... as elements of `type`.
std::string ascending(const std::string &type, int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    auto narrow = static_cast<uint16_t>(i);
    auto wide = static_cast<float>(i);
    bytes.append(type == "BF16" ? reinterpret_cast<char *>(&narrow)
                                : reinterpret_cast<char *>(&wide),
                 type == "BF16" ? 2 : 4);
  }
  return bytes;
}

/// A checkpoint with one tensor [4, 6] in two pieces and files.
struct OneTensor {
  TemporaryFolder folder;
  SavedFolder saved{folder.path("step-0000000007"), 2};

  OneTensor() {
    SavedPiece left, right;
    left.begin = {0, 0};
    left.size = {4, 2};
    right.begin = {0, 2};
    right.size = {4, 4};
    saved.add("w", "F32", {4, 6}, ascending("F32", 24), {left, right});
    saved.write();
  }
  void read() {
    Checkpoint checkpoint(folder.path("step-0000000007"));
    std::vector<float> values(24);
    readPart(checkpoint, checkpoint.manifest().tensors[0], wholeBox({4, 6}),
             reinterpret_cast<char *>(values.data()));
  }
  std::string damage() {
    return messageOf<DamagedCheckpoint>([&] { read(); });
  }
  std::string inFile(const std::string &message) {
    return "'" + saved.path("rank-1.safetensors") + "': " + message;
  }
};

} // namespace

TEST(CheckpointList, NewestFirstWithoutHiddenOnes) {
  TemporaryFolder folder;
  for (const char *name : {"step-0000000020", "step-0000000100",
                           ".step-0000000200.partial", "other"})
    fs::create_directory(folder.path(name));
  EXPECT_EQ(findCheckpoints(folder.path("")),
            (std::vector<std::string>{folder.path("step-0000000100"),
                                      folder.path("step-0000000020")}));
  EXPECT_TRUE(findCheckpoints(folder.path("nowhere")).empty());
}

TEST(CheckpointList, KnowsACheckpointFromAFolderOfThem) {
  OneTensor one;
  EXPECT_TRUE(isCheckpoint(one.folder.path("step-0000000007")));
  EXPECT_TRUE(isCheckpoint(one.folder.path("step-0000000007/")));
  EXPECT_FALSE(isCheckpoint(one.folder.path("")));
  EXPECT_EQ(checkpointsAt(one.folder.path("")).size(), 1u);
  EXPECT_EQ(messageOf<InputError>([] { checkpointsAt("/nowhere"); }),
            "expected a checkpoint or a folder of checkpoints, got "
            "'/nowhere'");
  fs::rename(one.folder.path("step-0000000007"), one.folder.path("best"));
  EXPECT_TRUE(isCheckpoint(one.folder.path("best")));
}

TEST(Checkpoint, AWholeOneIsRead) {
  OneTensor one;
  EXPECT_NO_THROW(one.read());
  EXPECT_EQ(Checkpoint(one.folder.path("step-0000000007")).bytes(), 96);
}

TEST(Checkpoint, NamesWhatIsDamaged) {
  {
    OneTensor one;
    fs::remove(one.saved.path("rank-1.safetensors"));
    EXPECT_EQ(one.damage(), one.inFile("No such file or directory"));
  }
  {
    OneTensor one;
    fs::resize_file(one.saved.path("rank-1.safetensors"), 63);
    EXPECT_EQ(one.damage(), one.inFile("expected 64 bytes, got 63"));
  }
  {
    OneTensor one;
    std::string bytes = one.folder.read("step-0000000007/rank-1.safetensors");
    bytes[40] ^= 1;
    one.folder.write("step-0000000007/rank-1.safetensors", bytes);
    std::string message = one.damage();
    EXPECT_TRUE(
        message.starts_with(one.inFile("tensor 'w': expected the hash ")))
        << message;
    EXPECT_NE(message.find(" of bytes 0 to 64, got "), std::string::npos);
  }
  {
    OneTensor one;
    fs::remove(one.saved.path("manifest.json"));
    EXPECT_EQ(one.damage(), "cannot read '" + one.saved.path("manifest.json") +
                                "': No such file or directory");
  }
  {
    OneTensor one;
    std::string text = one.folder.read("step-0000000007/manifest.json");
    one.folder.write("step-0000000007/manifest.json",
                     text.substr(0, text.size() / 2));
    EXPECT_TRUE(one.damage().starts_with("'" + one.saved.path("manifest.json") +
                                         "': expected a JSON object"))
        << one.damage();
  }
  {
    OneTensor one;
    fs::remove_all(one.folder.path("step-0000000007"));
    EXPECT_TRUE(one.damage().starts_with("cannot read '")) << one.damage();
  }
}

TEST(Checkpoint, TheStepIsThatOfTheName) {
  OneTensor one;
  for (const char *name : {"step-0000000008", "step-0000000008/"}) {
    std::string path = one.folder.path(name);
    fs::rename(one.saved.path(""), path);
    EXPECT_EQ(messageOf<DamagedCheckpoint>([&] { Checkpoint other(path); }),
              "'" + (fs::path(path) / "manifest.json").string() +
                  "': run.step: expected that of the folder's name, got 7");
    fs::rename(path, one.saved.path(""));
  }
  fs::rename(one.saved.path(""), one.folder.path("best"));
  EXPECT_EQ(Checkpoint(one.folder.path("best")).manifest().run.step, 7);
}

TEST(Checkpoint, AFileThatShrinksWhileItIsReadIsDamage) {
  OneTensor one;
  Checkpoint checkpoint(one.folder.path("step-0000000007"));
  fs::resize_file(one.saved.path("rank-1.safetensors"), 10);
  std::vector<float> values(24);
  EXPECT_EQ(messageOf<DamagedCheckpoint>([&] {
              readPart(checkpoint, checkpoint.manifest().tensors[0],
                       wholeBox({4, 6}),
                       reinterpret_cast<char *>(values.data()));
            }),
            one.inFile("expected 64 bytes, it ends at byte 10 now"));
}

TEST(ReadPart, OnlyPiecesWithElementsOfThePartAreRead) {
  OneTensor one;
  Checkpoint checkpoint(one.folder.path("step-0000000007"));
  fs::remove(one.saved.path("rank-1.safetensors"));
  std::vector<float> values(8);
  Box left = {{0, 0}, {4, 2}, {4, 2}};
  readPart(checkpoint, checkpoint.manifest().tensors[0], left,
           reinterpret_cast<char *>(values.data()));
  EXPECT_EQ(values, (std::vector<float>{0, 1, 6, 7, 12, 13, 18, 19}));
}

/// Writers and readers with random divisions, padding included.
TEST(ReadPart, AnyDivisionReadsWhatAnyOtherWrote) {
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    TemporaryFolder folder;
    std::string type = random() % 2 ? "F32" : "BF16";
    std::vector<int64_t> shape(random() % 4);
    for (int64_t &size : shape)
      size = 1 + random() % 7;
    std::string whole = ascending(type, product(shape));
    SavedFolder saved(folder.path("step-1"), 1 + random() % 3);
    saved.add("w", type, shape, whole, randomPieces(shape, random));
    saved.write();
    Checkpoint checkpoint(folder.path("step-1"));
    const SavedTensor &tensor = checkpoint.manifest().tensors[0];
    for (const SavedPiece &part : randomPieces(shape, random)) {
      Box box = boxOf(part);
      for (int64_t &room : box.room)
        room += random() % 3;
      int64_t each = typeBytes(type);
      std::string memory(static_cast<size_t>(product(box.room) * each), '?');
      readPart(checkpoint, tensor, box, memory.data());
      for (int64_t i = 0; i < product(box.room); ++i) {
        int64_t rest = i, at = 0, stride = 1;
        bool exists = true;
        for (size_t d = shape.size(); d-- > 0;) {
          int64_t index = rest % box.room[d];
          rest /= box.room[d];
          exists &= index < box.size[d];
          at += (box.begin[d] + index) * stride;
          stride *= shape[d];
        }
        ASSERT_EQ(memory.substr(i * each, each),
                  exists ? whole.substr(at * each, each)
                         : std::string(each, '?'))
            << round;
      }
    }
  }
}

TEST(ReadPart, LargePiecesAreReadInBlocks) {
  TemporaryFolder folder;
  const int64_t rows = 3, columns = Checkpoint::kBlockBytes / 4 + 1000;
  SavedFolder saved(folder.path("step-1"), 1);
  std::string whole(static_cast<size_t>(rows * columns * 4), '\0');
  for (size_t i = 0; i < whole.size(); i += 999)
    whole[i] = static_cast<char>(i / 999);
  SavedPiece all;
  all.begin = {0, 0};
  all.size = {rows, columns};
  saved.add("w", "F32", {rows, columns}, whole, {all});
  saved.write();
  Checkpoint checkpoint(folder.path("step-1"));
  // Runs of this part lie across the ends of blocks.
  Box part = {{0, 500}, {rows, columns - 600}, {rows, columns - 600}};
  std::string memory(static_cast<size_t>(rows * (columns - 600) * 4), '?');
  readPart(checkpoint, checkpoint.manifest().tensors[0], part, memory.data());
  for (int64_t r = 0; r < rows; ++r)
    ASSERT_EQ(std::memcmp(memory.data() + r * (columns - 600) * 4,
                          whole.data() + (r * columns + 500) * 4,
                          static_cast<size_t>((columns - 600) * 4)),
              0);
}
