// SPDX-License-Identifier: Apache-2.0
//
// The types of elements that tensors have in memory.
#ifndef ROTA_RUNTIME_PROGRAM_ELEMENTTYPE_H
#define ROTA_RUNTIME_PROGRAM_ELEMENTTYPE_H

#include <cstdint>

namespace rota {

enum class ElementType { F32, BF16, I32 };

/// Bytes of one element.
constexpr int64_t byteSize(ElementType type) {
  return type == ElementType::BF16 ? 2 : 4;
}

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_ELEMENTTYPE_H
