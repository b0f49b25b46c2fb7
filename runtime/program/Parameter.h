// SPDX-License-Identifier: Apache-2.0
//
// Parameters: where their tensors rest, and how a step updates them.
#ifndef ROTA_RUNTIME_PROGRAM_PARAMETER_H
#define ROTA_RUNTIME_PROGRAM_PARAMETER_H

#include "runtime/program/ElementType.h"
#include "runtime/program/JoinedTensor.h"
#include "runtime/program/Mesh.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

/// The first value of a parameter when no weights file has it.
struct Initializer {
  enum class Kind { Normal, Uniform, Constant } kind = Kind::Constant;
  double mean = 0.0;  // Normal: mean; Uniform: low; Constant: the value
  double scale = 0.0; // Normal: standard deviation; Uniform: high
};

/// A tensor that the optimizer keeps beside a parameter, of the shape of the
/// optimizer's part.
struct State {
  std::string name; // "first_moment"
  ElementType type = ElementType::F32;
  double initial = 0.0; // value of each element before the first step
  int64_t offset = 0;   // bytes, in the block of the parameter's states
};

/// A number that updates read: f32, computed for each step in f64, times
/// `factor`. x is the value of the option.
struct Scalar {
  enum class Kind {
    LearningRate,
    GradientScale, // factor of gradients: clipping, and 1 / weight of the loss
    Option,        // x
    Complement,    // 1 - x
    Correction,    // 1 - x^t in update t = 1, 2, ...
    Skip,          // 1 where the step updates nothing, else 0
  } kind = Kind::LearningRate;
  std::string option;  // in Program::options; empty where there is none
  double factor = 1.0; // other than 1 for LearningRate and Option alone
  bool operator==(const Scalar &) const = default;

  bool isOfOption() const {
    return kind == Kind::Option || kind == Kind::Complement ||
           kind == Kind::Correction;
  }
};

/// A number that the user may give to the trainer: `--beta1 0.9`.
struct ProgramOption {
  std::string name, help;
  double value = 0.0; // by default
  double least = 0.0, most = 0.0;
};

/// ProgramOption::most where any number will do.
inline constexpr double kUnbounded = 1e300;

/// A logical parameter. In a layer stack one entry stands for all layers. The
/// name may have placeholders: see runtime/program/TensorNames.h.
struct Parameter {
  std::string name;            // "model.layers.{layer}.self_attn.q_proj.weight"
  std::vector<int64_t> shape;  // shape of one layer's whole tensor; row-major
  std::vector<int64_t> layers; // that have it; empty: not in a stack
  JoinedTensor joined;
  Initializer init;
  bool isFrozen = false; // has no gradient, no states and no update
  ElementType compute = ElementType::F32;  // type in tasks; master: masterType
  ElementType gradient = ElementType::F32; // type of its accumulators
  // The divisions of the tensor that tasks see, of the stored one, and of
  // master copy, states and summed gradient. Each is the one before, divided
  // further along at most one dimension.
  Division computeDivision, storageDivision, optimizerDivision;
  // Numbers in Program::collectives; -1 or empty: nothing is to be done.
  int unshard = -1;    // storage -> compute, of type `compute`
  int reduceGrad = -1; // gradient, compute -> storage, added to it
  // Gradient, storage -> optimizer, one after the other: all-reduces, in place,
  // and last at most one reduce-scatter, or slice where the gradient is the
  // same along axes that the optimizer adds. In place (UpdatePlaces.h), a
  // reduce-scatter may be over the major ones of these axes alone, and nothing
  // is sliced: the rank's part is a part of what it has.
  std::vector<int> reduce;
  int refresh = -1; // optimizer -> storage, of type `compute`
  // States of each of its tensors, and the bytes of all of them together.
  std::vector<State> states;
  int64_t stateBytes = 0;
  // Tasks on the optimizer's part, with RotaFrame's `gradients` at the summed
  // gradient. The update works in place: `parameters` is the master,
  // `residuals` the states, `data` the scalars of the step, `output` the copy
  // of type `compute` where that is not f32; it zeroes the gradient. The other
  // one writes the sum of squares of each of the gradient's `rows`, f32, to
  // `output`.
  int updateTask = -1, squareTask = -1;
  int64_t rows = 0;
};

/// Elements of one layer's whole tensor.
inline int64_t elementCount(const Parameter &parameter) {
  int64_t count = 1;
  for (int64_t size : parameter.shape)
    count *= size;
  return count;
}

/// An address in the arena of the ranks of a stage.
struct ArenaAddress {
  int stage = 0;
  int64_t offset = 0;
};

/// One parameter tensor that a stage owns: its ranks initialize and update it,
/// each its part. A step's end, with the collectives of the parameter (`reduce`
/// and `refresh` but for what SUM_GRAD has done and REFRESH will do):
///   the sum of `gradients`, in order       -> gradients[0]
///   `reduce`                               -> gradient
///   update task on the optimizer's part    -> master, states, updated
///   `refresh` of updated                   -> stored
///   stored                                 -> copies
/// and all of `gradients` are zero for the next step.
struct Update {
  int parameter = 0;
  int64_t layer = -1;  // -1: not in a stack
  int64_t master = -1; // masterType (State.h), optimizer division
  // The master rounded to `compute` by the update task, in the optimizer
  // division. Equals master where that type is f32, and else stored where there
  // is no refresh, or where that is in place: updatedPlace.
  int64_t updated = -1;
  int64_t stored = -1; // type `compute`, storage division
  int64_t states = -1; // Parameter::stateBytes
  // Optimizer division; gradients[0] where no reduce-scatter or slice makes it,
  // or where that is in place: gradientPlace.
  int64_t gradient = -1;
  // Gradient accumulators (storage division) in the fixed order in which
  // they are summed; the first is on this stage and receives the sum. More than
  // one: a parameter used in several places (a tied embedding). Those of other
  // stages are on the ranks with the same other coordinates. None if frozen.
  std::vector<ArenaAddress> gradients;
  // Further stored copies, on other stages, refreshed after init and update.
  std::vector<ArenaAddress> copies;
};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_PARAMETER_H
