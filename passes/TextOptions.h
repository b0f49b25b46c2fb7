// SPDX-License-Identifier: Apache-2.0
//
// The text forms of options that are enums.
#ifndef ROTA_PASSES_TEXTOPTIONS_H
#define ROTA_PASSES_TEXTOPTIONS_H

#include "mlir/Pass/PassOptions.h"
#include "runtime/text/Names.h"

namespace rota {

/// The names of `Enum`, as the values of an option of a pass.
template <typename Enum> llvm::cl::ValuesClass valuesOf() {
  return []<size_t... I>(std::index_sequence<I...>) {
    return llvm::cl::values(
        llvm::cl::OptionEnumValue{Names<Enum>::list[I], int(I), ""}...);
  }(std::make_index_sequence<std::size(Names<Enum>::list)>());
}

} // namespace rota

#endif // ROTA_PASSES_TEXTOPTIONS_H
