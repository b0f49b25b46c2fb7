// SPDX-License-Identifier: Apache-2.0
#include "runtime/program/State.h"
#include "runtime/program/TensorNames.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

namespace rota {

int64_t StateTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

int64_t StateTensor::bytes() const { return elements() * byteSize(type); }

int64_t StatePiece::bytes(const StateTensor &tensor) const {
  return part.elements() * byteSize(tensor.type);
}

ElementType masterType(const Parameter &parameter) {
  return parameter.isFrozen ? parameter.compute : ElementType::F32;
}

static StateTensor tensorOf(const Program &program, int stage, int number,
                            int state) {
  const Update &update = program.stages[stage].updates[number];
  const Parameter &parameter = program.parameters[update.parameter];
  StateTensor tensor;
  tensor.name = tensorName(parameter, update.layer);
  tensor.shape = fileShape(parameter);
  tensor.layer = update.layer;
  tensor.state = state;
  tensor.type = masterType(parameter);
  tensor.sources = {{update.parameter, stage, number}};
  if (state >= 0) {
    tensor.name += "/" + parameter.states[state].name;
    tensor.type = parameter.states[state].type;
  }
  return tensor;
}

/// The tensors with joined ones merged, each in the place of its first.
static std::vector<StateTensor>
mergeJoined(const std::vector<StateTensor> &tensors) {
  std::vector<StateTensor> merged;
  std::map<std::string, size_t> numbers;
  for (const StateTensor &tensor : tensors) {
    auto [place, isNew] = numbers.emplace(tensor.name, merged.size());
    if (isNew)
      merged.push_back(tensor);
    else
      merged[place->second].sources.push_back(tensor.sources.front());
  }
  return merged;
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
    return std::tie(t.sources.front().parameter, t.layer, t.state);
  };
  std::sort(tensors.begin(), tensors.end(),
            [&](const auto &a, const auto &b) { return key(a) < key(b); });
  return mergeJoined(tensors);
}

std::vector<StateTensor> masterTensors(const Program &program) {
  std::vector<StateTensor> tensors = stateTensors(program);
  std::erase_if(tensors, [](const StateTensor &t) { return t.state >= 0; });
  std::sort(tensors.begin(), tensors.end(),
            [](const auto &a, const auto &b) { return a.name < b.name; });
  return tensors;
}

/// The piece of this parameter in `tensor` of a rank that has one.
static StatePiece pieceOf(const Program &program, const StateTensor &tensor,
                          const StateSource &source,
                          const std::vector<int64_t> &coordinates) {
  const Update &update = program.stages[source.stage].updates[source.update];
  const Parameter &parameter = program.parameters[source.parameter];
  StatePiece piece;
  piece.part = optimizerPart(parameter, program.mesh, coordinates);
  piece.offset = tensor.state < 0
                     ? update.master
                     : update.states + parameter.states[tensor.state].offset;
  piece.isFirst =
      isFirstReplica(parameter.optimizerDivision, program.mesh, coordinates);
  return piece;
}

std::vector<StatePiece> statePieces(const Program &program,
                                    const std::vector<StateTensor> &tensors,
                                    const std::vector<int64_t> &coordinates) {
  std::vector<StatePiece> pieces;
  int64_t stage = coordinates[stageAxis(program.mesh)];
  for (size_t t = 0; t < tensors.size(); ++t)
    for (const StateSource &source : tensors[t].sources)
      if (source.stage == stage) {
        pieces.push_back(pieceOf(program, tensors[t], source, coordinates));
        pieces.back().tensor = static_cast<int>(t);
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
