//===- TensorOps.td - Computation --------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The tensor ops that a decoder needs beyond arith and math.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_TENSOROPS
#define ROTA_IR_ROTA_TENSOROPS

include "ir/rota/OpClasses.td"

def Rota_EinsumOp : Rota_DifferentiableOp<"einsum", [
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm", "canAccumulate"]>]> {
  let summary = "product of two tensors, summed over named dimensions";
  let description = [{
    Einstein summation of two operands: letters name dimensions, letters that
    are missing in the result are summed over. Accumulates in f32 at least; the
    result's element type may be wider than the operands'.

    Life-span: made by model builders, by hand, or as a derivative; becomes a GEMM.

    Constraints:
    - C1: the equation is `letters,letters->letters`, with distinct letters in each
    - C2: letters and ranks agree; a letter has one size
    - C3: each result letter stands in an operand; each operand letter stands in
      the other operand or in the result
    - C4: the operands have one element type

    ```mlir
    func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<16x8xf32>) -> tensor<2x4x16xf32> {
      %y = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
      return %y : tensor<2x4x16xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$equation, Rota_FloatTensor:$lhs, Rota_FloatTensor:$rhs);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $equation $lhs `,` $rhs `:` functional-type(operands, results) attr-dict
  }];
  let extraClassDeclaration = [{
    /// The letters of the left operand, the right operand and the result.
    struct Letters { StringRef lhs, rhs, result; };
    Letters getLetters();
  }];
}

def Rota_ReshapeOp : Rota_DifferentiableOp<"reshape", [ViewOpInterface,
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>]> {
  let summary = "the same elements in another shape";
  let description = [{
    Splits or merges neighbouring dimensions; row-major order is kept, so it
    costs nothing.

    Life-span: made by model builders, by hand, or as a derivative; becomes no code.

    Constraints:
    - C1: operand and result have the same number of elements
    - C2: operand and result have one element type

    ```mlir
    func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x2x4xf32> {
      %y = rota.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
      return %y : tensor<2x4x2x4xf32>
    }
    ```
  }];
  let arguments = (ins Rota_Tensor:$input);
  let results = (outs Rota_Tensor:$result);
  let assemblyFormat = "$input `:` type($input) `->` type($result) attr-dict";
  let hasFolder = 1;
}

def Rota_ReduceOp : Rota_DifferentiableOp<"reduce", [
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "sum or maximum over dimensions";
  let description = [{
    Combines over `dims`, which disappear from the shape. The derivative of `max`
    is divided equally among the elements that equal it.

    Life-span: made by model builders, by hand, or by decomposition; fused into kernels.

    Constraints:
    - C1: `dims` are ascending dimensions of the operand
    - C2: the result's shape is the operand's without `dims`, same element type

    ```mlir
    func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4xf32> {
      %y = rota.reduce sum %x dims [2] : tensor<2x4x8xf32> -> tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    }
    ```
  }];
  let arguments = (ins Rota_ReduceKind:$kind, Rota_FloatTensor:$input,
                       DenseI64ArrayAttr:$dims);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $kind $input `dims` $dims `:` type($input) `->` type($result) attr-dict
  }];
}

def Rota_BroadcastOp : Rota_DifferentiableOp<"broadcast"> {
  let summary = "repeats a tensor along new dimensions";
  let description = [{
    Operand dimension i becomes result dimension `dims[i]`; the operand is
    repeated along the others.

    Life-span: made by model builders, by hand, or by decomposition; fused into kernels.

    Constraints:
    - C1: `dims` are ascending dimensions of the result, one per operand dimension
    - C2: sizes agree along `dims`; one element type

    ```mlir
    func.func @f(%x: tensor<8xf32>) -> tensor<2x4x8xf32> {
      %y = rota.broadcast %x dims [2] : tensor<8xf32> -> tensor<2x4x8xf32>
      return %y : tensor<2x4x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_FloatTensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $input `dims` $dims `:` type($input) `->` type($result) attr-dict
  }];
}

def Rota_SplitOp : Rota_DifferentiableOp<"split", [TaskOpInterface]> {
  let summary = "cuts a tensor along a dimension";
  let description = [{
    The results, one after the other along dimension `dim`, are the operand.

    Life-span: made by model builders, by hand, or as a derivative; becomes kernels.

    Constraints:
    - C1: `dim` is a dimension of the whole tensor
    - C2: the parts' sizes add up along `dim` and are those of the whole elsewhere
    - C3: one element type

    ```mlir
    func.func @f(%x: tensor<2x4x6x8xf32>) -> tensor<2x4x4x8xf32> {
      %q, %k, %v = rota.split %x dim = 2 : (tensor<2x4x6x8xf32>) -> (tensor<2x4x4x8xf32>, tensor<2x4x1x8xf32>, tensor<2x4x1x8xf32>)
      return %q : tensor<2x4x4x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_Tensor:$input, I64Attr:$dim);
  let results = (outs Variadic<Rota_Tensor>:$parts);
  let assemblyFormat = [{
    $input `dim` `=` custom<Count>($dim) `:` functional-type(operands, results) attr-dict
  }];
}

def Rota_ConcatOp : Rota_DifferentiableOp<"concat", [TaskOpInterface]> {
  let summary = "puts tensors one after the other";
  let description = [{
    The result along dimension `dim` is the operands, in order: the inverse and
    the derivative of `rota.split`.

    Life-span: made by model builders, by hand, or as a derivative; becomes kernels.

    Constraints: those of `rota.split`.

    ```mlir
    func.func @f(%x: tensor<2x3xf32>, %y: tensor<2x5xf32>) -> tensor<2x8xf32> {
      %z = rota.concat %x, %y dim = 1 : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
      return %z : tensor<2x8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Rota_FloatTensor>:$parts, I64Attr:$dim);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $parts `dim` `=` custom<Count>($dim) `:` functional-type(operands, results) attr-dict
  }];
}

#endif // ROTA_IR_ROTA_TENSOROPS
