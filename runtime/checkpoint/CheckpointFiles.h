// SPDX-License-Identifier: Apache-2.0
//
// Reading checkpoints: which there are, and the pieces of one of them.
#ifndef ROTA_RUNTIME_CHECKPOINT_CHECKPOINTFILES_H
#define ROTA_RUNTIME_CHECKPOINT_CHECKPOINTFILES_H

#include "runtime/Error.h"
#include "runtime/checkpoint/Manifest.h"

#include <functional>
#include <span>

namespace rota {

/// A file of a checkpoint is missing, unreadable, or not what was written.
struct DamagedCheckpoint : InputError {
  using InputError::InputError;
};

/// The paths of the checkpoints in `folder`, the newest first; their contents
/// may be damaged. None where there is no such folder.
std::vector<std::string> findCheckpoints(const std::string &folder);

/// Whether `path` is a checkpoint and not a folder of checkpoints: it has a
/// manifest, or a checkpoint's name.
bool isCheckpoint(const std::string &path);

/// The checkpoints that a user means by `path`: itself, or those in it, the
/// newest first. Throws InputError where there is none.
std::vector<std::string> checkpointsAt(const std::string &path);

/// An open checkpoint: its manifest was read and checked, and its files are
/// there with their sizes.
class Checkpoint {
public:
  /// Throws DamagedCheckpoint, also where there is no such folder.
  explicit Checkpoint(const std::string &folder);
  ~Checkpoint();
  Checkpoint(const Checkpoint &) = delete;
  Checkpoint &operator=(const Checkpoint &) = delete;

  const std::string &folder() const { return path; }
  const Manifest &manifest() const { return contents; }
  /// Bytes of all files that the manifest names.
  int64_t bytes() const;

  /// A piece is read in blocks of at most this size, a multiple of all
  /// elements' sizes.
  static constexpr int64_t kBlockBytes = 16 << 20;

  /// Reads a piece of `tensor`: take(begin, block) gets its bytes from `begin`
  /// on, block by block. Throws DamagedCheckpoint when the file cannot be read
  /// or, after the last block, when the piece's hash is another one.
  void readPiece(
      const SavedTensor &tensor, const SavedPiece &piece,
      const std::function<void(int64_t begin, std::span<const char>)> &take);

private:
  void open(int number);
  void readBlock(int64_t offset, std::span<char> block);
  [[noreturn]] void fail(int number, const std::string &message) const;

  std::string path;
  Manifest contents;
  int openNumber = -1, descriptor = -1; // the file that was read last
  std::vector<char> buffer;
};

/// A message for each piece that cannot be read or has another hash. Reads all
/// bytes.
std::vector<std::string> wrongPieces(Checkpoint &checkpoint);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_CHECKPOINTFILES_H
