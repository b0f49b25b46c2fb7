// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Batches.h"
#include "runtime/Error.h"
#include "runtime/program/Convert.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace rota {

/// Writes f32 values in the form's element type.
static void store(const std::vector<float> &values, ElementType type,
                  char *out) {
  if (type == ElementType::BF16)
    std::transform(values.begin(), values.end(),
                   reinterpret_cast<uint16_t *>(out), toBf16);
  else
    std::memcpy(out, values.data(), values.size() * sizeof(float));
}

void NormalBatches::fill(Split split, int64_t first, const Destination &input,
                         const Destination &target) const {
  std::string half = split == Split::Train ? "train" : "validation";
  auto one = [&](const char *name, const DataForm &form,
                 const Destination &out) {
    if (!out.place)
      return;
    RandomStream stream(seed, "data." + half + "." + name, /*stream=*/0);
    int64_t begin = first * form.elements() / form.shape[0];
    std::vector<float> values;
    forEachRun(out.part, 0, out.part.elements(),
               [&](int64_t whole, int64_t inPart, int64_t count) {
                 values.resize(static_cast<size_t>(count));
                 stream.normal(begin + whole, begin + whole + count, 0.0, 1.0,
                               values.data());
                 store(values, form.type,
                       out.place + inPart * byteSize(form.type));
               });
  };
  one("input", program.input, input);
  one("target", program.target, target);
}

std::string NormalBatches::describe() const {
  return "standard normal inputs and targets";
}

FixedBatch::FixedBatch(const Program &program, const SafetensorsFile &file)
    : program(program) {
  if (program.vocabulary > 0) {
    readTokens(program, file);
    return;
  }
  if (file.tensors().contains("mask"))
    throw InputError(fmt::format("'{}': expected 'mask' beside 'tokens', got "
                                 "it for a model whose inputs are not tokens",
                                 file.path()));
  int64_t microbatches = program.stepMicrobatches();
  inputs = readTensor(file, "inputs", program.input, microbatches);
  targets = readTensor(file, "targets", program.target, microbatches);
}

static const TensorView &require(const SafetensorsFile &file,
                                 const char *name) {
  auto found = file.tensors().find(name);
  if (found == file.tensors().end())
    throw InputError(fmt::format("'{}': no tensor '{}'", file.path(), name));
  return found->second;
}

static void requireShape(const SafetensorsFile &file, const char *name,
                         const TensorView &view,
                         const std::vector<int64_t> &shape) {
  if (view.shape != shape)
    throw InputError(fmt::format("'{}': tensor '{}': expected shape {}, got {}",
                                 file.path(), name, shapeText(shape),
                                 shapeText(view.shape)));
}

/// The elements of tensor `name`, which has that shape.
static std::vector<int64_t> readIntegers(const SafetensorsFile &file,
                                         const char *name,
                                         const std::vector<int64_t> &shape) {
  const TensorView &view = require(file, name);
  requireShape(file, name, view, shape);
  if (view.type != "I32" && view.type != "I64")
    throw InputError(fmt::format("'{}': tensor '{}': expected I32 or I64, "
                                 "got {}",
                                 file.path(), name, view.type));
  std::vector<int64_t> values(static_cast<size_t>(view.elements()));
  if (view.type == "I64") {
    std::memcpy(values.data(), view.data, 8 * values.size());
    return values;
  }
  std::vector<int32_t> narrow(values.size());
  std::memcpy(narrow.data(), view.data, 4 * narrow.size());
  std::copy(narrow.begin(), narrow.end(), values.begin());
  return values;
}

void FixedBatch::readTokens(const Program &program,
                            const SafetensorsFile &file) {
  int64_t batch = program.stepSequences();
  int64_t length = program.input.shape[1];
  std::vector<int64_t> tokens =
      readIntegers(file, "tokens", {batch, length + 1});
  std::vector<int64_t> mask(static_cast<size_t>(batch * length), 1);
  if (file.tensors().contains("mask"))
    mask = readIntegers(file, "mask", {batch, length});
  inputs.resize(static_cast<size_t>(batch * length * 4));
  targets.resize(inputs.size());
  auto *input = reinterpret_cast<int32_t *>(inputs.data());
  auto *target = reinterpret_cast<int32_t *>(targets.data());
  TokenBounds bounds{program.vocabulary, program.classes};
  for (int64_t i = 0; i < batch * (length + 1); ++i) {
    int64_t token = tokens[i];
    int64_t row = i / (length + 1), column = i % (length + 1);
    bool isInput = column < length, isTarget = column > 0;
    if (std::string bound = bounds.violation(token, isInput, isTarget);
        !bound.empty())
      throw InputError(fmt::format("'{}': tensor 'tokens': position [{}, {}]: "
                                   "expected a token below {}, got {}",
                                   file.path(), row, column, bound, token));
    if (isInput)
      input[row * length + column] = static_cast<int32_t>(token);
    if (int64_t at = row * length + column - 1; isTarget)
      target[at] = mask[at] != 0 ? static_cast<int32_t>(token) : -1;
  }
}

std::vector<char> FixedBatch::readTensor(const SafetensorsFile &file,
                                         const char *name, const DataForm &form,
                                         int64_t microbatches) {
  const TensorView &view = require(file, name);
  std::vector<int64_t> shape = form.shape;
  shape[0] *= microbatches;
  requireShape(file, name, view, shape);
  if (!isFloat(view))
    throw InputError(fmt::format("'{}': tensor '{}': expected F32, got {}",
                                 file.path(), name, view.type));
  std::vector<float> values(static_cast<size_t>(view.elements()));
  readFloats(view, 0, view.elements(), values.data());
  std::vector<char> bytes(static_cast<size_t>(form.bytes() * microbatches));
  store(values, form.type, bytes.data());
  return bytes;
}

void FixedBatch::fill(Split, int64_t first, const Destination &input,
                      const Destination &target) const {
  int64_t microbatch = first % program.stepSequences() / program.input.shape[0];
  auto one = [&](const DataForm &form, const std::vector<char> &all,
                 const Destination &out) {
    if (!out.place)
      return;
    int64_t size = byteSize(form.type);
    const char *source = all.data() + microbatch * form.bytes();
    forEachRun(out.part, 0, out.part.elements(),
               [&](int64_t whole, int64_t inPart, int64_t count) {
                 std::memcpy(out.place + inPart * size, source + whole * size,
                             static_cast<size_t>(count * size));
               });
  };
  one(program.input, inputs, input);
  one(program.target, targets, target);
}

} // namespace rota
