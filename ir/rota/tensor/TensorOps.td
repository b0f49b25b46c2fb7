//===- TensorOps.td - Computation --------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The tensor ops that a decoder needs beyond arith and math.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_TENSOROPS
#define ROTA_IR_ROTA_TENSOROPS

include "ir/rota/model/ModelOps.td"

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
  let arguments = (ins Rota_FloatTensor:$input, I64Attr:$dim);
  let results = (outs Variadic<Rota_FloatTensor>:$parts);
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

def Rota_RMSNormOp : Rota_DifferentiableOp<"rms_norm", [
    AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<DecomposableOpInterface>]> {
  let summary = "root-mean-square normalization";
  let description = [{
    `x / sqrt(mean(x^2) + epsilon) * gain` along the last dimension
    (Zhang and Sennrich 2019, equation 4). Computed in f32 at least; rounded once.
    `centered` takes the mean of each row off first: with a bias added afterwards
    it is layer normalization (Ba et al. 2016).

    Life-span: made by model builders or by hand; gone after `decompose`.

    Constraints:
    - C1: the gain is the last dimension of the operand
    - C2: operand and result have one type
    - C3: epsilon is not negative

    ```mlir
    func.func @f(%x: tensor<2x4x8xf32>, %gain: tensor<8xf32>) -> tensor<2x4x8xf32> {
      %y = rota.rms_norm %x, %gain epsilon = 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>
      %z = rota.rms_norm centered %y, %gain epsilon = 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>
      return %z : tensor<2x4x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_FloatTensor:$input, Rota_FloatTensor:$gain, F64Attr:$epsilon,
                       UnitAttr:$centered);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    (`centered` $centered^)? $input `,` $gain `epsilon` `=` custom<Real>($epsilon) `:` type($input) `,` type($gain) attr-dict
  }];
}

def Rota_RMSNormGradOp : Rota_ComputeOp<"rms_norm_grad", [
    DeclareOpInterfaceMethods<DecomposableOpInterface>]> {
  let summary = "derivative of rms_norm";
  let description = [{
    With r = 1/sqrt(mean(x^2) + epsilon) and g = dy * gain: the input's cotangent
    `r * g - x * r^3 * mean(g * x)` and the gain's, `sum over rows of dy * x * r`.
    Where the norm is `centered`, x is x - mean(x) and the first g is g - mean(g).

    Life-span: made by `differentiate`; gone after `decompose`.

    Constraints:
    - C1: the gain is the last dimension of the operand
    - C2: cotangent, operand and input cotangent have one type; the gain's
      cotangent has the gain's shape and is not bf16

    ```mlir
    func.func @f(%dy: tensor<2x4x8xf32>, %x: tensor<2x4x8xf32>, %gain: tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>) {
      %dx, %dgain = rota.rms_norm_grad %dy, %x, %gain epsilon = 1.0e-05 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
      return %dx, %dgain : tensor<2x4x8xf32>, tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_FloatTensor:$cotangent, Rota_FloatTensor:$input,
                       Rota_FloatTensor:$gain, F64Attr:$epsilon, UnitAttr:$centered);
  let results = (outs Rota_FloatTensor:$input_cotangent, Rota_F32Tensor:$gain_cotangent);
  let assemblyFormat = [{
    (`centered` $centered^)? $cotangent `,` $input `,` $gain `epsilon` `=` custom<Real>($epsilon) `:`
    functional-type(operands, results) attr-dict
  }];
}

def Rota_ActivationOp : Rota_DifferentiableOp<"activation", [SameOperandsAndResultType,
    DeclareOpInterfaceMethods<DecomposableOpInterface>]> {
  let summary = "activation function, gated or not";
  let description = [{
    `f(x)`, or `f(x) * up` with a second operand (Shazeer 2020: SwiGLU is the
    gated `silu`, GEGLU the gated `gelu`). Elementwise, in f32 at least; rounded
    once. The functions:

    - `silu`: `x / (1 + exp(-x))`
    - `gelu`: `x * (1 + erf(x / sqrt(2))) / 2` (Hendrycks and Gimpel 2016)
    - `gelu_tanh`: `x * (1 + tanh(u)) / 2`, `u = sqrt(2 / pi) * (x + 0.044715 * x^3)`

    Life-span: made by model builders or by hand; gone after `decompose`.

    ```mlir
    func.func @f(%gate: tensor<2x8xf32>, %up: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = rota.activation silu %gate, %up : tensor<2x8xf32>
      %z = rota.activation gelu_tanh %y : tensor<2x8xf32>
      return %z : tensor<2x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_ActivationKind:$kind, Rota_FloatTensor:$input,
                       Optional<Rota_FloatTensor>:$up);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = "$kind $input (`,` $up^)? `:` type($input) attr-dict";
  let hasVerifier = 0;
}

def Rota_ActivationGradOp : Rota_ComputeOp<"activation_grad", [
    SameOperandsAndResultType,
    DeclareOpInterfaceMethods<DecomposableOpInterface>]> {
  let summary = "derivative of activation";
  let description = [{
    The input's cotangent `dy * f'(x)` or, of a gated activation, `dy * up * f'(x)`
    and that of up, `dy * f(x)`.

    Life-span: made by `differentiate`; gone after `decompose`.

    Constraints:
    - C1: a second result where there is an operand up, and only there

    ```mlir
    func.func @f(%dy: tensor<2x8xf32>, %gate: tensor<2x8xf32>, %up: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
      %dgate, %dup = rota.activation_grad silu %dy, %gate, %up : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
      %dx = rota.activation_grad gelu %dgate, %dup : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
      return %dx, %dup : tensor<2x8xf32>, tensor<2x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_ActivationKind:$kind, Rota_FloatTensor:$cotangent,
                       Rota_FloatTensor:$input, Optional<Rota_FloatTensor>:$up);
  let results = (outs Rota_FloatTensor:$input_cotangent,
                      Optional<Rota_FloatTensor>:$up_cotangent);
  let assemblyFormat = [{
    $kind $cotangent `,` $input (`,` $up^)? `:` functional-type(operands, results) attr-dict
  }];
}

def Rota_RotaryTableOp : Rota_ComputeOp<"rotary_table", [
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>]> {
  let summary = "cosines and sines of rotary embedding";
  let description = [{
    Element [p, i, 0] is `scale * cos(p * frequencies[i])` and [p, i, 1] the sine
    (Su et al. 2021, section 3.2.2). Computed once at start in f64.

    Life-span: made by model builders or by hand; becomes a constant table.

    Constraints:
    - C1: the result is [positions, frequencies, 2]
    - C2: frequencies are finite

    ```mlir
    func.func @f() -> tensor<16x2x2xf32> {
      %table = rota.rotary_table frequencies [1.0, 0.01] scale = 1.0 : tensor<16x2x2xf32>
      return %table : tensor<16x2x2xf32>
    }
    ```
  }];
  let arguments = (ins DenseF64ArrayAttr:$frequencies, F64Attr:$scale);
  let results = (outs Rota_F32Tensor:$result);
  let assemblyFormat = [{
    `frequencies` $frequencies `scale` `=` custom<Real>($scale) `:` type($result) attr-dict
  }];
}

def Rota_RopeOp : Rota_DifferentiableOp<"rope", [
    AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<TaskOpInterface, ["getInPlacePairs"]>]> {
  let summary = "rotary position embedding";
  let description = [{
    Rotates the pairs (x[i], x[i + D/2]) of each head by the angles of the row's
    position: `(a*cos - b*sin, b*cos + a*sin)`, the halves as in model hubs.
    `inverse` rotates back, which is the derivative.

    Life-span: made by model builders, by hand, or as a derivative; becomes a kernel.

    Constraints:
    - C1: the operand is [batch, sequence, heads, D] with even D
    - C2: the table is [positions, D/2, 2] with at least `sequence` positions

    ```mlir
    func.func @f(%x: tensor<2x16x3x4xf32>, %table: tensor<16x2x2xf32>) -> tensor<2x16x3x4xf32> {
      %y = rota.rope %x, %table : tensor<2x16x3x4xf32>, tensor<16x2x2xf32>
      %z = rota.rope inverse %y, %table : tensor<2x16x3x4xf32>, tensor<16x2x2xf32>
      return %z : tensor<2x16x3x4xf32>
    }
    ```
  }];
  let arguments = (ins Rota_FloatTensor:$input, Rota_F32Tensor:$table, UnitAttr:$inverse);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = "(`inverse` $inverse^)? $input `,` $table `:` type($input) `,` type($table) attr-dict";
}

#endif // ROTA_IR_ROTA_TENSOROPS
