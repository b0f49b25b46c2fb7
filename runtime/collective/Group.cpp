// SPDX-License-Identifier: Apache-2.0
//
// Ranks and their coordinates on the mesh.
#include "runtime/collective/Communicator.h"

namespace rota {

std::vector<int64_t> coordinatesOf(const std::vector<MeshAxis> &mesh,
                                   int rank) {
  std::vector<int64_t> coordinates(mesh.size());
  for (size_t axis = mesh.size(); axis-- > 0;) {
    coordinates[axis] = rank % mesh[axis].size;
    rank = static_cast<int>(rank / mesh[axis].size);
  }
  return coordinates;
}

int rankOf(const std::vector<MeshAxis> &mesh,
           const std::vector<int64_t> &coordinates) {
  int64_t rank = 0;
  for (size_t axis = 0; axis < mesh.size(); ++axis)
    rank = rank * mesh[axis].size + coordinates[axis];
  return static_cast<int>(rank);
}

RankGroup groupOf(const std::vector<MeshAxis> &mesh, int rank,
                  const std::vector<int> &axes) {
  RankGroup group;
  int64_t members = groupSize(mesh, axes);
  for (int axis : axes)
    group.sizes.push_back(mesh[axis].size);
  std::vector<int64_t> coordinates = coordinatesOf(mesh, rank);
  for (int64_t member = 0; member < members; ++member) {
    int64_t rest = member;
    for (size_t i = axes.size(); i-- > 0;) {
      coordinates[axes[i]] = rest % mesh[axes[i]].size;
      rest /= mesh[axes[i]].size;
    }
    group.ranks.push_back(rankOf(mesh, coordinates));
    if (group.ranks.back() == rank)
      group.index = static_cast<int>(member);
  }
  return group;
}

} // namespace rota
