// SPDX-License-Identifier: Apache-2.0
#include "runtime/program/State.h"
#include "runtime/program/TensorNames.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

namespace rota {

int64_t StateTensor::bytes() const {
  return std::accumulate(shape.begin(), shape.end(), byteSize(type),
                         std::multiplies<int64_t>());
}

int64_t StatePiece::bytes(const StateTensor &tensor) const {
  return part.elements() * byteSize(tensor.type);
}

static StateTensor tensorOf(const Program &program, int stage, int number,
                            int state) {
  const Update &update = program.stages[stage].updates[number];
  const Parameter &parameter = program.parameters[update.parameter];
  StateTensor tensor;
  tensor.name = tensorName(parameter, update.layer);
  tensor.shape = parameter.shape;
  tensor.parameter = update.parameter;
  tensor.layer = update.layer;
  tensor.state = state;
  tensor.stage = stage;
  tensor.update = number;
  if (state >= 0) {
    tensor.name += "/" + parameter.states[state].name;
    tensor.type = parameter.states[state].type;
  }
  return tensor;
}

std::vector<StateTensor> stateTensors(const Program &program) {
  std::vector<StateTensor> tensors;
  for (size_t s = 0; s < program.stages.size(); ++s)
    for (size_t u = 0; u < program.stages[s].updates.size(); ++u) {
      int parameter = program.stages[s].updates[u].parameter;
      auto states =
          static_cast<int>(program.parameters[parameter].states.size());
      for (int state = -1; state < states; ++state)
        tensors.push_back(
            tensorOf(program, static_cast<int>(s), static_cast<int>(u), state));
    }
  auto key = [](const StateTensor &t) {
    return std::tie(t.parameter, t.layer, t.state);
  };
  std::sort(tensors.begin(), tensors.end(),
            [&](const auto &a, const auto &b) { return key(a) < key(b); });
  return tensors;
}

std::vector<StatePiece> statePieces(const Program &program,
                                    const std::vector<StateTensor> &tensors,
                                    const std::vector<int64_t> &coordinates) {
  std::vector<StatePiece> pieces;
  int64_t stage = coordinates[stageAxis(program.mesh)];
  for (size_t t = 0; t < tensors.size(); ++t) {
    const StateTensor &tensor = tensors[t];
    if (tensor.stage != stage)
      continue;
    const Update &update = program.stages[stage].updates[tensor.update];
    const Parameter &parameter = program.parameters[tensor.parameter];
    StatePiece piece;
    piece.tensor = static_cast<int>(t);
    piece.part = optimizerPart(parameter, program.mesh, coordinates);
    piece.offset = tensor.state < 0
                       ? update.master
                       : update.states + parameter.states[tensor.state].offset;
    piece.isFirst =
        isFirstReplica(parameter.optimizerDivision, program.mesh, coordinates);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

StateCopy stateCopy(const Program &program,
                    const std::vector<StateTensor> &tensors,
                    const std::vector<int64_t> &coordinates) {
  constexpr int64_t kAlignment = 64; // alignment of a piece
  StateCopy copy;
  for (StatePiece &piece : statePieces(program, tensors, coordinates)) {
    if (!piece.isFirst || piece.part.validElements() == 0)
      continue;
    int64_t bytes = piece.bytes(tensors[piece.tensor]);
    copy.places.push_back(copy.bytes);
    copy.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    copy.pieces.push_back(std::move(piece));
  }
  return copy;
}

} // namespace rota
