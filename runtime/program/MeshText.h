// SPDX-License-Identifier: Apache-2.0
//
// Meshes as text, in the form of --mesh: "data=2,stage=4". Axes of one rank are
// left out.
#ifndef ROTA_RUNTIME_PROGRAM_MESHTEXT_H
#define ROTA_RUNTIME_PROGRAM_MESHTEXT_H

#include "runtime/program/Mesh.h"

#include <string_view>

namespace rota {

inline void addAxis(std::string &text, std::string_view name, int64_t size) {
  if (size != 1)
    text.append(text.empty() ? "" : ",")
        .append(name)
        .append("=" + std::to_string(size));
}

inline std::string meshText(const std::vector<MeshAxis> &mesh) {
  std::string text;
  for (const MeshAxis &axis : mesh)
    addAxis(text, axis.name, axis.size);
  return text.empty() ? "stage=1" : text;
}

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_MESHTEXT_H
