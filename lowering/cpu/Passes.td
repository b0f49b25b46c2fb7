//===- Passes.td - Vector code to LLVM ---------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef ROTA_LOWERING_CPU_PASSES
#define ROTA_LOWERING_CPU_PASSES

include "mlir/Pass/PassBase.td"

def ApproximateMath : Pass<"approximate-math"> {
  let summary = "math functions and bf16 as vector arithmetic";
  let description = [{
    Rewrites math functions of f32 as polynomials (relative error up to 2e-7 or
    so; square roots and divisions stay exact) and conversions between f32 and
    bf16 as integer operations that round to nearest even, denormals included,
    the same on every machine.

    Before:

    ```mlir
    func.func @f(%x: vector<32xf32>) -> vector<32xbf16> {
      %e = math.exp %x : vector<32xf32>
      %y = arith.truncf %e : vector<32xf32> to vector<32xbf16>
      return %y : vector<32xbf16>
    }
    ```

    After, `%e` is a chain of `math.fma` and `%y` of shifts and additions of i32.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // ROTA_LOWERING_CPU_PASSES
