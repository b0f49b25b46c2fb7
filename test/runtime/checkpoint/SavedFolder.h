// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints made by hand, with tensors divided at will.
#ifndef ROTA_TEST_RUNTIME_CHECKPOINT_SAVEDFOLDER_H
#define ROTA_TEST_RUNTIME_CHECKPOINT_SAVEDFOLDER_H

#include "runtime/checkpoint/Manifest.h"

#include <random>

namespace rota::test {

/// Boxes that cover a tensor of this shape: a grid of random cuts, in random
/// order.
std::vector<SavedPiece> randomPieces(const std::vector<int64_t> &shape,
                                     std::mt19937 &random);

class SavedFolder {
public:
  /// Its contents are written to `folder` by write().
  SavedFolder(std::string folder, int files);

  Manifest manifest;
  /// Adds a tensor with the values `whole` of elements of `type`, cut
  /// into `pieces`, whose places and hashes are filled in.
  void add(const std::string &name, const std::string &type,
           std::vector<int64_t> shape, const std::string &whole,
           std::vector<SavedPiece> pieces);
  /// Makes the folder with the manifest and its files.
  void write();
  std::string path(const std::string &name) const;

private:
  std::string folder;
  std::vector<std::string> contents; // contents of the files
};

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_CHECKPOINT_SAVEDFOLDER_H
