// SPDX-License-Identifier: Apache-2.0
//
// Ranks and their coordinates on the mesh.
#include "runtime/collective/Communicator.h"
#include "runtime/program/Part.h"

namespace rota {

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
