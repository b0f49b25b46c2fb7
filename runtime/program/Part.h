// SPDX-License-Identifier: Apache-2.0
//
// Which elements of a divided tensor one rank has.
#ifndef ROTA_RUNTIME_PROGRAM_PART_H
#define ROTA_RUNTIME_PROGRAM_PART_H

#include "runtime/program/Program.h"

#include <functional>

namespace rota {

/// A box of a row-major tensor: in dimension i the elements [begin[i], begin[i]
/// + valid[i]), in memory with room for size[i] >= valid[i].
struct Part {
  std::vector<int64_t> whole; // shape of the tensor
  std::vector<int64_t> begin, size, valid;

  /// Elements of memory, and those that hold elements of the tensor.
  int64_t elements() const;
  int64_t validElements() const;
};

/// The part of the rank with these coordinates under `division`.
Part partOf(const std::vector<int64_t> &shape, const Division &division,
            const std::vector<MeshAxis> &mesh,
            const std::vector<int64_t> &coordinates);

/// A parameter's part in the optimizer's division, as a part of the tensor that
/// files have (`fileShape`). Where divisions follow each other in one
/// dimension, each cuts the part that the one before leaves, as the collectives
/// between them do.
Part optimizerPart(const Parameter &parameter,
                   const std::vector<MeshAxis> &mesh,
                   const std::vector<int64_t> &coordinates);

/// Calls body(index in the whole tensor, index in the part, elements) for each
/// run of valid elements that lie side by side in both, among the part's
/// elements [begin, end), in order.
void forEachRun(const Part &part, int64_t begin, int64_t end,
                const std::function<void(int64_t whole, int64_t inPart,
                                         int64_t count)> &body);

/// True for the first of the ranks that hold the same part: its coordinates on
/// all axes but `stage` that do not divide are 0.
bool isFirstReplica(const Division &division, const std::vector<MeshAxis> &mesh,
                    const std::vector<int64_t> &coordinates);

/// The rank's coordinate on each axis, and back.
std::vector<int64_t> coordinatesOf(const std::vector<MeshAxis> &mesh, int rank);
int rankOf(const std::vector<MeshAxis> &mesh,
           const std::vector<int64_t> &coordinates);

/// The number of the axis `stage` in a mesh that has it.
int stageAxis(const std::vector<MeshAxis> &mesh);

/// Bytes of the logits of a rank that has them.
int64_t logitsBytes(const Program &program);

/// Elements that a rank gives to a collective, and gets from it.
int64_t inputElements(const Collective &collective,
                      const std::vector<MeshAxis> &mesh);
int64_t outputElements(const Collective &collective,
                       const std::vector<MeshAxis> &mesh);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_PART_H
