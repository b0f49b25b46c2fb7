// SPDX-License-Identifier: Apache-2.0
//
// FP8 in blocks is that of DeepSeek-V3, MXFP4 that of gpt-oss (OCP
// Microscaling Formats 1.0). A product of value and scale is rounded once, to
// f32; those of MXFP4 are exact.
#include "runtime/checkpoint/StoredTensor.h"
#include "runtime/program/Convert.h"
#include "runtime/program/WeightFiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <set>

namespace rota {

/// Values of MXFP4 that share a scale, and the bytes that hold them.
static constexpr int64_t kGroup = 32, kGroupBytes = kGroup / 2;

int64_t StoredTensor::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

bool StoredTensor::isFloat() const {
  return form != Plain || rota::isFloat(values);
}

std::string StoredTensor::type() const {
  return form == Mxfp4 ? "MXFP4" : values.type;
}

static float scaleOf(const StoredTensor &tensor, int64_t block) {
  float scale;
  readFloats(tensor.scales, block, block + 1, &scale);
  return scale;
}

static void readBlockScaled(const StoredTensor &t, int64_t begin, int64_t end,
                            float *out) {
  static const auto table = [] {
    std::array<float, 256> values;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = fromE4m3(static_cast<uint8_t>(i));
    return values;
  }();
  int64_t columns = t.shape.back(), rows = t.shape[t.shape.size() - 2];
  int64_t gridColumns = t.scales.shape.back();
  int64_t gridRows = t.scales.shape[t.scales.shape.size() - 2];
  while (begin < end) {
    int64_t row = begin / columns, column = begin % columns;
    int64_t block = column / t.blockColumns;
    int64_t last =
        std::min({columns, (block + 1) * t.blockColumns, column + end - begin});
    int64_t gridRow = row / rows * gridRows + row % rows / t.blockRows;
    float scale = scaleOf(t, gridRow * gridColumns + block);
    const char *bytes = t.values.data + begin;
    for (int64_t i = 0; i < last - column; ++i)
      *out++ = table[static_cast<uint8_t>(bytes[i])] * scale;
    begin += last - column;
  }
}

/// The rows [first, last) of a group in every column of a matrix, as far as
/// they are among the elements [begin, end), which begin at `out`.
static void readGroup(const StoredTensor &t, int64_t matrix, int64_t first,
                      int64_t last, int64_t begin, int64_t end, float *out) {
  static constexpr float table[] = {0.f,  .5f,  1.f,  1.5f, 2.f,  3.f,
                                    4.f,  6.f,  -0.f, -.5f, -1.f, -1.5f,
                                    -2.f, -3.f, -4.f, -6.f};
  int64_t rows = t.shape[1], columns = t.shape[2];
  int64_t groups = rows / kGroup, group = first / kGroup;
  for (int64_t column = 0; column < columns; ++column) {
    int64_t place = (matrix * columns + column) * groups + group;
    const char *bytes = t.values.data + place * kGroupBytes;
    float scale = std::ldexp(
        1.f,
        static_cast<int>(static_cast<uint8_t>(t.scales.data[place])) - 127);
    for (int64_t row = first; row < last; ++row) {
      int64_t element = (matrix * rows + row) * columns + column;
      if (element < begin || element >= end)
        continue;
      int64_t in = row % kGroup;
      int pair = static_cast<uint8_t>(bytes[in / 2]);
      out[element - begin] = table[in % 2 ? pair >> 4 : pair & 15] * scale;
    }
  }
}

static void readMxfp4(const StoredTensor &t, int64_t begin, int64_t end,
                      float *out) {
  int64_t rows = t.shape[1], columns = t.shape[2];
  if (begin >= end)
    return;
  int64_t row = begin / columns, stop = (end - 1) / columns + 1; // of all rows
  while (row < stop) {
    int64_t matrix = row / rows, first = row % rows;
    int64_t last =
        std::min({(first / kGroup + 1) * kGroup, rows, first + stop - row});
    readGroup(t, matrix, first, last, begin, end, out);
    row += last - first;
  }
}

void readFloats(const StoredTensor &tensor, int64_t begin, int64_t end,
                float *out) {
  switch (tensor.form) {
  case StoredTensor::Plain:
    return readFloats(tensor.values, begin, end, out);
  case StoredTensor::BlockScaled:
    return readBlockScaled(tensor, begin, end, out);
  case StoredTensor::Mxfp4:
    return readMxfp4(tensor, begin, end, out);
  }
}

/// Elements of `size` that each of `blocks` has; the last may have fewer. 0
/// where the two do not agree. Blocks have 128 where that gives their number;
/// else, as transformers has it, equal parts.
static int64_t blockSize(int64_t size, int64_t blocks) {
  if (blocks < 1)
    return 0;
  if (size > 0 && (size - 1) / kQuantizedBlock + 1 == blocks)
    return kQuantizedBlock;
  return size % blocks == 0 ? size / blocks : 0;
}

/// Why the values and scales do not make a tensor; empty: they do.
static std::string formBlocks(StoredTensor &tensor) {
  tensor.form = StoredTensor::BlockScaled;
  tensor.shape = tensor.values.shape;
  const std::vector<int64_t> &shape = tensor.shape, &grid = tensor.scales.shape;
  if (!isFloat(tensor.scales))
    return fmt::format("expected scales in F32, F16 or BF16, got {}",
                       tensor.scales.type);
  size_t rank = shape.size();
  if (rank >= 2 && grid.size() == rank &&
      std::equal(shape.begin(), shape.end() - 2, grid.begin())) {
    tensor.blockRows = blockSize(shape[rank - 2], grid[rank - 2]);
    tensor.blockColumns = blockSize(shape[rank - 1], grid[rank - 1]);
  }
  if (tensor.blockRows > 0 && tensor.blockColumns > 0)
    return "";
  return fmt::format("expected scales of blocks of {} x {}, got those of "
                     "shape {} for {}",
                     kQuantizedBlock, kQuantizedBlock, shapeText(grid),
                     shapeText(shape));
}

static std::string formMxfp4(StoredTensor &tensor) {
  tensor.form = StoredTensor::Mxfp4;
  const std::vector<int64_t> &blocks = tensor.values.shape;
  if (blocks.size() != 4 || blocks[3] != kGroupBytes ||
      std::ranges::find(blocks, 0) != blocks.end() ||
      !std::equal(blocks.begin(), blocks.end() - 1, tensor.scales.shape.begin(),
                  tensor.scales.shape.end()))
    return fmt::format("expected blocks of shape [matrices, columns, groups, "
                       "{}] and a scale for each group, got {} and {}",
                       kGroupBytes, shapeText(blocks),
                       shapeText(tensor.scales.shape));
  tensor.shape = {blocks[0], kGroup * blocks[2], blocks[1]};
  return "";
}

namespace {
/// The names of a quantized tensor's scales and of the weights that they make.
struct QuantizedNames {
  std::string scales, weights;
  std::string (*form)(StoredTensor &);
};
} // namespace

/// None where the tensor has no scales beside it.
static std::optional<QuantizedNames>
quantizedNames(const std::string &name, const TensorView &view,
               const std::map<std::string, TensorView> &views) {
  const std::string blocks = "_blocks";
  if (view.type == "F8_E4M3" && views.contains(name + "_scale_inv"))
    return QuantizedNames{name + "_scale_inv", name, formBlocks};
  if (view.type != "U8" || !name.ends_with(blocks))
    return std::nullopt;
  std::string weights = name.substr(0, name.size() - blocks.size());
  auto scales = views.find(weights + "_scales");
  if (scales == views.end() || scales->second.type != "U8")
    return std::nullopt;
  return QuantizedNames{scales->first, weights, formMxfp4};
}

std::map<std::string, StoredTensor> storedTensorsOf(
    const std::map<std::string, TensorView> &views,
    const std::function<void(const std::string &, const std::string &)> &fail) {
  std::map<std::string, StoredTensor> tensors;
  std::set<std::string> used;
  for (const auto &[name, view] : views) {
    auto names = quantizedNames(name, view, views);
    if (!names)
      continue;
    StoredTensor tensor{.values = view, .scales = views.at(names->scales)};
    if (std::string why = names->form(tensor); !why.empty())
      fail(name, why);
    tensors.emplace(names->weights, std::move(tensor));
    used.insert({name, names->scales});
  }
  for (const auto &[name, view] : views)
    if (!used.contains(name) &&
        !tensors
             .emplace(name, StoredTensor{.values = view, .shape = view.shape})
             .second)
      fail(name, "expected one tensor, got another in blocks and scales");
  return tensors;
}

} // namespace rota
