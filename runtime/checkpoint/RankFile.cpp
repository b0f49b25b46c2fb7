// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/RankFile.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/checkpoint/Safetensors.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <thread>

namespace fs = std::filesystem;

namespace rota {

static constexpr const char *kTableEnding = ".pieces";

const char *typeName(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "F32";
  case ElementType::BF16:
    return "BF16";
  case ElementType::I32:
    return "I32";
  }
  return "";
}

std::string pieceName(const StateTensor &tensor, const StatePiece &piece) {
  return fmt::format("{}@{}", tensor.name, fmt::join(piece.part.begin, ","));
}

/// Moves the elements of the tensor to the front of the part's memory.
static void removePadding(const Part &part, int64_t elementBytes,
                          char *memory) {
  if (part.valid == part.size)
    return;
  char *end = memory;
  forEachRun(part, 0, part.elements(), [&](int64_t, int64_t from, int64_t n) {
    size_t bytes = static_cast<size_t>(n * elementBytes);
    std::memmove(end, memory + from * elementBytes, bytes);
    end += bytes;
  });
}

static std::string tablePath(const std::string &folder, int rank) {
  return (fs::path(folder) / fmt::format("{}{}", rank, kTableEnding)).string();
}

void writeRankFile(const std::string &folder, int rank,
                   const std::vector<StateTensor> &tensors,
                   const StateCopy &copy, char *memory,
                   const std::atomic<bool> &isCancelled) {
  std::string path = (fs::path(folder) / rankFileName(rank)).string();
  std::map<std::string, TensorForm> forms;
  for (const StatePiece &piece : copy.pieces) {
    const StateTensor &tensor = tensors[piece.tensor];
    forms[pieceName(tensor, piece)] = {typeName(tensor.type), piece.part.valid};
  }
  SafetensorsWriter writer(path, forms);
  std::vector<RankFile::Piece> pieces;
  for (size_t i = 0; i < copy.pieces.size(); ++i) {
    if (isCancelled)
      throw RunError(fmt::format("'{}': writing was cancelled", path));
    const StatePiece &piece = copy.pieces[i];
    const StateTensor &tensor = tensors[piece.tensor];
    char *data = memory + copy.places[i];
    int64_t elementBytes = byteSize(tensor.type);
    removePadding(piece.part, elementBytes, data);
    std::string name = pieceName(tensor, piece);
    size_t bytes =
        static_cast<size_t>(piece.part.validElements() * elementBytes);
    pieces.push_back({writer.offsetOf(name), hashOf({data, bytes})});
    writer.write(name, data);
  }
  writer.commit();
  int64_t bytes = writer.bytes();
  writeFile(tablePath(folder, rank),
            {{reinterpret_cast<const char *>(&bytes), sizeof bytes},
             {reinterpret_cast<const char *>(pieces.data()),
              pieces.size() * sizeof pieces[0]}});
}

void waitForRankFiles(const std::string &folder, size_t count,
                      const std::atomic<bool> &isCancelled) {
  std::chrono::milliseconds pause(1);
  constexpr std::chrono::milliseconds kMostPause(64);
  while (true) {
    size_t found = 0;
    std::error_code error;
    // A file system over a network looks again for the folder's names when it
    // is opened.
    for (fs::directory_iterator entry(folder, error), end;
         !error && entry != end; entry.increment(error))
      found += entry->path().extension() == kTableEnding;
    if (error)
      throw RunError(
          fmt::format("cannot read '{}': {}", folder, error.message()));
    if (found == count)
      return;
    if (isCancelled)
      throw RunError(fmt::format("'{}': waiting was cancelled", folder));
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kMostPause);
  }
}

RankFile takePieceTable(const std::string &folder, int rank, size_t pieces) {
  std::string path = tablePath(folder, rank);
  RankFile file;
  file.pieces.resize(pieces);
  std::ifstream stream(path, std::ios::binary);
  stream.read(reinterpret_cast<char *>(&file.bytes), sizeof file.bytes);
  stream.read(reinterpret_cast<char *>(file.pieces.data()),
              static_cast<std::streamsize>(pieces * sizeof file.pieces[0]));
  std::error_code error;
  if (!stream || !fs::remove(path, error))
    throw RunError(fmt::format("cannot read '{}'", path));
  return file;
}

} // namespace rota
