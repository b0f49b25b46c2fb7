// SPDX-License-Identifier: Apache-2.0
//
// Programs that read tokens, files for them, and whole batches in host memory.
#ifndef ROTA_TEST_RUNTIME_DATA_BATCHCASE_H
#define ROTA_TEST_RUNTIME_DATA_BATCHCASE_H

#include "runtime/data/TokenBatches.h"
#include "test/runtime/TemporaryFolder.h"

#include <numeric>

namespace rota::test {

/// The bytes of an array.
template <typename T> std::string bytesOf(const std::vector<T> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(T));
}

/// Microbatches of `sequences` sequences of `length` tokens below `vocabulary`.
inline Program tokenProgram(int64_t sequences, int64_t length,
                            int64_t microbatches, int64_t vocabulary = 256) {
  Program program;
  program.vocabulary = program.classes = vocabulary;
  program.microbatches = microbatches;
  program.input = program.target = {ElementType::I32, {sequences, length}};
  return program;
}

/// A file of `count` bytes, byte i being i mod 251.
inline std::string ramp(const TemporaryFolder &folder, int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i)
    bytes.push_back(static_cast<char>(i % 251));
  return folder.write("ramp", bytes);
}

/// A file of the uint32 `first`, `first` + 1, ...: each token is its position.
inline std::string positions(const TemporaryFolder &folder,
                             const std::string &name, uint32_t count,
                             uint32_t first = 0) {
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return folder.write(name, bytesOf(values));
}

/// Inputs or targets of all microbatches of a batch.
inline std::vector<int32_t> fill(const Batches &batches, const Program &program,
                                 Split split, int64_t batch, bool target) {
  std::vector<int32_t> all;
  int64_t first = batch * program.stepSequences();
  for (int64_t m = 0; m < program.microbatches; ++m) {
    std::vector<int32_t> one(program.input.elements());
    Destination out{partOf(program.input.shape, {}, {}, {}),
                    reinterpret_cast<char *>(one.data())};
    batches.fill(split, first + m * program.input.shape[0],
                 target ? Destination() : out, target ? out : Destination());
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_DATA_BATCHCASE_H
