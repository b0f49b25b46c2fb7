//===- Passes.td - Differentiation -------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The passes that turn a model as built into one that can be trained.
//===----------------------------------------------------------------------===//
#ifndef ROTA_PASSES_DIFFERENTIATE_PASSES
#define ROTA_PASSES_DIFFERENTIATE_PASSES

include "mlir/Pass/PassBase.td"

def FreezeParameters : Pass<"freeze-parameters", "::mlir::ModuleOp"> {
  let summary = "mark parameters that keep their values";
  let description = [{
    `rota.param` gets `frozen` where a pattern is a part of its name in
    checkpoints, with the number of the layer or with `{layer}` in its place. A
    number at the begin or end of a pattern is a whole one: `layers.1` means layer
    1 and not 10. Where patterns pick a parameter of some layers of a kind alone,
    the kind becomes two or more, `@kind` and `@kind_layerN`, where N is the first
    layer of the new kind; the stack's pattern names them. Kinds differ in their
    name and in what is frozen; parameters keep their names. A layer before which
    all is frozen is of a kind with `frozen_input`.

    Later phases make no gradient, no states and no update for what is frozen, and
    no cotangent of an activation that nothing that trains has influence on.

    Patterns are separated by commas. A pattern that is in no name is an error
    with the nearest names; so is a model without a parameter that is left to
    train. Comes before the layers are scheduled, as the table of chunks names the
    kinds.

    Before (`freeze=layers.0,table`):
    ```mlir
    rota.param @table : tensor<16x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0>
    rota.stack @layers layers = 4 pattern [@a] {
      rota.layer @a {
        rota.param @gain : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0>
        func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
          %g = rota.read @gain : tensor<8xf32>
          %y = arith.mulf %x, %g : tensor<8xf32>
          return %y : tensor<8xf32>
        }
      }
    }
    ```
    After:
    ```mlir
    rota.param @table : tensor<16x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> frozen
    rota.stack @layers layers = 4 pattern [@a, @a_layer1, @a_layer2, @a_layer2] {
      rota.layer @a frozen_input {
        rota.param @gain : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0> frozen
        func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
          %g = rota.read @gain : tensor<8xf32>
          %y = arith.mulf %x, %g : tensor<8xf32>
          return %y : tensor<8xf32>
        }
      }
      rota.layer @a_layer1 frozen_input {
        rota.param @gain : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0>
        func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
          %g = rota.read @gain : tensor<8xf32>
          %y = arith.mulf %x, %g : tensor<8xf32>
          return %y : tensor<8xf32>
        }
      }
      rota.layer @a_layer2 {
        rota.param @gain : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0>
        func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
          %g = rota.read @gain : tensor<8xf32>
          %y = arith.mulf %x, %g : tensor<8xf32>
          return %y : tensor<8xf32>
        }
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let options = [
    Option<"patterns", "freeze", "std::string", /*default=*/"\"\"",
           "PATTERN,... of the names of parameters; empty: nothing changes">
  ];
  let statistics = [
    Statistic<"copies", "copies", "Kinds of layer added">,
    Statistic<"frozen", "frozen", "Parameters marked, over the layer kinds">
  ];
}

def AssignRemat : Pass<"assign-remat", "::mlir::ModuleOp"> {
  let summary = "give stages and chunks remat policies of their own";
  let description = [{
    Before: a `pipe.program`, whose chunks say the stage of each layer. A kind of
    layer whose chunks have several policies becomes a kind for each, `@kind` with
    the first and `@kind_stageN` or `@kind_chunkN` for others, where N is the
    stage or chunk whose policy the first of them is. Chunks with one policy share
    their kinds. Unpipelined layers have the policy of the stages that no entry
    names (`@kind_unpipelined`), unless their chunk has its own. The attribute
    `rota.remat` of a kind says the policy; the stack's pattern and the chunks
    name the new kinds. Nothing else knows of it: kinds differ in their name,
    their residuals and what they recompute; parameters keep their names.

    `remat` is a list, separated by semicolons, of `STAGE:POLICY`,
    `chunkN:POLICY` with the chunk's number in the table of chunks, and at most
    one `POLICY` alone for the stages that none names; without it they have
    `none`. A chunk's own policy comes before that of its stage. Policies are
    those of `differentiate`. One policy for all stages is for that pass alone:
    nothing changes.

    Before (`remat=1:full`):
    ```mlir
    rota.stack @layers layers = 4 pattern [@a] {
      rota.layer @a {
        func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
          return %x : tensor<8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 2 repeats = 2 microbatches = 2 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@a 0]>,
        <rank 1 layers [@a 1]>,
        <rank 0 layers [@a 2]>,
        <rank 1 layers [@a 3] loss>
      ]
    }
    ```
    After:
    ```mlir
    rota.stack @layers layers = 4 pattern [@a, @a_stage1] {
      rota.layer @a {
        func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
          return %x : tensor<8xf32>
        }
      } {rota.remat = "none"}
      rota.layer @a_stage1 {
        func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
          return %x : tensor<8xf32>
        }
      } {rota.remat = "full"}
    }
    pipe.program stack @layers stages = 2 repeats = 2 microbatches = 2 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@a 0]>,
        <rank 1 layers [@a_stage1 1]>,
        <rank 0 layers [@a 2]>,
        <rank 1 layers [@a_stage1 3] loss>
      ]
    }
    ```
  }];
  let dependentDialects = ["::mlir::pipe::PipeDialect"];
  let options = [
    Option<"remat", "remat", "std::string", /*default=*/"\"none\"",
           "STAGE:POLICY;chunkN:POLICY;..., with POLICY alone for the other "
           "stages">
  ];
  let statistics = [Statistic<"copies", "copies", "Kinds of layer added">];
}

def Differentiate : Pass<"differentiate", "::mlir::ModuleOp"> {
  let summary = "add the backward functions of a model";
  let description = [{
    Reverse mode through `DifferentiableOpInterface`: a joint function, forward
    then one reverse walk, is cut into the functions of ir/rota/model/Roles.h. Each
    layer's `@forward` also returns residuals and `@backward` takes them;
    `@embed_backward` and `@loss_backward` hold their forward part. The cotangent
    of the loss's sum is 1, that of its weight zero, that of a term
    (`rota.loss_term`) its coefficient. With `split`, what the input's cotangent
    needs stands in `..._input`, the rest in `..._weight`. Where a loss takes a
    part of the sequence, its `..._weight` computes logits and their cotangent
    again, so that those of one part are in memory at a time. In a module with a `pipe.timeline`, backwards are split where it has I actions, and
    `split` is an error.

    Which values are residuals is `remat`'s decision, by the names that
    `rota.name` gives: `none` saves what the backward reads, `full` nothing,
    the policies between (Remat.cpp) the values that they list; a list
    `name=device,name=remat,name=offload` is a policy of one's own, and after a
    policy, `minimal,context=device`, changes it. A kind of layer with a policy of
    its own (`rota.remat`) goes by that. What is not saved is recomputed
    in the backward. `offload` keeps a value in the host's memory: these
    residuals come last and are marked `rota.offload`, at forward's result and at
    backward's argument; only what the policy keeps can be offloaded. The layer's
    input (`decoder_layer_input`) is always kept, on the device or offloaded; in
    the latter case backward's first argument is marked. Views (`rota.name`,
    `rota.reshape`), widenings (`rota.broadcast`, `arith.extf`), conditions
    (`arith.cmpf`), parameters, tables and constants are never saved but made
    again from their source.

    The attribute `rota.residual_names` of a layer lists the names of each
    residual.

    A parameter's gradient is accumulated once in a function: the contributions
    of its reads are summed in f32, the last use's first. A frozen parameter has
    no gradient, and what only its gradient needs is neither saved nor computed.

    A layer's `rota.auxiliary_loss` stays in `@forward`; the cotangent of its sum
    is `rota.auxiliary_cotangent`. `@loss_weight`, the part of `@loss` that makes
    the weight, is then there for the runtime to ask before the step; a weight
    that depends on the activation is an error.

    Before: a model as built whose functions are straight-line code. Does not
    simplify; run `canonicalize` and `cse` afterwards. A used op without a
    derivative is an error that names it. Remarks (category `differentiate`) say
    what is saved and what is recomputed.

    Before:
    ```mlir
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      %z = math.tanh %y : tensor<2x4x8xf32>
      return %z : tensor<2x4x8xf32>
    }
    ```
    After (`remat=none`; tanh's derivative reads its result %z):
    ```mlir
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      %z = math.tanh %y : tensor<2x4x8xf32>
      return %z, %z : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    }
    func.func @backward(%x: tensor<2x4x8xf32>, %z: tensor<2x4x8xf32>, %dz: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %one = arith.constant dense<1.0> : tensor<2x4x8xf32>
      %square = arith.mulf %z, %z : tensor<2x4x8xf32>
      %slope = arith.subf %one, %square : tensor<2x4x8xf32>
      %dy = arith.mulf %dz, %slope : tensor<2x4x8xf32>
      %dx = rota.einsum "bsn,kn->bsk" %dy, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      %dw = rota.einsum "bsn,bsk->kn" %dy, %x : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %dw : tensor<8x8xf32>
      return %dx : tensor<2x4x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let options = [
    Option<"remat", "remat", "std::string", /*default=*/"\"none\"",
           "What is recomputed: none, full, minimal, another policy of "
           "Remat.cpp, name=remat|device|offload,..., or a list for "
           "assign-remat, which comes first">,
    Option<"split", "split", "bool", /*default=*/"false",
           "Split backward into input and weight gradients, where no timeline "
           "says it">
  ];
  let statistics = [
    Statistic<"savedValues", "residuals", "Values saved from forward to backward">,
    Statistic<"savedBytes", "residual-bytes", "Bytes saved, over the layer kinds">,
    Statistic<"offloadedBytes", "offloaded-bytes",
              "Bytes of them that wait in the host's memory">,
    Statistic<"savedCotangents", "cotangent-residuals",
              "Values saved from input to weight gradients">,
    Statistic<"recomputedOps", "recomputed", "Ops of forward repeated in backward">
  ];
}

def VerifyDifferentiated : Pass<"verify-differentiated", "::mlir::ModuleOp"> {
  let summary = "check that a model is differentiated";
  let description = [{
    What is illegal from here on, an error each; the module is not changed:

    - V1: a model without `embed_backward`; a layer kind or loss that has neither
      a backward function nor both halves of a split one, or has both; parts of
      the model of which some are split and some are not
    - V2: signatures other than those of ir/rota/model/Roles.h
    - V3: a parameter that a forward part uses and whose gradient its backward
      does not accumulate exactly once, or at all if it is frozen; an accumulation
      anywhere else, an input half included
    - V4: a `rota.name` in a backward function: residuals are settled there
    - V5: a residual that forward's result and backward's argument do not agree to
      offload, or an offloaded one before one that is not
    - V6: a `rota.auxiliary_loss` or `rota.observe` outside `forward`, a name with two coefficients,
      or auxiliary losses without `loss_weight`

    Before, an error (V3, the gradient of %w goes nowhere):
    ```mlir
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %dx = rota.einsum "bn,kn->bk" %dy, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      return %dx : tensor<4x8xf32>
    }
    ```
    Legal, and the same after:
    ```mlir
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @backward(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %dx = rota.einsum "bn,kn->bk" %dy, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %dw = rota.einsum "bk,bn->kn" %x, %dy : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %dw : tensor<8x8xf32>
      return %dx : tensor<4x8xf32>
    }
    ```
  }];
}

def ExtractNamed : Pass<"extract-named", "::mlir::ModuleOp"> {
  let summary = "make a function that returns a named value of the loss";
  let description = [{
    Adds a function of the value's name that computes it as `@loss` does, from
    the activation and, where the value depends on them, the targets. For
    probes. The named value must be there, once; `erase-names` comes later.
    Nothing changes without a name.

    Before (`extract=logits`):
    ```mlir
    func.func @loss(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
      %z = math.tanh %x : tensor<2x4x8xf32>
      %logits = rota.name "logits" %z : tensor<2x4x8xf32>
      %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
      return %sum, %weight : tensor<f32>, tensor<f32>
    }
    ```
    After, in addition:
    ```mlir
    func.func @logits(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %z = math.tanh %x : tensor<2x4x8xf32>
      return %z : tensor<2x4x8xf32>
    }
    ```
  }];
  let options = [
    Option<"valueName", "extract", "std::string", /*default=*/"\"\"",
           "The value's name; empty: none">
  ];
}

def EraseNames : Pass<"erase-names"> {
  let summary = "erase the names of values";
  let description = [{
    Replaces each `rota.name` by its operand, once no policy and no probe asks
    for names any more.

    Before:
    ```mlir
    func.func @f(%p: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %q = rota.name "query_proj" %p : tensor<2x8xf32>
      %y = math.tanh %q : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%p: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = math.tanh %p : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
    ```
  }];
  let statistics = [Statistic<"erasedNames", "erased", "Names erased">];
}

#endif // ROTA_PASSES_DIFFERENTIATE_PASSES
