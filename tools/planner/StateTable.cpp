// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/StateTable.h"
#include "runtime/program/RuntimeMemory.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <nlohmann/json.hpp>

using nlohmann::ordered_json;

namespace rota {
namespace {

const char *typeText(ElementType type) {
  return type == ElementType::BF16 ? "bf16" : "f32";
}

/// Names of the mesh axes that divide each dimension of the tensor, or of the
/// first parameter that is joined in it.
std::vector<std::vector<std::string>> axesOf(const Program &program,
                                             const StateTensor &tensor) {
  std::vector<std::vector<std::string>> names(tensor.shape.size());
  const Division &division =
      program.parameters[tensor.sources.front().parameter].optimizerDivision;
  for (size_t d = 0; d < division.size(); ++d)
    for (int axis : division[d])
      names[d].push_back(program.mesh[axis].name);
  return names;
}

/// "fsdp+data,-": the first dimension is divided, the second is not.
std::string divisionText(const Program &program, const StateTensor &tensor) {
  std::vector<std::string> dimensions;
  for (const std::vector<std::string> &axes : axesOf(program, tensor))
    dimensions.push_back(
        axes.empty() ? "-" : fmt::format("{}", fmt::join(axes, "+")));
  return fmt::format("{}", fmt::join(dimensions, ","));
}

/// Bytes of a rank's parts of the tensor on the ranks of that stage.
int64_t partBytes(const Program &program, const StateTensor &tensor,
                  int64_t stage) {
  int64_t elements = 0;
  for (const StateSource &source : tensor.sources) {
    const Parameter &parameter = program.parameters[source.parameter];
    if (source.stage == stage)
      elements += partElements(parameter.shape, parameter.optimizerDivision,
                               program.mesh);
  }
  return elements * byteSize(tensor.type);
}

/// The stage that has the tensor, the first one's where joined parameters
/// outside the layers are on several.
int stageOf(const StateTensor &tensor) { return tensor.sources.front().stage; }

int64_t partBytes(const Program &program, const StateTensor &tensor) {
  return partBytes(program, tensor, stageOf(tensor));
}

/// The values of `sum` for the coordinates of each rank.
std::vector<int64_t>
forEachRank(const Program &program,
            const std::function<int64_t(const std::vector<int64_t> &)> &sum) {
  std::vector<int64_t> ranks;
  int64_t count = 1;
  for (const MeshAxis &axis : program.mesh)
    count *= axis.size;
  for (int rank = 0; rank < count; ++rank)
    ranks.push_back(sum(coordinatesOf(program.mesh, rank)));
  return ranks;
}

/// Bytes of each rank's parts of the state.
std::vector<int64_t> stateBytes(const Program &program,
                                const std::vector<StateTensor> &tensors) {
  return forEachRank(program, [&](const std::vector<int64_t> &at) {
    int64_t bytes = 0;
    for (const StateTensor &tensor : tensors)
      bytes += partBytes(program, tensor, at[stageAxis(program.mesh)]);
    return bytes;
  });
}

/// "ranks 0-3" for neighbours with equal bytes.
std::string describeRanks(const std::vector<int64_t> &bytes) {
  std::string text;
  for (size_t first = 0, end; first < bytes.size(); first = end) {
    end = first + 1;
    while (end < bytes.size() && bytes[end] == bytes[first])
      ++end;
    std::string ranks = end == first + 1
                            ? fmt::format("rank {}", first)
                            : fmt::format("ranks {}-{}", first, end - 1);
    text += fmt::format("{:>21}{:>21}\n", ranks, grouped(bytes[first]));
  }
  return text;
}

} // namespace

std::string describeState(const Program &program) {
  std::vector<StateTensor> tensors = stateTensors(program);
  std::vector<std::vector<std::string>> rows = {{"tensor", "type", "shape",
                                                 "stage", "divided over",
                                                 "bytes", "of a rank"}};
  int64_t sum = 0;
  for (const StateTensor &tensor : tensors) {
    rows.push_back({tensor.name, typeText(tensor.type),
                    fmt::format("[{}]", fmt::join(tensor.shape, ", ")),
                    std::to_string(stageOf(tensor)),
                    divisionText(program, tensor), grouped(tensor.bytes()),
                    grouped(partBytes(program, tensor))});
    sum += tensor.bytes();
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  constexpr size_t kFirstNumber = 5; // columns from here on end at the right
  std::string text;
  for (const auto &row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      text += i < kFirstNumber ? fmt::format("{:<{}}  ", row[i], widths[i])
                               : fmt::format("{:>{}}  ", row[i], widths[i]);
    text.resize(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text +
         fmt::format("\n{} tensors, {} bytes\n\nstate by rank, bytes\n",
                     tensors.size(), grouped(sum)) +
         describeRanks(stateBytes(program, tensors));
}

ordered_json stateJson(const Program &program) {
  std::vector<StateTensor> tensors = stateTensors(program);
  ordered_json list = ordered_json::array();
  for (const StateTensor &tensor : tensors)
    list.push_back({{"name", tensor.name},
                    {"type", typeText(tensor.type)},
                    {"shape", tensor.shape},
                    {"stage", stageOf(tensor)},
                    {"divided_over", axesOf(program, tensor)},
                    {"bytes", tensor.bytes()},
                    {"rank_bytes", partBytes(program, tensor)}});
  return {{"tensors", list},
          {"rank_bytes", stateBytes(program, tensors)},
          {"checkpoint_copy_bytes", checkpointBytes(program)}};
}

std::vector<int64_t> checkpointBytes(const Program &program) {
  std::vector<StateTensor> tensors = stateTensors(program);
  return forEachRank(program, [&](const std::vector<int64_t> &at) {
    return stateCopy(program, tensors, at).bytes;
  });
}

std::string describeCheckpointCopy(const Program &program) {
  return "checkpoint copy by rank, bytes of host memory\n" +
         describeRanks(checkpointBytes(program));
}

std::vector<int64_t> postValidateBytes(const Program &program) {
  return forEachRank(program, [&](const std::vector<int64_t> &at) {
    return snapshotBytes(program, program.stages[at[stageAxis(program.mesh)]]);
  });
}

std::string describePostValidate(const Program &program) {
  return "snapshot of masters and states for --post-validate by rank, bytes "
         "beside the plan\n" +
         describeRanks(postValidateBytes(program));
}

} // namespace rota
