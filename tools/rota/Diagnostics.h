// SPDX-License-Identifier: Apache-2.0
//
// The compiler's diagnostics and remarks as the tool prints them.
#ifndef ROTA_TOOLS_ROTA_DIAGNOSTICS_H
#define ROTA_TOOLS_ROTA_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <string>

namespace rota {

/// As long as it exists, errors and warnings of the context go to standard
/// error as `file:line:column: error: message`, each with its notes. So do
/// remarks of one category, or of all of them ("all"); others are dropped.
class DiagnosticPrinter {
public:
  DiagnosticPrinter(mlir::MLIRContext &context, const std::string &remarks);
  ~DiagnosticPrinter();
  DiagnosticPrinter(const DiagnosticPrinter &) = delete;
  DiagnosticPrinter &operator=(const DiagnosticPrinter &) = delete;

private:
  mlir::MLIRContext &context;
  mlir::DiagnosticEngine::HandlerID handler;
};

} // namespace rota

#endif // ROTA_TOOLS_ROTA_DIAGNOSTICS_H
