//===- RotaryOps.td - Rotary embedding ---------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The table of cosines and sines, and the rotation by it.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_ROTARYOPS
#define ROTA_IR_ROTA_ROTARYOPS

include "ir/rota/OpClasses.td"

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
    `inverse` rotates back, which is the derivative. The position of a row is its
    number in the sequence, or what `positions` say.

    Life-span: made by model builders, by hand, or as a derivative; becomes a kernel.

    Constraints:
    - C1: the operand is [batch, sequence, heads, D] with even D
    - C2: the table is [positions, D/2, 2] with at least `sequence` positions
    - C3: positions are [batch, sequence]; values are below those of the table

    ```mlir
    func.func @f(%x: tensor<2x16x3x4xf32>, %table: tensor<16x2x2xf32>) -> tensor<2x16x3x4xf32> {
      %y = rota.rope %x, %table : tensor<2x16x3x4xf32>, tensor<16x2x2xf32>
      %z = rota.rope inverse %y, %table : tensor<2x16x3x4xf32>, tensor<16x2x2xf32>
      return %z : tensor<2x16x3x4xf32>
    }
    func.func @packed(%x: tensor<2x16x3x4xf32>, %table: tensor<16x2x2xf32>, %positions: tensor<2x16xi32>) -> tensor<2x16x3x4xf32> {
      %y = rota.rope %x, %table at %positions : tensor<2x16x3x4xf32>, tensor<16x2x2xf32>, tensor<2x16xi32>
      return %y : tensor<2x16x3x4xf32>
    }
    ```
  }];
  let arguments = (ins Rota_FloatTensor:$input, Rota_F32Tensor:$table,
                       Optional<Rota_IntTensor>:$positions, UnitAttr:$inverse);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    (`inverse` $inverse^)? $input `,` $table (`at` $positions^)? `:`
    type($input) `,` type($table) (`,` type($positions)^)? attr-dict
  }];
}

#endif // ROTA_IR_ROTA_ROTARYOPS
