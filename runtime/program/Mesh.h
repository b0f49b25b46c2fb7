// SPDX-License-Identifier: Apache-2.0
//
// The device mesh, and the divisions of tensors over it.
#ifndef ROTA_RUNTIME_PROGRAM_MESH_H
#define ROTA_RUNTIME_PROGRAM_MESH_H

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

/// One axis of the device mesh. The ranks of a run are numbered row-major over
/// Program::mesh, whose first axis changes slowest. All ranks with one
/// coordinate on the axis `stage` run the same Stage.
struct MeshAxis {
  std::string name;
  int64_t size = 1;
};

/// The division of a tensor: for each dimension the mesh axes (indices in
/// Program::mesh, major first) that split it. With n parts, part i of a
/// dimension of size d holds elements [i*p, min(d, (i+1)*p)) with p =
/// ceil(d/n); memory has room for p everywhere, zero where there is no element.
using Division = std::vector<std::vector<int>>;

/// The shape of one rank's part, the largest where they differ.
std::vector<int64_t> partShape(const std::vector<int64_t> &shape,
                               const Division &division,
                               const std::vector<MeshAxis> &mesh);
/// Elements of that shape.
int64_t partElements(const std::vector<int64_t> &shape,
                     const Division &division,
                     const std::vector<MeshAxis> &mesh);

/// Number of ranks along these axes.
int64_t groupSize(const std::vector<MeshAxis> &mesh,
                  const std::vector<int> &axes);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_MESH_H
