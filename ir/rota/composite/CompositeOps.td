//===- CompositeOps.td - Ops with parts --------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that decompose: normalization and activation functions. The whole has a
// derivative that rounds once; kernels are made of the parts.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_COMPOSITEOPS
#define ROTA_IR_ROTA_COMPOSITEOPS

include "ir/rota/OpClasses.td"

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

#endif // ROTA_IR_ROTA_COMPOSITEOPS
