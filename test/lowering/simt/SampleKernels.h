// SPDX-License-Identifier: Apache-2.0
//
// Kernels that use what GPU kernels of a language model use, with random inputs
// of several shapes and references in f64.
#ifndef ROTA_TEST_LOWERING_SIMT_SAMPLEKERNELS_H
#define ROTA_TEST_LOWERING_SIMT_SAMPLEKERNELS_H

#include "runtime/device/simt/Simt.h"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace rota::test {

/// One call of a kernel. Pointers come first among its arguments, the result
/// last among them, and then integers of 32 bits.
struct SampleCall {
  simt::Size grid, block;
  int64_t sharedBytes = 0;
  std::vector<std::vector<char>> inputs;
  size_t resultBytes;
  std::vector<int32_t> integers;
  /// The greatest difference to the reference, in units of the tolerance.
  std::function<double(const char *result)> error;
};

struct SampleOutcome {
  std::vector<std::string> reports;
  std::vector<char> result;
};

/// Runs the call with all its memory known to the emulator.
SampleOutcome run(const SampleCall &call, const RotaSimtKernel &kernel,
                  std::optional<uint64_t> seed = std::nullopt,
                  simt::RunPieces runPieces = nullptr);

struct SampleKernel {
  const char *file;
  const char *name;
  std::vector<std::array<int, 3>> shapes;
  SampleCall (*make)(std::array<int, 3> shape);
};

const std::vector<SampleKernel> &sampleKernels();

/// For GoogleTest.
void PrintTo(const SampleKernel &kernel, std::ostream *stream);

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_SIMT_SAMPLEKERNELS_H
