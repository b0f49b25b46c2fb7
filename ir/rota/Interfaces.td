//===- Interfaces.td - Interfaces of every op --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Generic passes use each op through these interfaces: its vector-Jacobian
// product, its sharding rule, its cost, its parts and its form in a task. A new
// op implements them and adds no case anywhere else. Ops of arith and math
// implement them through external models (ArithModels.cpp).
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_INTERFACES
#define ROTA_IR_ROTA_INTERFACES

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::mlir::rota";
  let description = [{
    Reverse-mode differentiation. Given the cotangent of each result (null where
    none reaches it), builds the cotangent of each operand.
  }];
  let methods = [InterfaceMethod<[{
      Builds operand cotangents at the builder's insertion point, using the op's
      operands and results. Returns one value per operand: null where `needed`
      is false or the derivative is zero (integers). A cotangent has its
      operand's shape and element type, except that the cotangent of a
      parameter's value may stay f32 where the operand is bf16.
    }],
    "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "vjp",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents,
         "::llvm::ArrayRef<bool>":$needed)>];
}

def FactorRuleOpInterface : OpInterface<"FactorRuleOpInterface"> {
  let cppNamespace = "::mlir::rota";
  let description = [{
    The sharding rule as factors, in the style of an einsum: each dimension of
    each operand and result is a product of factors, and dimensions that share a
    factor are split together.
  }];
  let methods = [InterfaceMethod<"The op's rule.",
    "::mlir::rota::FactorRule", "getFactorRule">];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::mlir::rota";
  let description = [{
    The cost of one execution: floating-point operations (a multiply-add counts
    two), bytes read and written when nothing is fused, and the form of the work.
  }];
  let methods = [InterfaceMethod<"The op's cost.", "::mlir::rota::Cost",
    "getCost">];
}

def DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::mlir::rota";
  let description = [{
    Composite ops that are sums of elementwise ops, `rota.reduce` and
    `rota.broadcast`. Only such ops implement it. Kernels are fused from the
    parts.
  }];
  let methods = [InterfaceMethod<[{
      Builds the same results from arith, math, `rota.reduce` and
      `rota.broadcast` ops, computing in f32 at least whatever the operands' type.
    }],
    "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
    (ins "::mlir::OpBuilder &":$builder)>];
}

def PartitionOpInterface : OpInterface<"PartitionOpInterface"> {
  let cppNamespace = "::mlir::rota";
  let description = [{
    Ops whose part on one rank is not always the op itself on parts of its
    operands: they number the entries of a dimension that is divided, combine
    over it, or hold sizes. Only such ops implement it.
  }];
  let methods = [InterfaceMethod<[{
      Builds this rank's part, out of operands that are parts already, at the
      builder's insertion point. `factors` has the axes of each factor of the
      op's rule, `sizes` the whole sizes of the factors, `types` the types of the
      results' parts. Returns the results; none where the op itself on parts of
      its operands is right.
    }],
    "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildPart",
    (ins "::mlir::OpBuilder &":$builder,
         "::llvm::ArrayRef<::llvm::SmallVector<::mlir::rota::AxisRefAttr, 2>>":$factors,
         "::llvm::ArrayRef<int64_t>":$sizes, "::mlir::TypeRange":$types)>];
}

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::mlir::rota";
  let description = [{
    Moves a value among the ranks of a group: those that differ along some axes
    of the mesh only.
  }];
  let methods = [
    InterfaceMethod<"The group's axes, the first slowest.",
      "::mlir::ArrayAttr", "getAxes">,
    InterfaceMethod<"The reason for the collective, for messages.", "::llvm::StringRef",
      "getReason">,
    InterfaceMethod<"The kind, which fixes the bytes on the wire (Traffic.h).",
      "::mlir::rota::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"The part of the bytes that is expected to travel.", "double",
      "getExpectedFill", (ins), [{}], [{ return 1; }]>];
}

def ViewOpInterface : OpInterface<"ViewOpInterface"> {
  let cppNamespace = "::mlir::rota";
  let description = [{
    Ops whose only result has the elements of one operand, in row-major order and
    of the same element type: they cost no code and no memory.
  }];
  let methods = [InterfaceMethod<"The operand whose elements the result has.",
    "::mlir::Value", "getViewedOperand", (ins), [{}],
    [{ return $_op->getOperand(0); }]>];
}

def TaskOpInterface : OpInterface<"TaskOpInterface"> {
  let cppNamespace = "::mlir::rota";
  let description = [{
    Ops that may stand in a function when it becomes a task. The answers are the
    same on every device: an emitter of kernels keeps to them.
  }];
  let methods = [
    InterfaceMethod<"What the op becomes: kernels where the op says nothing.",
      "::mlir::rota::TaskForm", "getTaskForm", (ins), [{}],
      [{ return ::mlir::rota::TaskForm::Kernels; }]>,
    InterfaceMethod<[{
      Whether the op can add that result to what its buffer holds instead of
      overwriting it.
    }], "bool", "canAccumulate", (ins "unsigned":$result), [{}],
      [{ return false; }]>,
    InterfaceMethod<[{
      Pairs (operand, result): the result may lie on the bytes of the operand if
      nothing reads the operand afterwards.
    }], "::llvm::SmallVector<std::pair<unsigned, unsigned>>", "getInPlacePairs",
      (ins), [{}], [{ return {}; }]>];
}

def IndexOpInterface : OpInterface<"IndexOpInterface"> {
  let cppNamespace = "::mlir::rota";
  let description = [{
    Ops that use the numbers of an integer operand as places in a tensor. A
    number that has no place ends the run with an error.
  }];
  let methods = [
    InterfaceMethod<"The numbers.", "::mlir::Value", "getIndices">,
    InterfaceMethod<[{
      The number of places, those on other ranks included; none where every
      number is legal.
    }], "std::optional<int64_t>", "getIndexBound">,
    InterfaceMethod<"Whether a negative number is legal: it has no place.",
      "bool", "allowsNegativeIndices", (ins), [{}], [{ return false; }]>];
}

#endif // ROTA_IR_ROTA_INTERFACES
