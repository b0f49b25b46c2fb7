// SPDX-License-Identifier: Apache-2.0
//
// The file that keeps which algorithm of cuBLASLt computes a product, so that
// all processes and all runs take the same one: the bits of a product follow
// from its algorithm.
//
//   rota cublasLt algorithms 1
//   NVIDIA H200, cublasLt 130100, ...<tab>00f3...    key, algorithm in hex
//   end 5d41402abc4b2a76                             FNV-1a of all lines above
#ifndef ROTA_RUNTIME_DEVICE_CUDA_ALGORITHMFILE_H
#define ROTA_RUNTIME_DEVICE_CUDA_ALGORITHMFILE_H

#include "runtime/device/cuda/BlasLtApi.h"

#include <map>
#include <optional>
#include <string>

namespace rota::cuda {

/// The value of ROTA_ALGORITHM_FILE, which may be empty, or
/// rota/cublaslt-algorithms in $XDG_CACHE_HOME or ~/.cache; empty without a
/// home.
std::string defaultAlgorithmFile();

using AlgorithmEntries = std::map<std::string, BlasLtAlgorithm>; // by key

/// One rank's view of a file that any number of ranks and processes may use. A
/// file that is damaged, or cannot be read or written, is reported in one line
/// on stderr.
class AlgorithmFile {
public:
  /// An empty path is that of no file. A damaged file counts as an empty one,
  /// and is replaced when an algorithm is kept.
  explicit AlgorithmFile(std::string path);

  /// Whether algorithms can be kept: there is a path, and no write has failed.
  bool isOpen() const { return !path.empty(); }
  const std::string &name() const { return path; }

  std::optional<BlasLtAlgorithm> find(const std::string &key) const;
  /// Adds the algorithm unless the file has one for the key by now. Returns the
  /// one in the file; nothing where it cannot be written.
  std::optional<BlasLtAlgorithm> keep(const std::string &key,
                                      const BlasLtAlgorithm &algorithm);

private:
  std::string path;
  AlgorithmEntries entries;
};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_ALGORITHMFILE_H
