// SPDX-License-Identifier: Apache-2.0
//
// The compiler's diagnostics and remarks as the tool prints them.
#ifndef ROTA_TOOLS_ROTA_DIAGNOSTICS_H
#define ROTA_TOOLS_ROTA_DIAGNOSTICS_H

#include "runtime/text/Names.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <optional>

namespace rota {

/// The categories of remarks, and all of them.
enum class Remarks {
  Differentiate,
  Shard,
  Pipeline,
  Executable,
  Communication,
  All
};
template <> struct Names<Remarks> {
  static constexpr const char *list[] = {"differentiate", "shard",
                                         "pipeline",      "executable",
                                         "communication", "all"};
};

/// While it exists, errors and warnings of the context go to standard error as
/// `file:line:column: error: message`, each with its notes. So do remarks of
/// one category, or of all of them; others are dropped.
class DiagnosticPrinter {
public:
  DiagnosticPrinter(mlir::MLIRContext &context, std::optional<Remarks> remarks);
  ~DiagnosticPrinter();
  DiagnosticPrinter(const DiagnosticPrinter &) = delete;
  DiagnosticPrinter &operator=(const DiagnosticPrinter &) = delete;

private:
  mlir::MLIRContext &context;
  mlir::DiagnosticEngine::HandlerID handler;
};

} // namespace rota

#endif // ROTA_TOOLS_ROTA_DIAGNOSTICS_H
