// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/Diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace rota {

/// The first place in a file that `loc` leads to; null when there is none.
static FileLineColLoc findPlace(Location loc) {
  FileLineColLoc place;
  loc->walk([&](Location inner) {
    place = dyn_cast<FileLineColLoc>(inner);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

static void print(const Diagnostic &diagnostic, StringRef severity) {
  if (FileLineColLoc place = findPlace(diagnostic.getLocation())) {
    llvm::errs() << place.getFilename().getValue() << ":";
    if (place.getLine())
      llvm::errs() << place.getLine() << ":" << place.getColumn() << ":";
    llvm::errs() << " ";
  }
  llvm::errs() << severity << ": " << diagnostic << "\n";
}

DiagnosticPrinter::DiagnosticPrinter(MLIRContext &context) : context(context) {
  // A user reads what is wrong, not the op in generic form.
  context.printOpOnDiagnostic(false);
  handler = context.getDiagEngine().registerHandler(
      [](Diagnostic &diagnostic) -> LogicalResult {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          print(diagnostic, "error");
        else if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
          print(diagnostic, "warning");
        else
          return success();
        for (Diagnostic &note : diagnostic.getNotes())
          print(note, "note");
        return success();
      });
}

DiagnosticPrinter::~DiagnosticPrinter() {
  context.getDiagEngine().eraseHandler(handler);
}

} // namespace rota
