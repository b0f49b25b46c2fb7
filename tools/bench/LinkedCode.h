// SPDX-License-Identifier: Apache-2.0
//
// An object file that is linked with this program in memory, for measurements
// and tests.
#ifndef ROTA_TOOLS_BENCH_LINKEDCODE_H
#define ROTA_TOOLS_BENCH_LINKEDCODE_H

#include "llvm/ADT/StringRef.h"
#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace rota::bench {

/// The code and the data live as long as this object.
class LinkedCode {
public:
  /// Null where the file cannot be linked; the reason is printed.
  static std::unique_ptr<LinkedCode> link(llvm::StringRef object);
  ~LinkedCode();

  /// What the symbol names, a function or a variable. Null where there is no
  /// such symbol; the reason is printed.
  template <typename Pointer> Pointer find(llvm::StringRef symbol) {
    return reinterpret_cast<Pointer>(address(symbol));
  }

private:
  explicit LinkedCode(std::unique_ptr<llvm::orc::LLJIT> jit);
  uintptr_t address(llvm::StringRef symbol);

  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace rota::bench

#endif // ROTA_TOOLS_BENCH_LINKEDCODE_H
