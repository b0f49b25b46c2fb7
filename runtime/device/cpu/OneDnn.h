// SPDX-License-Identifier: Apache-2.0
//
// Products of oneDNN, which is loaded at run time: version 3 where there is
// one, else version 2. Its functions are declared in OneDnn.cpp, so that
// neither the compiler nor a trainer needs its headers, and nothing else knows
// what the versions differ in.
#ifndef ROTA_RUNTIME_DEVICE_CPU_ONEDNN_H
#define ROTA_RUNTIME_DEVICE_CPU_ONEDNN_H

#include "runtime/Abi.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace rota {

/// Loads oneDNN once. Throws InputError that says what is missing and what to
/// install.
void loadOneDnn();

/// The version that is loaded, such as "2.6.3". Throws as loadOneDnn.
std::string oneDnnVersion();

/// The version of the first of `names` that products can use. Throws InputError
/// that names the fault of each where there is none.
std::string findOneDnn(std::span<const char *const> names);

/// A compiled product of one shape, which any thread may run.
class OneDnnProduct {
public:
  /// Of a description whose batch is 1. Null where oneDNN has no fast code for
  /// its types on this machine; with `mayBeSlow` any code will do. Throws
  /// RunError where oneDNN fails.
  static std::unique_ptr<OneDnnProduct> make(const RotaGemm &gemm,
                                             bool mayBeSlow);
  /// Whether oneDNN reads the operands of this f32 product where they lie,
  /// instead of in panels that it copies itself.
  static bool readsInPlace(const RotaGemm &gemm);
  ~OneDnnProduct();
  OneDnnProduct(const OneDnnProduct &) = delete;
  OneDnnProduct &operator=(const OneDnnProduct &) = delete;

  /// Bytes of memory that a run needs beside its operands.
  size_t scratchBytes() const;
  /// Runs on the calling thread alone. Throws RunError where oneDNN fails.
  void run(const void *a, const void *b, void *c, void *scratch) const;

private:
  struct Parts;
  explicit OneDnnProduct(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts;
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_ONEDNN_H
