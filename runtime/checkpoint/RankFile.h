// SPDX-License-Identifier: Apache-2.0
//
// The file of one rank in a checkpoint: a safetensors file with the rank's
// pieces of the state. Until the checkpoint has its manifest, a table beside it
// says where the pieces are; a file with a table is on disk as a whole.
#ifndef ROTA_RUNTIME_CHECKPOINT_RANKFILE_H
#define ROTA_RUNTIME_CHECKPOINT_RANKFILE_H

#include "runtime/program/State.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace rota {

/// The type's name in safetensors files: "F32".
const char *typeName(ElementType type);

/// The name of a piece in its file: the tensor's name, "@" and the piece's
/// first element in each dimension: "model.norm.weight/first_moment@128".
std::string pieceName(const StateTensor &tensor, const StatePiece &piece);

struct RankFile {
  struct Piece {
    int64_t offset; // bytes from the file's start
    uint64_t hash;  // hashOf its bytes
  };
  int64_t bytes = 0;         // size of the file
  std::vector<Piece> pieces; // pieces in the order of the copy
};

/// Writes the pieces of `copy`, which lie in `memory` as its places say, to the
/// file of `rank` in `folder`, which is on disk afterwards, and then a table of
/// them for the rank that writes the manifest. Moves the elements of each piece
/// together first: padding is not written. Throws RunError, also soon after
/// `isCancelled` has become true; then there is no file.
void writeRankFile(const std::string &folder, int rank,
                   const std::vector<StateTensor> &tensors,
                   const StateCopy &copy, char *memory,
                   const std::atomic<bool> &isCancelled);

/// Waits until `count` ranks have written their files to `folder`. Throws
/// RunError, also soon after `isCancelled` has become true.
void waitForRankFiles(const std::string &folder, size_t count,
                      const std::atomic<bool> &isCancelled);

/// Reads the table of `rank`, which has that many pieces, and removes it.
/// Throws RunError.
RankFile takePieceTable(const std::string &folder, int rank, size_t pieces);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_RANKFILE_H
