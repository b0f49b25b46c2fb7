//===- Passes.td - Updates of parameters -------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The pass that makes the optimizer's functions.
//===----------------------------------------------------------------------===//
#ifndef ROTA_PASSES_OPTIMIZER_PASSES
#define ROTA_PASSES_OPTIMIZER_PASSES

include "mlir/Pass/PassBase.td"

def BuildUpdates : Pass<"build-updates", "::mlir::ModuleOp"> {
  let summary = "make the functions that update parameters";
  let description = [{
    Gives each `rota.param` without one an update function and a function of the
    squares of its gradient (ir/rota/model/Update.h). Parameters of one form have the
    same functions: one shape, one type in which functions read them, one
    optimizer sharding, both with decay (two or more dimensions, placeholders of
    the name not counted) or both without. Where the scalar `skip` is above 0, an
    update returns the parameter and the states that it was given. Writes the
    optimizer's options on the module.

    With `gradient-dtype=bf16`, parameters that are read in bf16 and all of whose
    gradients are made by matrix products, which add to the accumulator with one
    rounding, get `rota.gradient = bf16`, the type in which gradients are accumulated,
    summed over ranks and read by the update. Those of embeddings, norms and biases of
    experts, to which kernels add in many steps, and the counts that balance experts
    stay f32. An error: there is no such parameter.

    Borders have the optimizer's sharding; `propagate-shardings`,
    `insert-reshards` and `partition` make of the functions those of one rank.
    Where axes do not divide a dimension, tensors are as large as all parts
    together, padding included.

    Before: `assign-shardings`, where there is a mesh; a parameter that no
    function reads, or functions read in two types, is an error. Does not say
    when updates run: that is the step's end.

    Before (`optimizer=adamw`):
    ```mlir
    rota.param @gain : tensor<8xf32> axes ["embed"] init #rota.constant<value = 1.0>
    func.func @f() -> tensor<8xf32> {
      %w = rota.read @gain : tensor<8xf32>
      return %w : tensor<8xf32>
    }
    ```
    After: the parameter has `{rota.squares = @squares_0, rota.update = @update_0}`, and the module, among others,
    ```mlir
    func.func @squares_0(%gradient: tensor<8xf32>) -> tensor<f32> {
      %0 = arith.mulf %gradient, %gradient : tensor<8xf32>
      %1 = rota.reduce sum %0 dims [0] : tensor<8xf32> -> tensor<f32>
      return %1 : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let options = [
    Option<"optimizer", "optimizer", "std::string", /*default=*/"\"\"",
           "The optimizer's name; empty: no updates">,
    Option<"stateDtype", "state-dtype", "UpdateType", "UpdateType::F32",
           "The type of states; computed in f32",
           "::rota::valuesOf<UpdateType>()">,
    Option<"gradientDtype", "gradient-dtype", "UpdateType", "UpdateType::F32",
           "The type of accumulators of gradients that products of bf16 make; "
           "others are f32",
           "::rota::valuesOf<UpdateType>()">,
    Option<"nesterov", "nesterov", "bool", /*default=*/"false",
           "Nesterov's form of momentum">,
    Option<"muonDtype", "muon-dtype", "UpdateType", "UpdateType::F32",
           "The type of the operands of Muon's products",
           "::rota::valuesOf<UpdateType>()">,
    Option<"muonScale", "muon-scale", "MuonScale", "MuonScale::Original",
           "The factor of Muon's steps", "::rota::valuesOf<MuonScale>()">,
    Option<"muonPerHead", "muon-per-head", "bool", /*default=*/"false",
           "Muon takes a projection of attention as one matrix for each head">,
    Option<"groups", "groups", "std::string", /*default=*/"\"\"",
           "Factors of parameters with PATTERN in their name: "
           "PATTERN=decay:X,lr:X;...; the first match wins">,
    Option<"values", "values", "std::string", /*default=*/"\"\"",
           "Values of the optimizer's own options, which become the trainer's "
           "defaults: momentum=0.9,...">
  ];
  let statistics = [Statistic<"updates", "updates", "Update functions made">];
}

#endif // ROTA_PASSES_OPTIMIZER_PASSES
