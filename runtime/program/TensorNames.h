// SPDX-License-Identifier: Apache-2.0
//
// The names under which files hold parameters. A parameter's name may have
// placeholders in braces: the first of a parameter in a stack stands for the
// layer, the others stand, in order, for leading dimensions of the tensor.
// "layers.{layer}.experts.{expert}.up" of shape [8, m, n] is eight tensors of
// shape [m, n] in each layer. A joined parameter is a range of such a tensor.
#ifndef ROTA_RUNTIME_PROGRAM_TENSORNAMES_H
#define ROTA_RUNTIME_PROGRAM_TENSORNAMES_H

#include "runtime/program/Parameter.h"

#include <algorithm>

namespace rota {

/// Number of placeholders in a name whose braces are closed.
constexpr size_t placeholders(std::string_view name) {
  return std::ranges::count(name, '{');
}

/// The name that files have for the parameter, that of its joined tensor where
/// it is part of one.
const std::string &fileName(const Parameter &parameter);

/// The shape of what has that name in one layer.
std::vector<int64_t> fileShape(const Parameter &parameter);

/// `name` with the layer's number in the place of its first placeholder.
std::string withLayer(const std::string &name, int64_t layer);

/// `fileName` with the layer's number in it; `layer` -1 for a parameter outside
/// the stack. Placeholders of dimensions stay.
std::string tensorName(const Parameter &parameter, int64_t layer);

/// Number of leading dimensions that the name has placeholders for. A valid
/// parameter has at least as many dimensions.
size_t namedDimensions(const Parameter &parameter);

/// The tensors of files that together hold one layer's parameter, or what it is
/// joined in: they lie one after the other in `fileShape`, which is row-major.
struct StoredTensors {
  std::vector<std::string> names;
  std::vector<int64_t> shape; // shape of each tensor
};

StoredTensors storedTensors(const Parameter &parameter, int64_t layer);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_TENSORNAMES_H
