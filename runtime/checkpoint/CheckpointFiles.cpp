// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/CheckpointFiles.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/checkpoint/ReadAt.h"
#include "runtime/checkpoint/Safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>
#include <unistd.h>

namespace rota {

namespace fs = std::filesystem;

std::vector<std::string> findCheckpoints(const std::string &folder) {
  std::vector<std::string> found;
  std::vector<int64_t> steps = checkpointsIn(folder);
  for (size_t i = steps.size(); i-- > 0;)
    found.push_back((fs::path(folder) / checkpointName(steps[i])).string());
  return found;
}

static std::string nameOf(const std::string &path) {
  fs::path folder = fs::path(path).lexically_normal();
  if (!folder.has_filename()) // a slash at the end
    folder = folder.parent_path();
  return folder.filename().string();
}

bool isCheckpoint(const std::string &path) {
  std::error_code error;
  return stepOfCheckpoint(nameOf(path)) ||
         fs::exists(fs::path(path) / kManifestFile, error);
}

std::vector<std::string> checkpointsAt(const std::string &path) {
  if (isCheckpoint(path))
    return {path};
  std::vector<std::string> found = findCheckpoints(path);
  if (found.empty())
    throw InputError(fmt::format(
        "expected a checkpoint or a folder of checkpoints, got '{}'", path));
  return found;
}

static std::string readText(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw DamagedCheckpoint(
        fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  return text.str();
}

Checkpoint::Checkpoint(const std::string &folder) : path(folder) {
  std::string file = (fs::path(folder) / kManifestFile).string();
  std::string text = readText(file);
  try {
    contents = manifestFromJson(text, file);
  } catch (const InputError &error) {
    throw DamagedCheckpoint(error.what());
  }
  if (auto step = stepOfCheckpoint(nameOf(path));
      step && *step != contents.run.step)
    throw DamagedCheckpoint(
        fmt::format("'{}': run.step: expected that of the folder's name, got "
                    "{}",
                    file, contents.run.step));
  for (size_t i = 0; i < contents.files.size(); ++i) {
    std::error_code error;
    auto bytes = static_cast<int64_t>(
        fs::file_size(fs::path(path) / contents.files[i].name, error));
    if (error)
      fail(static_cast<int>(i), error.message());
    if (bytes != contents.files[i].bytes)
      fail(static_cast<int>(i), fmt::format("expected {} bytes, got {}",
                                            contents.files[i].bytes, bytes));
  }
}

Checkpoint::~Checkpoint() {
  if (descriptor >= 0)
    close(descriptor);
}

int64_t Checkpoint::bytes() const {
  return std::accumulate(
      contents.files.begin(), contents.files.end(), int64_t(0),
      [](int64_t sum, const auto &file) { return sum + file.bytes; });
}

void Checkpoint::fail(int number, const std::string &message) const {
  throw DamagedCheckpoint(fmt::format(
      "'{}': {}", (fs::path(path) / contents.files[number].name).string(),
      message));
}

void Checkpoint::open(int number) {
  if (number == openNumber)
    return;
  if (descriptor >= 0)
    close(descriptor);
  openNumber = -1;
  descriptor = ::open((fs::path(path) / contents.files[number].name).c_str(),
                      O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail(number, fmt::format("cannot open: {}", std::strerror(errno)));
  openNumber = number;
}

void Checkpoint::readBlock(int64_t offset, std::span<char> block) {
  int64_t read = readAt(descriptor, offset, block);
  if (read < 0)
    fail(openNumber, fmt::format("cannot read: {}", std::strerror(errno)));
  if (read < static_cast<int64_t>(block.size()))
    fail(openNumber,
         fmt::format("expected {} bytes, it ends at byte {} now",
                     contents.files[openNumber].bytes, offset + read));
}

void Checkpoint::readPiece(
    const SavedTensor &tensor, const SavedPiece &piece,
    const std::function<void(int64_t begin, std::span<const char>)> &take) {
  open(piece.file);
  int64_t bytes =
      std::accumulate(piece.size.begin(), piece.size.end(),
                      typeBytes(tensor.type), std::multiplies<int64_t>());
  buffer.resize(static_cast<size_t>(std::min(bytes, kBlockBytes)));
  RunningHash hash;
  for (int64_t at = 0; at < bytes; at += kBlockBytes) {
    std::span<char> block(
        buffer.data(), static_cast<size_t>(std::min(kBlockBytes, bytes - at)));
    readBlock(piece.offset + at, block);
    hash.add({block.data(), block.size()});
    take(at, block);
  }
  if (uint64_t found = hash.value(); found != piece.hash)
    fail(piece.file,
         fmt::format("tensor '{}': expected the hash {:016x} of bytes {} to "
                     "{}, got {:016x}",
                     tensor.name, piece.hash, piece.offset,
                     piece.offset + bytes, found));
}

std::vector<std::string> wrongPieces(Checkpoint &checkpoint) {
  std::vector<std::string> damage;
  for (const SavedTensor &tensor : checkpoint.manifest().tensors)
    for (const SavedPiece &piece : tensor.pieces)
      try {
        checkpoint.readPiece(tensor, piece,
                             [](int64_t, std::span<const char>) {});
      } catch (const DamagedCheckpoint &error) {
        damage.push_back(error.what());
      }
  return damage;
}

} // namespace rota
