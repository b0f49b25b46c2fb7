//===- Passes.td - GPU kernels to NVVM ---------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef ROTA_LOWERING_GPU_PASSES
#define ROTA_LOWERING_GPU_PASSES

include "mlir/Pass/PassBase.td"

def GpuMath : Pass<"gpu-math"> {
  let summary = "math functions as instructions of a GPU";
  let description = [{
    Rewrites math functions of f32 as what PTX has instructions for: `exp` as a
    power of two, `log` as a logarithm to the base 2, square roots and divisions
    that may be wrong in the last two bits. `tanh`, `erf` and their like become the
    polynomials that CPU code has. Nothing is left for a library of functions. A
    division by a number beyond 2^126 gives zero.

    Before:

    ```mlir
    func.func @f(%x: vector<8xf32>) -> vector<8xf32> {
      %y = math.exp %x : vector<8xf32>
      return %y : vector<8xf32>
    }
    ```

    After, `%y` is the intrinsic `llvm.exp2` of `%x` times log2(e).
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def PadRows : Pass<"pad-rows", "::mlir::ModuleOp"> {
  let summary = "rows of logits at aligned addresses";
  let description = [{
    Gives the logits of cross-entropies and their derivatives a row stride of a
    multiple of 64 elements where the rows have no multiple of 16 bytes, as those of
    a vocabulary of 50257. Products then read and write whole vectors, and kernels
    have single elements at the end of a row alone. Sizes stay those of the
    vocabulary.

    What elementwise kernels make of logits has the same stride, and so have parts
    of a batch or of the sequence of one, and what one half of a split backward
    saves for the other. All other ops need dense values. So all logits of a module
    stay dense where those of one cross-entropy leave their function otherwise, or
    where an op combines or sums them: equal rows have equal sums in every function.
    Logits of a function without a cross-entropy are dense.

    Before:

    ```mlir
    func.func @f(%x: tensor<2x16x8xf32>, %w: tensor<61x8xf32>, %targets: tensor<2x16xi32>) -> tensor<f32> {
      %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xf32>, tensor<61x8xf32>) -> tensor<2x16x61xf32>
      %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x61xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
      return %sum : tensor<f32>
    }
    ```

    After, `%logits` is a `tensor<2x16x61xf32, #rota.row_stride<64>>`.
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let statistics = [Statistic<"padded", "padded", "values with a row stride">];
}

def EmitGpuKernels : Pass<"emit-gpu-kernels", "::mlir::ModuleOp"> {
  let summary = "show the GPU kernels of a module";
  let description = [{
    Replaces the module's content by the GPU kernels of all ops that have kernels,
    in one `gpu.module`. For people who want to read them: executables are made
    without this pass. `gpu-to-nvvm` and `print-ptx` continue from here.

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

    After: a `gpu.func` of two pointers in which a thread loads, adds and stores
    `vector<4xf32>`.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PrintPtx : Pass<"print-ptx", "::mlir::ModuleOp"> {
  let summary = "print the PTX of the GPU kernels of a module";
  let description = [{
    Prints the PTX text of every `gpu.module` for a chip to the standard output.
    The module is not changed. For people who want to read it: executables are made
    without this pass.

    ```mlir
    gpu.module @kernels {
      gpu.func @nothing() kernel {
        gpu.return
      }
    }
    ```

    prints `.visible .entry nothing()`.
  }];
  let options = [Option<"chip", "chip", "std::string", "\"sm_90\"",
                        "a chip as ptxas names it: sm_80, sm_90 or sm_100">];
}

#endif // ROTA_LOWERING_GPU_PASSES
