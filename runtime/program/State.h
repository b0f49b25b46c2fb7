// SPDX-License-Identifier: Apache-2.0
//
// The train state of a program as one list: every tensor that the next step
// depends on, the master copies of the parameters and the states of the
// optimizer. It follows from the program alone, so the compiler can print it.
#ifndef ROTA_RUNTIME_PROGRAM_STATE_H
#define ROTA_RUNTIME_PROGRAM_STATE_H

#include "runtime/program/Part.h"

namespace rota {

/// A parameter in one layer.
struct StateSource {
  int parameter = 0;
  // The stage whose ranks have it, and its number in Stage::updates.
  int stage = 0, update = 0;
};

/// A whole tensor of the state, as if there were one rank and as files have it.
struct StateTensor {
  // The parameter's name in files with the layer in it; then, for a state, "/"
  // and the state's name: "model.norm.weight/first_moment".
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  int64_t layer = -1;
  int state = -1; // in Parameter::states; -1: the master copy
  // The parameter, or those that are joined in this tensor.
  std::vector<StateSource> sources;

  int64_t elements() const;
  int64_t bytes() const;
};

/// The type of a parameter's master copy: f32, or where nothing updates it,
/// that of what tasks read, which is its master copy then.
ElementType masterType(const Parameter &parameter);

/// All tensors of the state by parameter, layer and state.
std::vector<StateTensor> stateTensors(const Program &program);

/// The tensors of master copies, in the order of their names.
std::vector<StateTensor> masterTensors(const Program &program);

/// One rank's part of a parameter in a tensor of the state.
struct StatePiece {
  int tensor = 0;     // in stateTensors
  Part part;          // part of the whole tensor
  int64_t offset = 0; // offset of the part in the rank's arena
  // Whether this rank is the first of those that hold the same part.
  bool isFirst = true;

  /// Bytes of the part's place in the arena, padding included.
  int64_t bytes(const StateTensor &tensor) const;
};

/// The pieces of the rank with these coordinates, in the order of `tensors`.
std::vector<StatePiece> statePieces(const Program &program,
                                    const std::vector<StateTensor> &tensors,
                                    const std::vector<int64_t> &coordinates);

/// The copy of a rank's own pieces in host memory, which a checkpoint is
/// written from: those for which it is the first, one after the other, without
/// those that have no element of their tensor.
struct StateCopy {
  std::vector<StatePiece> pieces;
  std::vector<int64_t> places; // offsets of the pieces in the copy
  int64_t bytes = 0;
};
StateCopy stateCopy(const Program &program,
                    const std::vector<StateTensor> &tensors,
                    const std::vector<int64_t> &coordinates);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_STATE_H
