// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/Diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace rota {

/// The first place in a file that `loc` leads to; null when there is none.
static FileLineColLoc findLocation(Location loc) {
  FileLineColLoc place;
  loc->walk([&](Location inner) {
    place = dyn_cast<FileLineColLoc>(inner);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

static void printLocation(Location loc) {
  FileLineColLoc place = findLocation(loc);
  if (!place)
    return;
  llvm::errs() << place.getFilename().getValue() << ":";
  if (place.getLine())
    llvm::errs() << place.getLine() << ":" << place.getColumn() << ":";
  llvm::errs() << " ";
}

static void print(const Diagnostic &diagnostic, StringRef severity) {
  printLocation(diagnostic.getLocation());
  llvm::errs() << severity << ": " << diagnostic << "\n";
}

namespace {
struct RemarkPrinter : remark::detail::MLIRRemarkStreamerBase {
  void streamOptimizationRemark(const remark::detail::Remark &told) override {
    printLocation(told.getLocation());
    llvm::errs() << "remark: ";
    told.print(llvm::errs());
    llvm::errs() << "\n";
  }
};
} // namespace

static void printRemarks(MLIRContext &context, Remarks remarks) {
  std::string meant =
      remarks == Remarks::All ? ".*" : std::string("^") + nameOf(remarks) + "$";
  remark::RemarkCategories categories;
  categories.passed = categories.missed = meant;
  categories.analysis = categories.failed = meant;
  // Fails only where the context has an engine.
  (void)remark::enableOptimizationRemarks(
      context, std::make_unique<RemarkPrinter>(),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
}

DiagnosticPrinter::DiagnosticPrinter(MLIRContext &context,
                                     std::optional<Remarks> remarks)
    : context(context) {
  if (remarks)
    printRemarks(context, *remarks);
  // Messages name the mistake; the op in generic form would hide it.
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
