// SPDX-License-Identifier: Apache-2.0
//
// A context in which models are planned without a word.
#ifndef ROTA_TOOLS_PLANNER_SILENTCONTEXT_H
#define ROTA_TOOLS_PLANNER_SILENTCONTEXT_H

#include "models/Models.h"

#include "mlir/IR/Diagnostics.h"

namespace rota {

/// A context of one thread that prints no diagnostics, and keeps the first
/// error in a text.
class SilentContext {
public:
  /// `error` must outlive it.
  explicit SilentContext(std::string &error)
      : context(registry(), mlir::MLIRContext::Threading::DISABLED),
        handler(&context, [&error](mlir::Diagnostic &diagnostic) {
          bool isError =
              diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
          if (isError && error.empty())
            error = diagnostic.str();
        }) {}

  mlir::MLIRContext &operator*() { return context; }

private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    mlir::rota::registerModelDialects(registry);
    return registry;
  }

  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SILENTCONTEXT_H
