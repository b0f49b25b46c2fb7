// SPDX-License-Identifier: Apache-2.0
//
// The facts about a compiled model that the memory plan needs: tasks, the
// blocks they work on and their sizes. Plain data without MLIR, so that the
// plan can be made and tested alone. All sizes and offsets are in bytes.
#ifndef ROTA_LOWERING_MEMORY_LAYOUT_H
#define ROTA_LOWERING_MEMORY_LAYOUT_H

#include "ir/pipe/Timeline.h"
#include "runtime/program/Program.h"

#include <array>

namespace rota::memory {

/// Every block of an arena starts at a multiple of this.
inline constexpr int64_t kAlignment = 64;

inline int64_t alignUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Lays blocks one after the other, each aligned.
class Packer {
public:
  /// The offset of a new block of `bytes`.
  int64_t add(int64_t bytes) {
    int64_t offset = end;
    end += alignUp(bytes);
    return offset;
  }
  int64_t bytes() const { return end; }

private:
  int64_t end = 0;
};

/// The parameters of one layer, of `embed` or of `loss`: one block with what
/// tasks read and one with the gradients, both at compute division.
struct ParameterBlock {
  struct Entry {
    int parameter = 0;    // in Program::parameters
    int64_t value = 0;    // offset in the block of values
    int64_t gradient = 0; // offset in the block of gradients; -1: frozen
  };
  std::vector<Entry> entries;
  int64_t bytes = 0, gradientBytes = 0;
};

/// Tasks of a layer kind, of `embed` or of `loss`, as indices in
/// Program::tasks; -1 where there is none. `forward` is embed or loss itself
/// for those. Either `backward` or the pair of `backwardInput` and
/// `backwardWeight` is there.
struct TaskGroup {
  std::string name;
  int forward = -1, backward = -1, backwardInput = -1, backwardWeight = -1;
  int64_t residualBytes = 0;  // written by forward, read by backward
  int64_t offloadedBytes = 0; // bytes that may rest on the host
  bool offloadsInput = false; // the activation that enters may rest there, too
  int64_t cotangentBytes = 0; // written by the input half, read by the weights'
  std::vector<int> auxiliaryLosses; // one for each sum that forward writes
  std::vector<int> observations;    // one for each table that forward writes
  ParameterBlock block;
};

/// A compiled model. `program` holds what does not depend on the stages, its
/// mesh and collectives among it, unless there is no mesh; its parameters list
/// the layers that have them. Blocks have the sizes of one rank's part.
struct ModelLayout {
  Program program;
  std::vector<TaskGroup> kinds;
  /// Parameters of both ends (a tied embedding) are the last entries of
  /// `embed`'s block and the first of `loss`'s, in one order; `tiedBytes` is
  /// what they take there. Each end has gradients of its own.
  TaskGroup embed, loss;
  int logits = -1; // task that runs beside the loss when logits are asked for
  int lossWeight = -1; // task that gives the loss's weight before a step
  int64_t tiedBytes = 0;
  int64_t activationBytes = 0;           // between layers
  std::vector<int64_t> scratchBytes;     // per task
  std::vector<RotaryTable> tables;       // offsets in the block of constants
  std::vector<ShardOffset> shardOffsets; // likewise
  // The offset of the cotangents of auxiliary losses; -1: no task reads one.
  int64_t auxiliaryCotangents = -1;
  int64_t constantBytes = 0;
};

/// One layer of a chunk: its kind, an index in ModelLayout::kinds, and its
/// number.
struct ChunkLayer {
  int kind = 0;
  int64_t layer = 0;
};

/// The layers of each chunk; the first and the last may have none. The blocks
/// of a chunk are, in this order, that of `embed` in the first chunk, those of
/// its layers, that of `loss` in the last.
using ChunkTable = std::vector<std::vector<ChunkLayer>>;

/// Whether tasks see gathered copies of weights, in windows of the timeline's
/// UNSHARD and RESHARD, and add to gradients that REDUCE_GRAD reduces.
inline bool hasWindows(const Program &program) {
  for (const Parameter &p : program.parameters)
    if (p.unshard >= 0)
      return true;
  return false;
}

/// Whether tasks of the group, those of backward too, read means of what its
/// forward observes.
inline bool readsMeans(const Program &program, const TaskGroup &group) {
  for (int observation : group.observations)
    if (program.observations[observation].isAveraged)
      return true;
  return false;
}

/// Bytes of one rank's part of a microbatch's data.
inline int64_t partBytes(const DataForm &form, const Program &program) {
  return form.shape.empty()
             ? 0
             : byteSize(form.type) *
                   partElements(form.shape, form.division, program.mesh);
}

/// The fields of RotaFrame by number.
enum FrameField : int {
#define ROTA_ENUMERATOR(name, compilerName) compilerName,
  ROTA_FRAME_FIELDS(ROTA_ENUMERATOR)
#undef ROTA_ENUMERATOR
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_LAYOUT_H
