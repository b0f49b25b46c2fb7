// SPDX-License-Identifier: Apache-2.0
#include "runtime/program/Mesh.h"

namespace rota {

int64_t groupSize(const std::vector<MeshAxis> &mesh,
                  const std::vector<int> &axes) {
  int64_t ranks = 1;
  for (int axis : axes)
    ranks *= mesh[axis].size;
  return ranks;
}

std::vector<int64_t> partShape(const std::vector<int64_t> &shape,
                               const Division &division,
                               const std::vector<MeshAxis> &mesh) {
  std::vector<int64_t> part = shape;
  for (size_t i = 0; i < division.size(); ++i) {
    int64_t parts = groupSize(mesh, division[i]);
    part[i] = (part[i] + parts - 1) / parts;
  }
  return part;
}

int64_t partElements(const std::vector<int64_t> &shape,
                     const Division &division,
                     const std::vector<MeshAxis> &mesh) {
  int64_t count = 1;
  for (int64_t size : partShape(shape, division, mesh))
    count *= size;
  return count;
}

} // namespace rota
