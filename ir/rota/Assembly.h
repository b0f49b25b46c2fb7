// SPDX-License-Identifier: Apache-2.0
//
// Custom assembly that ops of both dialects use.
#ifndef ROTA_IR_ROTA_ASSEMBLY_H
#define ROTA_IR_ROTA_ASSEMBLY_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

namespace mlir::rota {

/// `layers = 4`: a bare integer.
inline ParseResult parseCount(OpAsmParser &parser, IntegerAttr &count) {
  int64_t value;
  if (parser.parseInteger(value))
    return failure();
  count = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

inline void printCount(OpAsmPrinter &printer, Operation *, IntegerAttr count) {
  printer << count.getInt();
}

/// `epsilon = 1.0e-05`: a bare floating-point number, printed so that it reads
/// back to the same bits.
inline ParseResult parseReal(OpAsmParser &parser, FloatAttr &real) {
  double value;
  if (parser.parseFloat(value))
    return failure();
  real = parser.getBuilder().getF64FloatAttr(value);
  return success();
}

inline void printReal(OpAsmPrinter &printer, Operation *, FloatAttr real) {
  printer.printAttributeWithoutType(real);
}

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_ASSEMBLY_H
