// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/state/Tensors.h"
#include "runtime/program/Convert.h"
#include "runtime/program/TensorNames.h"
#include "runtime/program/UpdatePlaces.h"
#include "runtime/train/step/Gather.h"

#include <algorithm>
#include <cstring>

namespace rota {

/// Brings the part that rank `owner` has at `offset` of its arena to rank 0,
/// which calls `take` with it.
template <typename Take>
static void bringToRankZero(Rank &rank, int owner, int64_t offset,
                            int64_t bytes, Take take) {
  if (rank.number() != 0 && rank.number() != owner)
    return;
  std::vector<char> buffer(static_cast<size_t>(bytes));
  if (owner == rank.number())
    rank.device().read(rank.at(offset), buffer.data(), bytes);
  if (rank.number() != 0)
    sendBytes(rank, 0, buffer.data(), bytes);
  else if (owner != 0)
    receiveBytes(rank, owner, buffer.data(), bytes);
  if (rank.number() == 0)
    take(buffer.data());
}

/// Writes the part's elements, of `type`, to their places in `whole`.
static void scatter(const Part &part, ElementType type, const char *source,
                    float *whole) {
  forEachRun(part, 0, part.elements(),
             [&](int64_t at, int64_t inPart, int64_t count) {
               if (type != ElementType::BF16) {
                 std::memcpy(whole + at, source + 4 * inPart,
                             static_cast<size_t>(count) * 4);
                 return;
               }
               auto *narrow = reinterpret_cast<const uint16_t *>(source);
               std::transform(narrow + inPart, narrow + inPart + count,
                              whole + at, fromBf16);
             });
}

/// Brings one parameter of a tensor, whose parts of `type` lie at `placeOf` its
/// update and the coordinates of each rank, to its place in `whole`.
template <typename PlaceOf>
static void gatherSource(Rank &rank, const StateSource &source,
                         ElementType type, PlaceOf placeOf, float *whole) {
  const Program &program = rank.program();
  const Update &update = program.stages[source.stage].updates[source.update];
  const Parameter &parameter = program.parameters[source.parameter];
  for (int owner : rank.everyone().ranks) {
    std::vector<int64_t> at = coordinatesOf(program.mesh, owner);
    if (at[stageAxis(program.mesh)] != source.stage ||
        !isFirstReplica(parameter.optimizerDivision, program.mesh, at))
      continue;
    Part part = optimizerPart(parameter, program.mesh, at);
    bringToRankZero(
        rank, owner, placeOf(update, at), byteSize(type) * part.elements(),
        [&](const char *data) { scatter(part, type, data, whole); });
  }
}

template <typename PlaceOf>
static std::vector<float> gatherTensor(Rank &rank, const StateTensor &tensor,
                                       ElementType type, PlaceOf placeOf) {
  std::vector<float> whole;
  if (rank.number() == 0)
    whole.resize(static_cast<size_t>(tensor.elements()));
  for (const StateSource &source : tensor.sources)
    gatherSource(rank, source, type, placeOf, whole.data());
  return whole;
}

std::vector<float> gatherMaster(Rank &rank, const StateTensor &tensor) {
  return gatherTensor(rank, tensor, tensor.type,
                      [](const Update &update, const std::vector<int64_t> &) {
                        return update.master;
                      });
}

std::vector<float> gatherGradient(Rank &rank, const StateTensor &tensor) {
  const Program &program = rank.program();
  const StateSource &first = tensor.sources.front();
  return gatherTensor(
      rank, tensor, program.parameters[first.parameter].gradient,
      [&](const Update &update, const std::vector<int64_t> &coordinates) {
        return gradientPlace(program, update, coordinates);
      });
}

static StoredTensors storedTensors(const Program &program,
                                   const StateTensor &tensor) {
  return storedTensors(program.parameters[tensor.sources.front().parameter],
                       tensor.layer);
}

void addForms(const Program &program, const StateTensor &tensor,
              const std::string &prefix,
              std::map<std::string, TensorForm> &forms) {
  StoredTensors stored = storedTensors(program, tensor);
  for (const std::string &name : stored.names)
    forms[prefix + name] = {"F32", stored.shape};
}

void writeTensor(const Program &program, SafetensorsWriter &writer,
                 const StateTensor &tensor, const std::string &prefix,
                 const std::vector<float> &whole) {
  StoredTensors stored = storedTensors(program, tensor);
  size_t size = whole.size() / stored.names.size();
  for (size_t i = 0; i < stored.names.size(); ++i)
    writer.write(prefix + stored.names[i], whole.data() + i * size);
}

/// The stage that computes the logits of a microbatch: that of its last chunk.
static int logitsStage(const Program &program, int64_t microbatch) {
  int found = 0, last = -1;
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const Stage &stage = program.stages[s];
    for (const PlannedAction &action : stage.actions) {
      const ActionTemplate &actionTemplate =
          stage.templates[action.templateNumber];
      if (stage.logits >= 0 && actionTemplate.kind == ActionKind::Forward &&
          action.microbatch == microbatch && actionTemplate.chunk > last) {
        last = actionTemplate.chunk;
        found = static_cast<int>(s);
      }
    }
  }
  return found;
}

void saveWeights(Rank &rank, const std::string &path) {
  rank.setPosition("saving the weights");
  const Program &program = rank.program();
  std::vector<StateTensor> tensors = masterTensors(program);
  std::map<std::string, TensorForm> forms;
  for (const StateTensor &tensor : tensors)
    addForms(program, tensor, "", forms);
  std::optional<SafetensorsWriter> writer;
  if (rank.number() == 0)
    writer.emplace(path, forms);
  for (const StateTensor &tensor : tensors) {
    std::vector<float> whole = gatherMaster(rank, tensor);
    if (writer)
      writeTensor(program, *writer, tensor, "", whole);
  }
  if (writer)
    writer->commit();
}

std::vector<float> gatherLogits(Rank &rank) {
  const Program &program = rank.program();
  const DataForm &form = program.logits;
  std::vector<float> all;
  if (rank.number() == 0)
    all.resize(static_cast<size_t>(program.microbatches * form.elements()));
  for (int64_t m = 0; m < program.microbatches; ++m)
    for (int owner : rank.everyone().ranks) {
      std::vector<int64_t> at = coordinatesOf(program.mesh, owner);
      int stage = static_cast<int>(at[stageAxis(program.mesh)]);
      if (stage != logitsStage(program, m) ||
          !isFirstReplica(form.division, program.mesh, at))
        continue;
      Part part = partOf(form.shape, form.division, program.mesh, at);
      int64_t bytes = part.elements() * byteSize(form.type);
      bringToRankZero(rank, owner, rank.stage().logits + m * bytes, bytes,
                      [&](const char *data) {
                        scatter(part, form.type, data,
                                all.data() + m * form.elements());
                      });
    }
  return all;
}

namespace {

/// The place of a position of the first sequence in the logits of the ranks
/// that have it. Each call of the loss has an equal part of a rank's rows,
/// those of all sequences one after the other.
struct SampledRow {
  int64_t block = 0; // call of the loss
  int64_t row = 0;   // in the block
};

} // namespace

/// The division of sequences and positions.
static Division rowDivision(const Program &program) {
  Division rows = program.logits.division;
  rows.resize(2);
  return rows;
}

static SampledRow sampledRow(const Program &program, int64_t position) {
  std::vector<int64_t> rows =
      partShape(program.target.shape, rowDivision(program), program.mesh);
  int64_t ofBlock = rows[0] * rows[1] / program.lossCalls;
  int64_t row = position % rows[1];
  return {row / ofBlock, row % ofBlock};
}

int64_t sampledBlock(const Program &program, int64_t position) {
  return sampledRow(program, position).block;
}

std::vector<float> gatherSample(Rank &rank, int64_t position) {
  const Program &program = rank.program();
  const DataForm &form = program.logits;
  std::vector<float> all;
  if (rank.number() == 0)
    all.resize(static_cast<size_t>(form.shape.back()));
  for (int owner : rank.everyone().ranks) {
    std::vector<int64_t> at = coordinatesOf(program.mesh, owner);
    Part rows =
        partOf(program.target.shape, rowDivision(program), program.mesh, at);
    bool hasPosition = rows.begin[0] == 0 && rows.begin[1] <= position &&
                       position < rows.begin[1] + rows.size[1];
    int stage = static_cast<int>(at[stageAxis(program.mesh)]);
    if (!hasPosition || stage != logitsStage(program, /*microbatch=*/0) ||
        !isFirstReplica(form.division, program.mesh, at))
      continue;
    Part part = partOf(form.shape, form.division, program.mesh, at);
    Part line{
        {part.whole[2]}, {part.begin[2]}, {part.size[2]}, {part.valid[2]}};
    int64_t bytes = line.size[0] * byteSize(form.type);
    int64_t row = sampledRow(program, position).row;
    bringToRankZero(
        rank, owner, rank.stage().logits + row * bytes, bytes,
        [&](const char *data) { scatter(line, form.type, data, all.data()); });
  }
  return all;
}

} // namespace rota
