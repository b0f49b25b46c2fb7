// SPDX-License-Identifier: Apache-2.0
//
// Registration of the rota dialect, and its custom assembly.
#include "ir/rota/Assembly.h"
#include "ir/rota/cost/MachineReads.h"
#include "ir/rota/experts/Experts.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::rota;

#include "ir/rota/RotaDialect.cpp.inc"
#include "ir/rota/RotaEnums.cpp.inc"
#include "ir/rota/RotaInterfaces.cpp.inc"

/// `mean = 0.0` inside attributes, as `custom<Real>` of ops.
static FailureOr<APFloat> parseRealParameter(AsmParser &parser) {
  double value;
  if (parser.parseFloat(value))
    return failure();
  return APFloat(value);
}

static void printRealParameter(AsmPrinter &printer, const APFloat &real) {
  printer.printFloat(real);
}

/// `[<data>, <tensor:(2)4>]`.
static ParseResult parseAxes(OpAsmParser &parser, ArrayAttr &axes) {
  SmallVector<Attribute> refs;
  if (parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square, [&]() -> ParseResult {
            AxisRefAttr ref;
            if (parser.parseCustomAttributeWithFallback(ref))
              return failure();
            refs.push_back(ref);
            return success();
          }))
    return failure();
  axes = parser.getBuilder().getArrayAttr(refs);
  return success();
}

static void printAxes(OpAsmPrinter &printer, Operation *, ArrayAttr axes) {
  printer << "[";
  llvm::interleaveComma(
      axes.getAsRange<AxisRefAttr>(), printer,
      [&](AxisRefAttr ref) { printer.printStrippedAttrOrType(ref); });
  printer << "]";
}

#define GET_ATTRDEF_CLASSES
#include "ir/rota/RotaAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "ir/rota/RotaOps.cpp.inc"
#define GET_OP_CLASSES
#include "ir/rota/ExpertOps.cpp.inc"

void RotaDialect::initialize() {
  addInterfaces<MachineReads>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/rota/RotaAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/rota/RotaOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/rota/ExpertOps.cpp.inc"
      >();
}

Value mlir::rota::viewedValue(Value value) {
  while (auto view = value.getDefiningOp<ViewOpInterface>())
    value = view.getViewedOperand();
  return value;
}

SmallVector<int64_t> FactorRule::reducedFactors() const {
  llvm::SmallVector<bool> kept(sizes.size(), false);
  for (const Dimensions &result : results)
    for (const auto &dimension : result)
      for (int64_t factor : dimension)
        kept[factor] = true;
  SmallVector<int64_t> reduced;
  for (auto [factor, isKept] : llvm::enumerate(kept))
    if (!isKept)
      reduced.push_back(factor);
  return reduced;
}

Cost &Cost::operator+=(const Cost &other) {
  flops += other.flops;
  bytesRead += other.bytesRead;
  bytesWritten += other.bytesWritten;
  specialFunctions += other.specialFunctions;
  roundings += other.roundings;
  return *this;
}
