//===- Passes.td - rota to fused kernels -------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef ROTA_LOWERING_KERNELS_PASSES
#define ROTA_LOWERING_KERNELS_PASSES

include "mlir/Pass/PassBase.td"

def Decompose : Pass<"decompose"> {
  let summary = "composite ops as elementwise ops, reductions and broadcasts";
  let description = [{
    Replaces every op that answers `DecomposableOpInterface` by what it is made
    of. Conversions between bf16 and f32 are explicit from here on.

    Before:

    ```mlir
    func.func @f(%gate: tensor<2x8xbf16>, %up: tensor<2x8xbf16>) -> tensor<2x8xbf16> {
      %y = rota.swiglu %gate, %up : tensor<2x8xbf16>
      return %y : tensor<2x8xbf16>
    }
    ```

    After: `arith.extf`, `math.exp`, `arith.divf`, `arith.mulf`, `arith.truncf`.
  }];
  let statistics = [Statistic<"decomposed", "decomposed", "ops decomposed">];
}

#endif // ROTA_LOWERING_KERNELS_PASSES
