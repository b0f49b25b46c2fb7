// SPDX-License-Identifier: Apache-2.0
//
// Parts of tensors out of a checkpoint, whatever division wrote it.
#ifndef ROTA_RUNTIME_CHECKPOINT_READPART_H
#define ROTA_RUNTIME_CHECKPOINT_READPART_H

#include "runtime/checkpoint/BoxRuns.h"
#include "runtime/checkpoint/CheckpointFiles.h"

namespace rota {

/// Reads the elements of `part` to `place`, host memory with room for the part;
/// padding stays as it is. Every piece that has one of these elements is read
/// as a whole, for its hash; no other piece is. Throws DamagedCheckpoint; part
/// of the elements may be there then.
void readPart(Checkpoint &checkpoint, const SavedTensor &tensor,
              const Box &part, char *place);

/// Reads the `count` elements of `part` of a tensor of type F32 or BF16 as f32.
void readFloats(Checkpoint &checkpoint, const SavedTensor &tensor,
                const Box &part, int64_t count, float *place);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_READPART_H
