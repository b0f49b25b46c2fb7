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
    of. Conversions between bf16 and f32 are explicit from here on. A sum over one
    dimension in the middle becomes a product with ones, batched over the
    dimensions before it.

    Before:

    ```mlir
    func.func @f(%gate: tensor<2x8xbf16>, %up: tensor<2x8xbf16>) -> tensor<2x8xbf16> {
      %y = rota.activation silu %gate, %up : tensor<2x8xbf16>
      return %y : tensor<2x8xbf16>
    }
    ```

    After: `arith.extf`, `math.exp`, `arith.divf`, `arith.mulf`, `arith.truncf`.
  }];
  let statistics = [Statistic<"decomposed", "decomposed", "ops decomposed">];
}

def FormKernels : Pass<"form-kernels", "::mlir::ModuleOp"> {
  let summary = "fuse row-aligned ops into kernels";
  let description = [{
    Groups elementwise ops, reductions and broadcasts of each function that work
    on the same rows into `rota.kernel` ops, launched where they stood. Groups are
    as large as is legal; a value leaves a kernel only when something outside
    needs it. Constants, broadcasts and widening to f32 are repeated in each kernel
    that uses them. Equal kernels are one. Reductions over rows become results of
    kind `sum`; a maximum over rows stays as it is.

    Composite ops must be decomposed before. Einsums, reshapes, collectives,
    attention and other ops with kernels of their own stay.

    Before:

    ```mlir
    func.func @f(%x: tensor<2x3x8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
      %0 = rota.broadcast %b dims [2] : tensor<8xf32> -> tensor<2x3x8xf32>
      %1 = arith.addf %x, %0 : tensor<2x3x8xf32>
      %2 = math.tanh %1 : tensor<2x3x8xf32>
      return %2 : tensor<2x3x8xf32>
    }
    ```

    After:

    ```mlir
    func.func @f(%x: tensor<2x3x8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
      %0 = rota.launch @fused rows = 6 (%x, %b) : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
      return %0 : tensor<2x3x8xf32>
    }
    rota.kernel @fused operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>] results [#rota.result<row>] {
    ^bb0(%x: tensor<8xf32>, %b: tensor<8xf32>):
      %0 = arith.addf %x, %b : tensor<8xf32>
      %1 = math.tanh %0 : tensor<8xf32>
      rota.yield %1 : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let statistics = [Statistic<"launches", "launches", "groups formed">,
                    Statistic<"kernels", "kernels", "distinct kernels">];
}

def VerifyLowered : Pass<"verify-lowered", "::mlir::ModuleOp"> {
  let summary = "check that functions hold only what becomes tasks";
  let description = [{
    What is illegal once kernels are formed, an error each; the module is not
    changed:

    - L1: in a function, an op other than a constant table, a return and those
      that answer `TaskOpInterface`. Composite ops belong to `decompose`, names to
      `erase-names`, elementwise ops, reductions and broadcasts to `form-kernels`.
    - L2: in a function, a value of f64: it is for reference computations
    - L3: a `rota.kernel` that nothing launches. (That each launch names a kernel
      is part of the op.)

    Before, an error (L1, `math.tanh` is in no kernel):

    ```mlir
    func.func @f(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
      %y = math.tanh %x : tensor<6x32xf32>
      return %y : tensor<6x32xf32>
    }
    ```

    Legal, and the same after:

    ```mlir
    rota.kernel @tanh operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
    ^bb0(%x: tensor<32xf32>):
      %y = math.tanh %x : tensor<32xf32>
      rota.yield %y : tensor<32xf32>
    }
    func.func @f(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
      %y = rota.launch @tanh rows = 6 (%x) : (tensor<6x32xf32>) -> tensor<6x32xf32>
      return %y : tensor<6x32xf32>
    }
    ```
  }];
}

def EmitKernels : Pass<"emit-kernels", "::mlir::ModuleOp"> {
  let summary = "show the native kernels of a module";
  let description = [{
    Replaces the module's content by the native functions of all ops that have
    kernels: those whose `TaskForm` is `Kernels`. For people who want to read them: executables are made without
    this pass. `cpu-to-llvm` continues from here.

    Before:

    ```mlir
    rota.kernel @twice operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
    ^bb0(%x: tensor<32xf32>):
      %y = arith.addf %x, %x : tensor<32xf32>
      rota.yield %y : tensor<32xf32>
    }
    func.func @f(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
      %y = rota.launch @twice rows = 6 (%x) : (tensor<6x32xf32>) -> tensor<6x32xf32>
      return %y : tensor<6x32xf32>
    }
    ```

    After: a function of a pointer to pointers and a range of rows, with a loop over
    the rows around a load, an addition and a store of `vector<32xf32>`.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
  let options = [Option<"vectorBits", "vector-bits", "unsigned", "512",
                        "width of the target's vector registers">];
}

#endif // ROTA_LOWERING_KERNELS_PASSES
