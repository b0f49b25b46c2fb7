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

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_ASSEMBLY_H
