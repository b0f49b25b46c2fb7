// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/checkpoint/SavedFolder.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/checkpoint/Safetensors.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <set>

namespace rota::test {

std::vector<SavedPiece> randomPieces(const std::vector<int64_t> &shape,
                                     std::mt19937 &random) {
  std::vector<SavedPiece> pieces(1);
  for (int64_t size : shape) {
    std::set<int64_t> cuts = {0, size};
    for (uint32_t n = random() % 3; n > 0; --n)
      cuts.insert(random() % size);
    std::vector<SavedPiece> finer;
    for (const SavedPiece &piece : pieces)
      for (auto at = cuts.begin(); std::next(at) != cuts.end(); ++at) {
        finer.push_back(piece);
        finer.back().begin.push_back(*at);
        finer.back().size.push_back(*std::next(at) - *at);
      }
    pieces = std::move(finer);
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  return pieces;
}

SavedFolder::SavedFolder(std::string folder, int files)
    : folder(std::move(folder)), contents(files) {
  std::filesystem::path path(this->folder);
  manifest.run.step = stepOfCheckpoint(path.filename().string()).value_or(0);
  for (int i = 0; i < files; ++i)
    manifest.files.push_back({rankFileName(i), 0});
}

/// The piece's bytes, element by element.
static std::string cutOut(const std::vector<int64_t> &shape,
                          const SavedPiece &piece, const std::string &whole,
                          int64_t bytes) {
  int64_t count = 1;
  for (int64_t size : piece.size)
    count *= size;
  std::string data;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      at += (piece.begin[d] + rest % piece.size[d]) * stride;
      rest /= piece.size[d];
      stride *= shape[d];
    }
    data.append(whole, static_cast<size_t>(at * bytes),
                static_cast<size_t>(bytes));
  }
  return data;
}

void SavedFolder::add(const std::string &name, const std::string &type,
                      std::vector<int64_t> shape, const std::string &whole,
                      std::vector<SavedPiece> pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    SavedPiece &piece = pieces[i];
    piece.file = static_cast<int>(i % contents.size());
    std::string &file = contents[piece.file];
    piece.offset = static_cast<int64_t>(file.size());
    std::string data = cutOut(shape, piece, whole, typeBytes(type));
    piece.hash = hashOf(data);
    file += data;
  }
  manifest.tensors.push_back({name, type, std::move(shape), std::move(pieces)});
}

std::string SavedFolder::path(const std::string &name) const {
  return (std::filesystem::path(folder) / name).string();
}

void SavedFolder::write() {
  std::filesystem::create_directories(folder);
  std::sort(manifest.tensors.begin(), manifest.tensors.end(),
            [](const auto &a, const auto &b) { return a.name < b.name; });
  for (size_t i = 0; i < contents.size(); ++i) {
    manifest.files[i].bytes = static_cast<int64_t>(contents[i].size());
    std::ofstream(path(manifest.files[i].name), std::ios::binary)
        << contents[i];
  }
  std::ofstream(path("manifest.json"), std::ios::binary) << toJson(manifest);
}

} // namespace rota::test
