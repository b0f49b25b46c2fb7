//===- ModelOps.td - The structure of a model --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Parameters, layers, the stack, and the ops through which functions use
// parameters.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_MODELOPS
#define ROTA_IR_ROTA_MODELOPS

include "ir/rota/OpClasses.td"

def Rota_JoinedAttr : Rota_Attr<"Joined", "joined"> {
  let summary = "a parameter's place in a tensor of files";
  let description = [{
    Files join several parameters in one tensor: they lie one after the other
    along one dimension, and agree in the others. The parameter has the elements
    from `begin` on of the `size` that the tensor has along `dimension`; `tensor`
    is its name as a parameter's would be:
    `#rota.joined<tensor = "c_attn.weight", dimension = 1, begin = 64, size = 192>`.
  }];
  let parameters = (ins StringRefParameter<"">:$tensor, "int64_t":$dimension,
                        "int64_t":$begin, "int64_t":$size);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Rota_ParamOp : Rota_Op<"param", [Symbol]> {
  let summary = "declares a parameter";
  let description = [{
    A tensor that training updates, with the logical name of each dimension and
    how its first value is made. Its master copy is f32. In a layer it stands for
    one tensor per layer of that kind. The name with those of the enclosing
    stack is the tensor's name in checkpoints: `model.layers` + layer number +
    `self_attn.q_proj.weight`. Words in braces stand, in order, for the leading
    dimensions: `experts.{expert}.up_proj.weight` of 8 experts is eight tensors
    in checkpoints. With `joined`, the parameter is a part of a tensor there; its
    initial values are those that the whole tensor would have in this place.
    A `frozen` parameter keeps its first value: it has no gradient, no states and
    no update.

    Life-span: made by model builders or by hand; stays to the end.

    Constraints:
    - C1: the type is a static f32 tensor
    - C2: `axes` names every dimension
    - C3: `init` is `#rota.normal`, `#rota.uniform` or `#rota.constant`
    - C4: it stands in a module or in a `rota.layer`
    - C5: a placement has a size and a division per dimension, which fit the
      module's mesh; the type is the whole tensor's or, once the module is
      partitioned, that of one rank's part as functions see it
    - C6: the storage is the compute sharding, and the optimizer's the storage,
      with axes appended on at most one dimension; both are reduced
    - C7: each `{` of the name, that of the joined tensor if there is one, begins
      a placeholder, `{word}`, and there are at most as many placeholders as
      dimensions
    - C8: `joined` names a dimension without a placeholder, along which the
      parameter lies inside the tensor

    ```mlir
    rota.param @tok_embeddings : tensor<256x64xf32> axes ["vocab", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<Rota_F32Tensor>:$type, StrArrayAttr:$axes,
                       AnyAttr:$init,
                       OptionalAttr<Rota_JoinedAttr>:$joined,
                       OptionalAttr<Rota_PlacementAttr>:$placement,
                       UnitAttr:$frozen);
  let assemblyFormat = [{
    $sym_name `:` $type `axes` $axes `init` $init (`joined` $joined^)?
    (`placement` $placement^)? (`frozen` $frozen^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    RankedTensorType getTensorType() {
      return llvm::cast<RankedTensorType>(getType());
    }
    /// The shape of the whole parameter, of which functions may see a part.
    ArrayRef<int64_t> getWholeShape();
    /// The name that it has, or that the tensor has which it is joined in.
    StringRef getFileName();
    /// Leading dimensions for which that name has placeholders.
    int64_t getNamedDimensions();
  }];
}

def Rota_LayerOp : Rota_Op<"layer", [Symbol, SymbolTable, NoTerminator,
    NoRegionArguments, SingleBlock, HasParent<"StackOp">,
    IsolatedFromAbove]> {
  let summary = "one kind of layer";
  let description = [{
    Parameters and functions of one kind of layer; stands once however many
    layers are of that kind. As built it holds `@forward` from an activation to
    an activation of the same type; `differentiate` gives `@forward` residuals
    and adds `@backward`, or `@backward_input` and `@backward_weight`.

    `frozen_input`: nothing that trains has influence on the activation that
    enters, so its cotangent is not computed: backward functions return zeros.

    Life-span: made by model builders or by hand; its functions become tasks.

    Constraints:
    - C1: it holds a function `@forward`
    - C2: the first argument and the first result of `@forward` have one type

    ```mlir
    rota.stack @layers layers = 4 pattern [@linear] {
      rota.layer @linear {
        rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.normal<mean = 0.0, deviation = 0.1>
        func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
          %w = rota.read @weight : tensor<8x8xf32>
          %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
          return %y : tensor<2x4x8xf32>
        }
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, UnitAttr:$frozen_input);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
      "$sym_name (`frozen_input` $frozen_input^)? $body attr-dict";
  let hasRegionVerifier = 1;
}

def Rota_StackOp : Rota_Op<"stack", [Symbol, SymbolTable, NoTerminator,
    NoRegionArguments, SingleBlock, HasParent<"::mlir::ModuleOp">,
    IsolatedFromAbove]> {
  let summary = "the stack of layers";
  let description = [{
    `layers` layers, one after the other; layer i is of kind
    `pattern[i mod size(pattern)]`. All kinds have one activation type.

    Life-span: made by model builders or by hand; stays to the end.

    Constraints:
    - C1: `layers` is at least 1
    - C2: the pattern is not empty, has at most one kind for each layer and names
      layers of this stack, every one
    - C3: all kinds have one activation type

    ```mlir
    rota.stack @layers layers = 4 pattern [@a, @b] {
      rota.layer @a {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
      rota.layer @b {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          %y = arith.addf %x, %x : tensor<2x8xf32>
          return %y : tensor<2x8xf32>
        }
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$layers,
                       TypedArrayAttrBase<FlatSymbolRefAttr, "layer kinds">:$pattern);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `layers` `=` custom<Count>($layers) `pattern` $pattern $body attr-dict
  }];
  let hasRegionVerifier = 1;
}

def Rota_ReadOp : Rota_Op<"read", [Pure,
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>,
    DeclareOpInterfaceMethods<FactorRuleOpInterface>,
    DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "a parameter's value in this step";
  let description = [{
    The value of the parameter of that name in the enclosing layer or, failing
    that, in the module; in a layer, that of the layer being run. A bf16 result
    is the parameter's bf16 copy.

    Life-span: made by model builders or by hand; becomes an address in a task.

    Constraints:
    - C1: the symbol names a parameter of the enclosing layer or module
    - C2: the shape is the parameter's
    - C3: a function in a layer reads its own layer's parameters only

    ```mlir
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @f() -> tensor<8x8xbf16> {
      %w = rota.read @weight : tensor<8x8xbf16>
      return %w : tensor<8x8xbf16>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$param);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = "$param `:` type($result) attr-dict";
  let hasVerifier = 1;
}

def Rota_ParameterGradients : Resource<"::mlir::rota::ParameterGradients">;

def Rota_AccumulateOp : Rota_Op<"accumulate",
    [DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>,
     MemoryEffects<[MemRead<Rota_ParameterGradients>, MemWrite<Rota_ParameterGradients>]>,
     DeclareOpInterfaceMethods<FactorRuleOpInterface>,
     DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "adds to a parameter's gradient";
  let description = [{
    Adds the value to the gradient of the parameter of that name, resolved as in
    `rota.read`. Each function of a model that uses a parameter has an
    accumulator of its own; they are summed in a fixed order before the update.
    Lowering folds it into the op that makes the value where that op can
    accumulate.

    Life-span: made by `differentiate`; becomes an address in a task.

    Constraints:
    - C1: the symbol names a parameter of the enclosing layer or module
    - C2: the shape is the parameter's and the element type is not bf16
    - C3: the parameter is not frozen

    ```mlir
    rota.param @gain : tensor<8xf32> axes ["embed"] init #rota.constant<value = 1.0>
    func.func @f(%gradient: tensor<8xf32>) {
      rota.accumulate @gain, %gradient : tensor<8xf32>
      return
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, Rota_F32Tensor:$value);
  let assemblyFormat = "$param `,` $value `:` type($value) attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The result that the value is, through views, of an op that can add it to
    /// the gradient; null where there is none.
    OpResult getAddingResult();
  }];
}

def Rota_AuxiliaryLosses : Resource<"::mlir::rota::AuxiliaryLosses">;

def Rota_AuxiliaryLossOp : Rota_Op<"auxiliary_loss",
    [DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>,
     MemoryEffects<[MemRead<Rota_AuxiliaryLosses>, MemWrite<Rota_AuxiliaryLosses>]>,
     DeclareOpInterfaceMethods<FactorRuleOpInterface>,
     DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "adds to a loss beside the main one";
  let description = [{
    Adds the sum to the loss term of that name. A step's loss is the main one,
    its sum over its weight, plus for each name `coefficient` times the sum of
    these sums over layers, microbatches and ranks, over the sum of these weights
    over layers and microbatches. `weight` is that of the whole microbatch: where
    ranks have parts of a microbatch, their sums are parts of its sum. Executions
    that do not happen (bubbles) count in neither.

    The division of all gradients by the main loss's weight comes after the last
    microbatch, so that the cotangent of the sum is `rota.auxiliary_cotangent`,
    which carries that weight.

    Life-span: made by model builders or by hand; becomes an address in a task.

    Constraints:
    - C1: the sum is a scalar
    - C2: the weight is positive, the coefficient finite
    - C3: it stands in a function of a `rota.layer`
    - C4: in a model, a name has one coefficient (`Model::auxiliaryLosses`)

    ```mlir
    rota.stack @layers layers = 4 pattern [@squares] {
      rota.layer @squares {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          %square = arith.mulf %x, %x : tensor<2x8xf32>
          %sum = rota.reduce sum %square dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
          rota.auxiliary_loss "activation" %sum weight = 16.0 coefficient = 0.01 : tensor<f32>
          return %x : tensor<2x8xf32>
        }
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Rota_F32Tensor:$sum, F64Attr:$weight,
                       F64Attr:$coefficient);
  let assemblyFormat = [{
    $name $sum `weight` `=` custom<Real>($weight) `coefficient` `=` custom<Real>($coefficient)
    `:` type($sum) attr-dict
  }];
  let hasVerifier = 1;
}

def Rota_AuxiliaryCotangentOp : Rota_Op<"auxiliary_cotangent", [Pure,
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>,
    DeclareOpInterfaceMethods<FactorRuleOpInterface>,
    DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "the cotangent of an auxiliary loss's sums in this step";
  let description = [{
    coefficient * W / w, where W is the weight of the main loss over all
    microbatches and ranks of the step, which `loss_weight` gives from the targets
    before the step's first forward, and w the weight of the auxiliary loss of
    that name over all layers and microbatches. The same on all ranks.

    Life-span: made by `differentiate` from `rota.auxiliary_loss`; becomes an
    address that the runtime fills at the start of a step.

    Constraints:
    - C1: the result is a scalar

    ```mlir
    func.func @f() -> tensor<f32> {
      %cotangent = rota.auxiliary_cotangent "activation" : tensor<f32>
      return %cotangent : tensor<f32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Rota_F32Tensor:$result);
  let assemblyFormat = "$name `:` type($result) attr-dict";
  let hasVerifier = 1;
}

def Rota_NameOp : Rota_Op<"name", [Pure, SameOperandsAndResultType,
    ViewOpInterface,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<FactorRuleOpInterface>,
    DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "names a value for rematerialization and probing";
  let description = [{
    The operand, under a name that a remat policy can decide on
    (`query_proj`, `mlpwi_0`, ...) or that a probe can ask for (`logits`).

    Life-span: made by model builders or by hand; erased once residuals and
    probes are settled.

    Constraints:
    - C1: the name is not empty

    ```mlir
    func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = rota.name "query_proj" %x : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Rota_FloatTensor:$value);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = "$name $value `:` type($value) attr-dict";
  let hasVerifier = 1;
}

#endif // ROTA_IR_ROTA_MODELOPS
