// SPDX-License-Identifier: Apache-2.0
//
// Sizes and predicates of a program.
#include "runtime/program/Program.h"

namespace rota {

int64_t DataForm::elements() const {
  int64_t count = shape.empty() ? 0 : 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t DataForm::bytes() const { return elements() * byteSize(type); }

int64_t rankCount(const Program &program) {
  int64_t ranks = 1;
  for (const MeshAxis &axis : program.mesh)
    ranks *= axis.size;
  return ranks;
}

bool hasMeans(const Program &program) {
  for (const Observation &observation : program.observations)
    if (observation.isAveraged)
      return true;
  return false;
}

} // namespace rota
