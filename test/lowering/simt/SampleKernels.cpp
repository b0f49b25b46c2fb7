// SPDX-License-Identifier: Apache-2.0
#include "test/lowering/simt/SampleKernels.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <ostream>
#include <random>

namespace rota::test {
namespace {

/// Numbers in [-2, 2], each with 8 significant bits: exact in bf16.
std::vector<float> randomNumbers(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = (static_cast<int>(generator() % 257) - 128) / 64.0f;
  return numbers;
}

std::vector<char> asF32(const std::vector<float> &numbers) {
  std::vector<char> bytes(4 * numbers.size());
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<char> asBf16(const std::vector<float> &numbers) {
  std::vector<char> bytes(2 * numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint16_t half = std::bit_cast<uint32_t>(numbers[i]) >> 16;
    std::memcpy(&bytes[2 * i], &half, 2);
  }
  return bytes;
}

float f32At(const char *bytes, size_t index) {
  float number;
  std::memcpy(&number, bytes + 4 * index, 4);
  return number;
}

float bf16At(const char *bytes, size_t index) {
  uint16_t half;
  std::memcpy(&half, bytes + 2 * index, 2);
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

/// The greatest |result - reference| / (relative * |reference| + absolute); NaN
/// counts as infinite.
double greatest(size_t count, const std::function<double(size_t)> &result,
                const std::vector<double> &reference, double relative,
                double absolute) {
  double most = 0;
  for (size_t i = 0; i < count; ++i) {
    double error = std::abs(result(i) - reference[i]) /
                   (relative * std::abs(reference[i]) + absolute);
    most = error <= most ? most : std::isnan(error) ? INFINITY : error;
  }
  return most;
}

SampleCall makeRmsNorm(std::array<int, 3> shape) {
  size_t rows = shape[0], columns = shape[1];
  std::vector<float> x = randomNumbers(rows * columns, 1);
  std::vector<float> gain = randomNumbers(columns, 2);
  std::vector<double> reference;
  for (size_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (size_t c = 0; c < columns; ++c)
      squares += double(x[r * columns + c]) * x[r * columns + c];
    double scale = 1 / std::sqrt(squares / columns + 1e-5);
    for (size_t c = 0; c < columns; ++c)
      reference.push_back(x[r * columns + c] * scale * gain[c]);
  }
  return {{shape[0] * 1u},
          {128},
          0,
          {asBf16(x), asBf16(gain)},
          2 * rows * columns,
          {shape[1]},
          [reference](const char *result) {
            return greatest(
                reference.size(), [&](size_t i) { return bf16At(result, i); },
                reference, 0x1p-8, 1e-6);
          }};
}

SampleCall makeCenterRows(std::array<int, 3> shape) {
  size_t rows = shape[0], columns = shape[1];
  std::vector<float> x = randomNumbers(rows * columns, 3);
  std::vector<double> reference;
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (size_t c = 0; c < columns; ++c)
      sum += x[r * columns + c];
    for (size_t c = 0; c < columns; ++c)
      reference.push_back(x[r * columns + c] - sum / columns);
  }
  return {{shape[2] * 1u},
          {64},
          0,
          {asF32(x)},
          4 * rows * columns,
          {shape[0], shape[1]},
          [reference](const char *result) {
            return greatest(
                reference.size(), [&](size_t i) { return f32At(result, i); },
                reference, 0, 1e-5);
          }};
}

SampleCall makeSoftmax(std::array<int, 3> shape) {
  size_t rows = shape[0], columns = shape[1];
  std::vector<float> x = randomNumbers(rows * columns, 4);
  std::vector<double> reference;
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (size_t c = 0; c < columns; ++c)
      sum += std::exp(double(x[r * columns + c]));
    for (size_t c = 0; c < columns; ++c)
      reference.push_back(std::exp(double(x[r * columns + c])) / sum);
  }
  return {{(shape[0] + 1u) / 2},
          {64},
          0,
          {asF32(x)},
          4 * rows * columns,
          {shape[0], shape[1]},
          [reference](const char *result) {
            return greatest(
                reference.size(), [&](size_t i) { return f32At(result, i); },
                reference, 2e-6, 0);
          }};
}

SampleCall makeMatmul(std::array<int, 3> shape) {
  size_t m = shape[0], n = shape[1], k = shape[2];
  std::vector<float> a = randomNumbers(m * k, 5), b = randomNumbers(k * n, 6);
  std::vector<double> reference(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t l = 0; l < k; ++l)
        reference[i * n + j] += double(a[i * k + l]) * b[l * n + j];
  return {{(shape[1] + 15u) / 16, (shape[0] + 31u) / 32},
          {128},
          0,
          {asBf16(a), asBf16(b)},
          4 * m * n,
          {shape[0], shape[1], shape[2]},
          [reference](const char *result) {
            return greatest(
                reference.size(), [&](size_t i) { return f32At(result, i); },
                reference, 1e-6, 1e-5);
          }};
}

SampleCall makeMatmulTwoStages(std::array<int, 3> shape) {
  SampleCall call = makeMatmul(shape);
  call.sharedBytes = 4608;
  return call;
}

} // namespace

SampleOutcome run(const SampleCall &call, const RotaSimtKernel &kernel,
                  std::optional<uint64_t> seed, simt::RunPieces runPieces) {
  SampleOutcome outcome;
  outcome.result.assign(call.resultBytes, static_cast<char>(0xFF));
  simt::Emulator emulator;
  std::vector<const void *> pointers;
  for (const std::vector<char> &input : call.inputs) {
    emulator.addBuffer("input " + std::to_string(pointers.size()), input.data(),
                       input.size());
    pointers.push_back(input.data());
  }
  emulator.addBuffer("result", outcome.result.data(), outcome.result.size(),
                     /*written=*/false);
  pointers.push_back(outcome.result.data());
  std::vector<int32_t> integers = call.integers;
  std::vector<void *> arguments;
  for (const void *&pointer : pointers)
    arguments.push_back(&pointer);
  for (int32_t &integer : integers)
    arguments.push_back(&integer);
  simt::Launch launch;
  launch.grid = call.grid;
  launch.block = call.block;
  launch.sharedBytes = call.sharedBytes;
  launch.arguments = arguments.data();
  launch.seed = seed;
  launch.runPieces = std::move(runPieces);
  outcome.reports = emulator.launch(kernel, launch);
  return outcome;
}

const std::vector<SampleKernel> &sampleKernels() {
  static const std::vector<SampleKernel> kernels = {
      {"rms-norm.mlir",
       "rms_norm",
       {{3, 8, 0}, {2, 1000, 0}, {5, 1544, 0}, {1, 4096, 0}},
       makeRmsNorm},
      // Rows, columns, blocks.
      {"center-rows.mlir",
       "center_rows",
       {{1, 1, 1}, {7, 33, 2}, {9, 130, 3}, {5, 257, 1}},
       makeCenterRows},
      {"softmax.mlir",
       "softmax",
       {{1, 4, 0}, {3, 100, 0}, {5, 36, 0}, {4, 512, 0}},
       makeSoftmax},
      {"matmul.mlir",
       "matmul",
       {{1, 8, 8}, {33, 24, 40}, {65, 40, 16}, {70, 56, 72}},
       makeMatmul},
      {"matmul-two-stages.mlir",
       "matmul_two_stages",
       {{1, 8, 8}, {33, 24, 40}, {65, 40, 16}, {70, 56, 72}},
       makeMatmulTwoStages}};
  return kernels;
}

void PrintTo(const SampleKernel &kernel, std::ostream *stream) {
  *stream << kernel.name;
}

} // namespace rota::test
