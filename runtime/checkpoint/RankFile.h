// SPDX-License-Identifier: Apache-2.0
//
// The file of one rank in a checkpoint: a safetensors file with the rank's
// pieces of the state.
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
/// file `path`, which is on disk afterwards. Moves the elements of each piece
/// together first: padding is not written. Throws RunError, also soon after
/// `isCancelled` has become true; then there is no file.
RankFile writeRankFile(const std::string &path,
                       const std::vector<StateTensor> &tensors,
                       const StateCopy &copy, char *memory,
                       const std::atomic<bool> &isCancelled);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_RANKFILE_H
