// SPDX-License-Identifier: Apache-2.0
//
// The rota dialect: what a model computes on one microbatch, on one imaginary
// device.
#ifndef ROTA_IR_ROTA_ROTA_H
#define ROTA_IR_ROTA_ROTA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/rota/Interfaces.h"
#include "ir/rota/attention/AttentionForm.h"

namespace mlir::rota {
/// The resource that `rota.accumulate` reads and writes.
struct ParameterGradients : SideEffects::Resource::Base<ParameterGradients> {
  StringRef getName() final { return "parameter gradients"; }
};
/// The resource that `rota.auxiliary_loss` reads and writes.
struct AuxiliaryLosses : SideEffects::Resource::Base<AuxiliaryLosses> {
  StringRef getName() final { return "auxiliary losses"; }
};
} // namespace mlir::rota

// Enums before the attributes that hold them, both before the dialect, which
// declares an attribute of functions' arguments and results.
#include "ir/rota/RotaEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/rota/RotaAttributes.h.inc"
#include "ir/rota/RotaDialect.h.inc"
#define GET_OP_CLASSES
#include "ir/rota/RotaOps.h.inc"

namespace mlir::rota {
/// The value that `value` is a view of, through all views; else `value`.
Value viewedValue(Value value);

/// Attaches the rota interfaces to the arith and math ops that models may use.
void registerArithModels(DialectRegistry &registry);
} // namespace mlir::rota

#endif // ROTA_IR_ROTA_ROTA_H
