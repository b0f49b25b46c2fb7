// SPDX-License-Identifier: Apache-2.0
#include "runtime/program/Part.h"
#include "runtime/program/TensorNames.h"

#include <algorithm>

namespace rota {

static int64_t product(const std::vector<int64_t> &sizes) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

int64_t Part::elements() const { return product(size); }
int64_t Part::validElements() const { return product(valid); }

static Part wholePart(const std::vector<int64_t> &shape) {
  return {shape, std::vector<int64_t>(shape.size(), 0), shape, shape};
}

/// Cuts dimension `d` of the part along axes[from ..].
static void cut(Part &part, size_t d, const std::vector<int> &axes, size_t from,
                const std::vector<MeshAxis> &mesh,
                const std::vector<int64_t> &coordinates) {
  int64_t parts = 1, index = 0;
  for (size_t i = from; i < axes.size(); ++i) {
    parts *= mesh[axes[i]].size;
    index = index * mesh[axes[i]].size + coordinates[axes[i]];
  }
  int64_t size = (part.size[d] + parts - 1) / parts;
  int64_t left = part.valid[d] - index * size;
  part.begin[d] += index * size;
  part.size[d] = size;
  part.valid[d] = std::clamp<int64_t>(left, 0, size);
}

Part partOf(const std::vector<int64_t> &shape, const Division &division,
            const std::vector<MeshAxis> &mesh,
            const std::vector<int64_t> &coordinates) {
  Part part = wholePart(shape);
  for (size_t d = 0; d < division.size(); ++d)
    cut(part, d, division[d], 0, mesh, coordinates);
  return part;
}

Part optimizerPart(const Parameter &parameter,
                   const std::vector<MeshAxis> &mesh,
                   const std::vector<int64_t> &coordinates) {
  Part part = wholePart(parameter.shape);
  std::vector<size_t> done(parameter.shape.size(), 0); // axes cut so far
  for (const Division *division :
       {&parameter.computeDivision, &parameter.storageDivision,
        &parameter.optimizerDivision})
    for (size_t d = 0; d < division->size(); ++d) {
      cut(part, d, (*division)[d], done[d], mesh, coordinates);
      done[d] = (*division)[d].size();
    }
  part.whole = fileShape(parameter);
  if (!parameter.joined.name.empty())
    part.begin[parameter.joined.dimension] += parameter.joined.begin;
  return part;
}

void forEachRun(const Part &part, int64_t begin, int64_t end,
                const std::function<void(int64_t whole, int64_t inPart,
                                         int64_t count)> &body) {
  // From dimension `first` on, neighbours in the part are neighbours in the
  // whole: all later dimensions are undivided.
  size_t rank = part.whole.size();
  size_t first = rank;
  int64_t inner = 1; // elements of the dimensions after `first`
  while (first > 0) {
    --first;
    if (part.valid[first] != part.whole[first] || first == 0)
      break;
    inner *= part.whole[first];
  }
  int64_t run = rank ? part.size[first] * inner : 1;
  int64_t valid = rank ? part.valid[first] * inner : 1;
  for (int64_t at = begin; at < end;) {
    int64_t row = at / run, column = at % run;
    int64_t next = std::min(end, (row + 1) * run);
    int64_t count = std::min(next - at, valid - column);
    int64_t whole = rank ? part.begin[first] * inner + column : column;
    int64_t stride = rank ? part.whole[first] * inner : 1, rest = row;
    bool exists = true;
    for (size_t d = first; d-- > 0;) {
      int64_t index = rest % part.size[d];
      rest /= part.size[d];
      exists &= index < part.valid[d];
      whole += (part.begin[d] + index) * stride;
      stride *= part.whole[d];
    }
    if (exists && count > 0)
      body(whole, at, count);
    at = next;
  }
}

bool isFirstReplica(const Division &division, const std::vector<MeshAxis> &mesh,
                    const std::vector<int64_t> &coordinates) {
  for (size_t axis = 0; axis < mesh.size(); ++axis) {
    bool divides = mesh[axis].name == "stage";
    for (const std::vector<int> &axes : division)
      divides |= std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!divides && coordinates[axis] != 0)
      return false;
  }
  return true;
}

int stageAxis(const std::vector<MeshAxis> &mesh) {
  auto found = std::find_if(mesh.begin(), mesh.end(), [](const MeshAxis &axis) {
    return axis.name == "stage";
  });
  return static_cast<int>(found - mesh.begin());
}

static int64_t wholeElements(const Collective &c) {
  return c.outer * c.size * c.inner;
}

static int64_t partElements(const Collective &c,
                            const std::vector<MeshAxis> &mesh) {
  int64_t ranks = groupSize(mesh, c.axes);
  return c.outer * ((c.size + ranks - 1) / ranks) * c.inner;
}

int64_t inputElements(const Collective &c, const std::vector<MeshAxis> &mesh) {
  if (c.kind == Collective::Kind::AllGather)
    return partElements(c, mesh);
  if (c.kind == Collective::Kind::AllToAll)
    return c.splitOuter * c.splitSize * c.splitInner;
  return wholeElements(c);
}

int64_t outputElements(const Collective &c, const std::vector<MeshAxis> &mesh) {
  if (c.kind == Collective::Kind::ReduceScatter ||
      c.kind == Collective::Kind::Slice)
    return partElements(c, mesh);
  return wholeElements(c);
}

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

int64_t logitsBytes(const Program &program) {
  int64_t block =
      byteSize(program.logits.type) *
      partElements(program.logits.shape, program.logits.division, program.mesh);
  return program.samples ? block : program.microbatches * block;
}

} // namespace rota
