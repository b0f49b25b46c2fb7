// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/state/Initialize.h"
#include "runtime/program/Convert.h"
#include "runtime/program/Part.h"
#include "runtime/program/State.h"
#include "runtime/program/TensorNames.h"
#include "runtime/random/Philox.h"
#include "runtime/train/step/Publish.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <optional>

namespace rota {

static void draw(const Initializer &init, const RandomStream &stream,
                 int64_t begin, int64_t end, float *out) {
  switch (init.kind) {
  case Initializer::Kind::Normal:
    return stream.normal(begin, end, init.mean, init.scale, out);
  case Initializer::Kind::Uniform:
    return stream.uniform(begin, end, init.mean, init.scale, out);
  case Initializer::Kind::Constant:
    std::fill(out, out + (end - begin), static_cast<float>(init.mean));
  }
}

/// Writes elements [begin, end) of `part` to `out`, of `type`, from `values`,
/// which writes so many elements of the whole tensor from one on.
static void fillPart(const Part &part, int64_t begin, int64_t end,
                     ElementType type, char *out,
                     FunctionRef<void(int64_t, int64_t, float *)> values) {
  if (type != ElementType::BF16)
    return forEachRun(
        part, begin, end, [&](int64_t whole, int64_t inPart, int64_t count) {
          values(whole, count,
                 reinterpret_cast<float *>(out) + (inPart - begin));
        });
  constexpr int64_t kRounded = 4096; // elements that are rounded together
  std::array<float, kRounded> wide;
  auto *narrow = reinterpret_cast<uint16_t *>(out);
  for (int64_t from = begin; from < end; from += kRounded)
    forEachRun(part, from, std::min(from + kRounded, end),
               [&](int64_t whole, int64_t inPart, int64_t count) {
                 values(whole, count, wide.data());
                 std::transform(wide.data(), wide.data() + count,
                                narrow + (inPart - begin), toBf16);
               });
}

static void fillParameter(Rank &rank, const Update &update, uint64_t seed,
                          const Weights *weights) {
  const Parameter &parameter = rank.program().parameters[update.parameter];
  RandomStream stream(seed, fileName(parameter), update.layer + 1);
  std::optional<StoredParameter> stored;
  if (weights)
    stored = weights->find(parameter, update.layer);
  Part part = optimizerPart(parameter, rank.program().mesh, rank.coordinates());
  auto values = [&](int64_t whole, int64_t count, float *out) {
    if (stored)
      stored->readFloats(whole, whole + count, out);
    else
      draw(parameter.init, stream, whole, whole + count, out);
  };
  ElementType type = masterType(parameter);
  HostOperand master[] = {
      {rank.at(update.master), byteSize(type), HostOperand::Access::Write}};
  rank.device().hostLoop(rank.context(), part.elements(), master,
                         [&](int64_t begin, int64_t end, char *const *hosts) {
                           fillPart(part, begin, end, type, hosts[0], values);
                         });
}

/// Zeroes are there already: the arena is new.
static void fillStates(Rank &rank, const Update &update) {
  const Parameter &parameter = rank.program().parameters[update.parameter];
  int64_t count = partElements(parameter.shape, parameter.optimizerDivision,
                               rank.program().mesh);
  for (const State &state : parameter.states) {
    if (state.initial == 0.0)
      continue;
    auto value = static_cast<float>(state.initial);
    HostOperand values[] = {{rank.at(update.states + state.offset),
                             byteSize(state.type), HostOperand::Access::Write}};
    rank.device().hostLoop(rank.context(), count, values,
                           [&](int64_t begin, int64_t end, char *const *hosts) {
                             if (state.type == ElementType::BF16)
                               std::fill_n(
                                   reinterpret_cast<uint16_t *>(hosts[0]),
                                   end - begin, toBf16(value));
                             else
                               std::fill_n(reinterpret_cast<float *>(hosts[0]),
                                           end - begin, value);
                           });
  }
}

static void fillTable(Rank &rank, const RotaryTable &table) {
  std::vector<float> values;
  for (int64_t position = 0; position < table.positions; ++position)
    for (double frequency : table.frequencies) {
      double angle = static_cast<double>(position) * frequency;
      values.push_back(static_cast<float>(table.scale * std::cos(angle)));
      values.push_back(static_cast<float>(table.scale * std::sin(angle)));
    }
  rank.write(values, table.offset);
}

static void fillShardOffset(Rank &rank, const ShardOffset &offset) {
  const std::vector<MeshAxis> &mesh = rank.program().mesh;
  int64_t position = 0;
  for (int axis : offset.axes)
    position = position * mesh[axis].size + rank.coordinates()[axis];
  int64_t shifted = (position + offset.shift) % groupSize(mesh, offset.axes);
  rank.write<int32_t>(
      {static_cast<int32_t>(offset.start + shifted * offset.factor)},
      offset.offset);
}

void initializeStates(Rank &rank) {
  ComputeToken token(rank.cores());
  for (const Update &update : rank.stage().updates)
    fillStates(rank, update);
}

std::string describeWeights(uint64_t seed, const Weights *weights) {
  return weights ? weights->describe() : fmt::format("random, seed {}", seed);
}

void initializeMasters(Rank &rank, uint64_t seed, const Weights *weights) {
  rank.setPosition("initialization");
  ComputeToken token(rank.cores());
  for (const Update &update : rank.stage().updates)
    fillParameter(rank, update, seed, weights);
}

void completeInitialization(Rank &rank) {
  rank.setPosition("initialization");
  Publisher publisher(rank);
  {
    ComputeToken token(rank.cores());
    for (const RotaryTable &table : rank.stage().tables)
      fillTable(rank, table);
    for (const ShardOffset &offset : rank.stage().shardOffsets)
      fillShardOffset(rank, offset);
    for (const ConstantTensor &tensor : rank.program().constantTensors)
      rank.device().write(tensor.bytes.data(),
                          rank.at(rank.stage().step.constants + tensor.offset),
                          static_cast<int64_t>(tensor.bytes.size()));
    for (const Update &update : rank.stage().updates)
      publisher.start(update, /*isRounded=*/false);
  }
  publisher.finish();
}

void initialize(Rank &rank, uint64_t seed, const Weights *weights) {
  initializeStates(rank);
  initializeMasters(rank, seed, weights);
  completeInitialization(rank);
}

} // namespace rota
