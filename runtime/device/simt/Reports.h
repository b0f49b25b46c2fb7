// SPDX-License-Identifier: Apache-2.0
//
// The errors of one block, each a line of text with kernel, block, thread and
// place in the source.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_REPORTS_H
#define ROTA_RUNTIME_DEVICE_SIMT_REPORTS_H

#include "runtime/device/simt/Services.h"

#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rota::simt {

/// Kinds of errors; an error of one kind is reported once for each pair of
/// sites.
enum class Fault {
  Race,
  Unordered,
  Unwritten,
  OutOfBounds,
  Misaligned,
  PendingCopy,
  PendingProduct,
  DivergentBarrier,
  DivergentCollective,
  Deadlock,
  InvalidOperand
};

class Reports {
public:
  void startBlock(const RotaSimtKernel *kernel, std::array<uint32_t, 3> block,
                  size_t limit);

  /// "kernel 'k', block (0, 0, 0), thread 5, a.mlir:3:4 (load): race: ...".
  /// `other` is the site that the text names with place(), or 0.
  template <typename... Args>
  void add(Fault fault, uint32_t thread, uint32_t site, uint32_t other,
           fmt::format_string<Args...> text, Args &&...args) {
    if (isNew(fault, site, other))
      append(fault, thread, site,
             fmt::format(text, std::forward<Args>(args)...));
  }

  /// "a.mlir:3:4 (load)"; a text of the kernel.
  const char *place(uint32_t site) const;
  std::vector<std::string> take() { return std::move(lines); }

private:
  bool isNew(Fault fault, uint32_t site, uint32_t other);
  void append(Fault fault, uint32_t thread, uint32_t site,
              const std::string &text);

  const RotaSimtKernel *kernel = nullptr;
  std::array<uint32_t, 3> block{};
  size_t limit = 0;
  std::set<std::tuple<Fault, uint32_t, uint32_t>> seen;
  std::vector<std::string> lines;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_REPORTS_H
