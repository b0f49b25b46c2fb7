// SPDX-License-Identifier: Apache-2.0
#include "ir/rota/cost/MeshGroup.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::rota;

int64_t MeshGroup::ranks() const {
  int64_t ranks = 1;
  for (const Part &part : parts)
    ranks *= part.ranks;
  return ranks;
}

int64_t MeshGroup::span() const {
  int64_t last = 0;
  for (const Part &part : parts)
    last += (part.ranks - 1) * part.stride;
  return last + 1;
}

int64_t MeshGroup::ranksWithin(int64_t devices) const {
  int64_t ranks = 1;
  for (const Part &part : parts)
    ranks *= std::clamp(devices / part.stride, int64_t(1), part.ranks);
  return std::min(ranks, devices);
}

MeshGroup mlir::rota::groupOf(ArrayRef<AxisRefAttr> axes, MeshAttr mesh) {
  MeshGroup group;
  for (AxisRefAttr ref : axes) {
    auto axis = static_cast<size_t>(ref.getAxis());
    ArrayRef<int64_t> sizes = mesh.getSizes();
    int64_t stride = 1;
    for (int64_t size : sizes.drop_front(axis + 1))
      stride *= size;
    int64_t ranks = mesh.getSize(ref);
    if (!ref.isWhole())
      stride *= sizes[axis] / (ref.getBefore() * ranks);
    if (ranks > 1)
      group.parts.push_back({ranks, stride});
  }
  return group;
}
