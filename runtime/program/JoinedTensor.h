// SPDX-License-Identifier: Apache-2.0
//
// A tensor of files that several parameters make together, such as the one
// matrix of query, key and value: they lie one after the other along one of its
// dimensions. Files, checkpoints and random initialization know the tensor,
// compiled code the parameters.
#ifndef ROTA_RUNTIME_PROGRAM_JOINEDTENSOR_H
#define ROTA_RUNTIME_PROGRAM_JOINEDTENSOR_H

#include <cstdint>
#include <string>

namespace rota {

/// The tensor that a parameter is joined in, and its place there.
struct JoinedTensor {
  // The tensor's name, with placeholders as a parameter's name has them; empty:
  // the parameter is a tensor by itself.
  std::string name;
  int dimension = 0; // a dimension of the parameter's shape
  int64_t begin = 0; // place of the parameter's first element along it
  int64_t size = 0;  // size of the tensor along it
};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_JOINEDTENSOR_H
