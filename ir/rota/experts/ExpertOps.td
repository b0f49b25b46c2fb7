//===- ExpertOps.td - Mixture of experts -------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The ops of a mixture of experts. A token has k choices, each an expert and a
// weight. Each choice has a place: a row of a buffer in which the rows of an
// expert lie one after the other, so that a product with all experts' weights
// is one op. The rows of a sequence, or of each of `parts` equal parts of it, stay
// together, so that dividing the batch, or those parts, changes no bit. The sizes
// below: B sequences, S tokens of a sequence, k choices of a token, X experts,
// Q = parts * B parts of sequences, R rows of one, E and F elements of a row. Ops on
// rows alone know no parts: a part is a sequence there, and B stands for Q.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_EXPERTOPS
#define ROTA_IR_ROTA_EXPERTOPS

include "ir/rota/OpClasses.td"

/// `blocks`: the rows of a part of a sequence are that many blocks of equal size,
/// and block p has the rows of experts [p * X / blocks, (p + 1) * X / blocks).
defvar expertBlocks = (ins DefaultValuedAttr<I64Attr, "1">:$blocks);
/// The part of the rows that choices are expected to take, for costs alone; not
/// given: all.
defvar expertFill = (ins OptionalAttr<F64Attr>:$fill);
/// `parts`: tokens [p * S / parts, (p + 1) * S / parts) of sequence b are part
/// p * B + b, whose choices have rows of their own.
defvar expertParts = (ins DefaultValuedAttr<I64Attr, "1">:$parts);
/// The rows of each expert, where all choices with a row lie in the first rows of
/// their expert's block: other rows are zero or not read (CountedRows.h).
defvar placedCounts = !con((ins Optional<Rota_IntTensor>:$counts), expertBlocks,
                           expertFill);

/// The trait of DividedByCost.h.
def Rota_DividedByCost : NativeOpTrait<"DividedByCost"> {
  let cppNamespace = "::mlir::rota";
}

def Rota_RouteOp : Rota_DifferentiableOp<"route", [TaskOpInterface]> {
  let summary = "chooses experts for each token";
  let description = [{
    The scores of a token are the softmax of its logits or, with `sigmoid`, the
    sigmoid of each. The k experts with the largest `score + bias` are its choices,
    best first; equal ones by ascending number. Weights are the scores, without the
    bias. With `normalize` they are divided by their sum over the choices (plus
    1e-20 with `sigmoid`). At the end they are multiplied by `scaling`.

    With `groups`, neighbouring experts are in groups of equal size, and only those of
    the best `top_groups` groups are chosen. A group has the largest `score + bias` of
    its experts (DeepSeek-V2) or, with `sigmoid`, the sum of its two largest
    (DeepSeek-V3).

    With `bias_rate`, no loss trains the bias: what `differentiate` adds to its
    gradient is the number of choices of each expert, and `build-updates` gives it an
    update of its own (passes/optimizer/README.md).

    Life-span: made by model builders or by hand; becomes a kernel.

    Constraints:
    - C1: logits are [B, S, X], weights and experts [B, S, k] with k from 1 to X;
      weights have the element type of the logits
    - C2: a bias is [X], of the same element type
    - C3: groups divide X and stand with top_groups; top_groups is from 1 to groups,
      and so many groups have k experts at least
    - C4: the scaling is finite and above 0
    - C5: a bias_rate is finite and above 0, and stands with a bias

    ```mlir
    func.func @f(%logits: tensor<2x16x8xf32>, %bias: tensor<8xf32>) -> (tensor<2x16x2xf32>, tensor<2x16x2xi32>) {
      %w, %e = rota.route %logits normalize scaling = 1.0 : (tensor<2x16x8xf32>) -> (tensor<2x16x2xf32>, tensor<2x16x2xi32>)
      %v, %g = rota.route %logits bias %bias sigmoid normalize groups = 4 top_groups = 2 scaling = 2.5 : (tensor<2x16x8xf32>, tensor<8xf32>) -> (tensor<2x16x2xf32>, tensor<2x16x2xi32>)
      return %w, %e : tensor<2x16x2xf32>, tensor<2x16x2xi32>
    }
    ```
  }];
  let arguments = (ins Rota_F32Tensor:$logits, Optional<Rota_F32Tensor>:$bias,
                       UnitAttr:$sigmoid, UnitAttr:$normalize,
                       OptionalAttr<I64Attr>:$groups, OptionalAttr<I64Attr>:$top_groups,
                       F64Attr:$scaling, OptionalAttr<F64Attr>:$bias_rate);
  let results = (outs Rota_F32Tensor:$weights, Rota_IntTensor:$experts);
  let assemblyFormat = [{
    $logits (`bias` $bias^)? (`sigmoid` $sigmoid^)? (`normalize` $normalize^)?
    (`groups` `=` $groups^)? (`top_groups` `=` $top_groups^)?
    `scaling` `=` custom<Real>($scaling) (`bias_rate` `=` custom<Real>($bias_rate)^)? `:`
    functional-type(operands, results) attr-dict
  }];
}

def Rota_RouteGradOp : Rota_ComputeOp<"route_grad", [TaskOpInterface]> {
  let summary = "derivative of route in the logits";
  let description = [{
    The choices are constant: a logit has a cotangent through the scores of the
    chosen experts alone.

    Life-span: made by `differentiate`; becomes a kernel.

    Constraints:
    - C1: logits are [B, S, X], cotangent and experts [B, S, k] with k from 1 to X;
      the result has the logits' type, the cotangent their element type
    - C2: the scaling is finite and above 0

    ```mlir
    func.func @f(%dw: tensor<2x16x2xf32>, %logits: tensor<2x16x8xf32>, %e: tensor<2x16x2xi32>) -> tensor<2x16x8xf32> {
      %dlogits = rota.route_grad %dw, %logits, %e normalize scaling = 1.0 : (tensor<2x16x2xf32>, tensor<2x16x8xf32>, tensor<2x16x2xi32>) -> tensor<2x16x8xf32>
      return %dlogits : tensor<2x16x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_F32Tensor:$cotangent, Rota_F32Tensor:$logits,
                       Rota_IntTensor:$experts, UnitAttr:$sigmoid,
                       UnitAttr:$normalize, F64Attr:$scaling);
  let results = (outs Rota_F32Tensor:$result);
  let assemblyFormat = [{
    $cotangent `,` $logits `,` $experts (`sigmoid` $sigmoid^)? (`normalize` $normalize^)?
    `scaling` `=` custom<Real>($scaling) `:` functional-type(operands, results) attr-dict
  }];
}

def Rota_ExpertPlacesOp : Rota_ComputeOp<"expert_places", [AttrSizedOperandSegments,
    TaskOpInterface, DeclareOpInterfaceMethods<PartitionOpInterface>,
    AllTypesMatch<["experts", "places"]>]> {
  let summary = "the rows of choices, by expert";
  let description = [{
    The choices of a part of a sequence, sorted by expert and then by token and choice,
    take the rows of their expert's block from its first on. Results are the row of each
    choice and the number of rows of each expert. With `capacity`, an expert takes that
    many choices of a sequence at most, in the order of tokens and choices; the others
    have the place -1 and are dropped.

    A choice that finds its block full is counted and gets the place `rows` or more,
    which is no row: the grouped product that uses the counts ends the run with an
    error.

    With `others`, the op has parts of longer sequences: part p is part `offset + p` of
    these, and the others are the choices of each expert in all of their parts. Those of
    earlier parts count in a capacity.

    Life-span: made by model builders or by hand; where it divides parts of sequences
    with a capacity, `partition` gathers the choices of all parts; becomes a kernel.

    Constraints:
    - C1: experts and places are [B, S, k], counts [Q, X]; parts are 1 or more, and
      divide S
    - C2: blocks are 1 or more, and divide rows and X
    - C3: a capacity is 1 or more
    - C4: others are [O, X], where Q divides O, and stand with a capacity and an offset,
      which is a scalar

    ```mlir
    func.func @f(%e: tensor<2x16x2xi32>, %all: tensor<8x8xi32>, %first: tensor<i32>) -> (tensor<2x16x2xi32>, tensor<2x8xi32>) {
      %places, %counts = rota.expert_places %e rows = 64 blocks = 2 : tensor<2x16x2xi32> -> tensor<2x8xi32>
      %some, %few = rota.expert_places %e rows = 16 capacity = 4 parts = 2 : tensor<2x16x2xi32> -> tensor<4x8xi32>
      %last, %rest = rota.expert_places %e others %all offset %first rows = 32 capacity = 4 : tensor<2x16x2xi32>, tensor<8x8xi32>, tensor<i32> -> tensor<2x8xi32>
      return %places, %counts : tensor<2x16x2xi32>, tensor<2x8xi32>
    }
    ```
  }];
  let arguments = !con((ins Rota_IntTensor:$experts, Optional<Rota_IntTensor>:$others,
                            Optional<Rota_IntTensor>:$offset, I64Attr:$rows),
                       expertBlocks, (ins OptionalAttr<I64Attr>:$capacity), expertParts);
  let results = (outs Rota_IntTensor:$places, Rota_IntTensor:$counts);
  let assemblyFormat = [{
    $experts (`others` $others^ `offset` $offset)? `rows` `=` custom<Count>($rows)
    (`blocks` `=` $blocks^)? (`capacity` `=` $capacity^)? (`parts` `=` $parts^)? `:`
    type($experts) (`,` type($others)^ `,` type($offset))? `->` type($counts) attr-dict
  }];
}

def Rota_DispatchOp : Rota_DifferentiableOp<"dispatch", [AttrSizedOperandSegments,
    Rota_DividedByCost, TaskOpInterface,
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "tokens to the rows of their choices";
  let description = [{
    Row `places[b, s, j]` of the part of token [b, s] is that token, times
    `weights[b, s, j]` where there are weights. Places are distinct in a part. Rows that
    are no choice's place are zero, and choices whose place is no row are left out. With
    an offset, row r is place `offset + r`. With counts, places are those of
    `rota.expert_places` with these counts and blocks: where rows move between ranks,
    only those with a choice travel.

    Life-span: made by model builders, by hand, or as a derivative; divided by cost,
    along sequences, parts of them and tokens, or along rows; `partition` gives it an
    offset and takes its counts where it divides the rows; becomes a kernel.

    Constraints:
    - C1: tokens are [B, S, E], places [B, S, k], the result [Q, R, E] in the tokens'
      element type; parts are 1 or more, and divide S
    - C2: weights are [B, S, k]
    - C3: an offset is a scalar
    - C4: counts are [Q, X]; blocks are 1 or more, and divide R and X
    - C5: a fill is above 0 and at most 1; blocks and fill stand with counts

    ```mlir
    func.func @f(%x: tensor<2x16x4xf32>, %places: tensor<2x16x2xi32>, %w: tensor<2x16x2xf32>, %counts: tensor<2x8xi32>) -> tensor<2x32x4xf32> {
      %rows = rota.dispatch %x, %places : (tensor<2x16x4xf32>, tensor<2x16x2xi32>) -> tensor<2x32x4xf32>
      %weighed = rota.dispatch %x, %places weights %w : (tensor<2x16x4xf32>, tensor<2x16x2xi32>, tensor<2x16x2xf32>) -> tensor<2x32x4xf32>
      %counted = rota.dispatch %x, %places counts %counts blocks = 2 fill = 0.5 : (tensor<2x16x4xf32>, tensor<2x16x2xi32>, tensor<2x8xi32>) -> tensor<2x64x4xf32>
      %halves = rota.dispatch %x, %places parts = 2 : (tensor<2x16x4xf32>, tensor<2x16x2xi32>) -> tensor<4x16x4xf32>
      return %rows : tensor<2x32x4xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$tokens, Rota_IntTensor:$places,
                            Optional<Rota_F32Tensor>:$weights,
                            Optional<Rota_IntTensor>:$offset), placedCounts,
                       expertParts);
  let results = (outs Rota_FloatTensor:$rows);
  let assemblyFormat = [{
    $tokens `,` $places (`weights` $weights^)? (`offset` $offset^)?
    (`counts` $counts^)? (`blocks` `=` $blocks^)? (`fill` `=` custom<Real>($fill)^)?
    (`parts` `=` $parts^)? `:` functional-type(operands, results) attr-dict
  }];
}

def Rota_CombineOp : Rota_DifferentiableOp<"combine", [AttrSizedOperandSegments,
    Rota_DividedByCost, TaskOpInterface,
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "the sum of the rows of each token's choices";
  let description = [{
    Token [b, s] is the sum over its choices j, in ascending order and in f32 at least,
    of row `places[b, s, j]` of its part, times `weights[b, s, j]` where there are
    weights. Places and counts are as in `rota.dispatch`, whose derivative this is.

    Life-span: made by model builders, by hand, or as a derivative; divided by cost, and
    changed by `partition`, as `rota.dispatch`; becomes a kernel.

    Constraints:
    - C1: rows are [Q, R, E], places [B, S, k], the result [B, S, E] in the rows'
      element type; parts are 1 or more, and divide S
    - C2: weights are [B, S, k]
    - C3: an offset is a scalar
    - C4: counts are [Q, X]; blocks are 1 or more, and divide R and X
    - C5: a fill is above 0 and at most 1; blocks and fill stand with counts

    ```mlir
    func.func @f(%rows: tensor<2x32x4xf32>, %places: tensor<2x16x2xi32>, %w: tensor<2x16x2xf32>, %counts: tensor<2x8xi32>) -> tensor<2x16x4xf32> {
      %x = rota.combine %rows, %places weights %w : (tensor<2x32x4xf32>, tensor<2x16x2xi32>, tensor<2x16x2xf32>) -> tensor<2x16x4xf32>
      %y = rota.combine %rows, %places counts %counts : (tensor<2x32x4xf32>, tensor<2x16x2xi32>, tensor<2x8xi32>) -> tensor<2x16x4xf32>
      return %x : tensor<2x16x4xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$rows, Rota_IntTensor:$places,
                            Optional<Rota_F32Tensor>:$weights,
                            Optional<Rota_IntTensor>:$offset), placedCounts,
                       expertParts);
  let results = (outs Rota_FloatTensor:$tokens);
  let assemblyFormat = [{
    $rows `,` $places (`weights` $weights^)? (`offset` $offset^)?
    (`counts` $counts^)? (`blocks` `=` $blocks^)? (`fill` `=` custom<Real>($fill)^)?
    (`parts` `=` $parts^)? `:` functional-type(operands, results) attr-dict
  }];
}

def Rota_ChoiceDotOp : Rota_ComputeOp<"choice_dot", [AttrSizedOperandSegments,
    TaskOpInterface, Rota_DividedByCost,
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "derivative of dispatch and combine in the weights";
  let description = [{
    Element [b, s, j] is the dot product of token [b, s] and row `places[b, s, j]` of
    its part; zero where the place has no row. Places and counts are as in
    `rota.dispatch`.

    Life-span: made by `differentiate`; divided by cost, and changed by `partition`, as
    `rota.dispatch`; becomes a kernel.

    Constraints:
    - C1: tokens are [B, S, E], rows [Q, R, E] of the same element type, places and
      result [B, S, k]; parts are 1 or more, and divide S
    - C2: an offset is a scalar
    - C3: counts are [Q, X]; blocks are 1 or more, and divide R and X
    - C4: a fill is above 0 and at most 1; blocks and fill stand with counts

    ```mlir
    func.func @f(%dy: tensor<2x16x4xf32>, %rows: tensor<2x32x4xf32>, %places: tensor<2x16x2xi32>) -> tensor<2x16x2xf32> {
      %dw = rota.choice_dot %dy, %rows, %places : (tensor<2x16x4xf32>, tensor<2x32x4xf32>, tensor<2x16x2xi32>) -> tensor<2x16x2xf32>
      return %dw : tensor<2x16x2xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$tokens, Rota_FloatTensor:$rows,
                            Rota_IntTensor:$places,
                            Optional<Rota_IntTensor>:$offset), placedCounts,
                       expertParts);
  let results = (outs Rota_F32Tensor:$result);
  let assemblyFormat = [{
    $tokens `,` $rows `,` $places (`offset` $offset^)?
    (`counts` $counts^)? (`blocks` `=` $blocks^)? (`fill` `=` custom<Real>($fill)^)?
    (`parts` `=` $parts^)? `:` functional-type(operands, results) attr-dict
  }];
}

def Rota_RowDotOp : Rota_ComputeOp<"row_dot", [AllTypesMatch<["lhs", "rhs"]>,
    DeclareOpInterfaceMethods<DecomposableOpInterface>]> {
  let summary = "the dot product of each row with one of another tensor";
  let description = [{
    Element [b, r, 0] is the sum of the products of the elements of `lhs[b, r, :]` and
    `rhs[b, r, :]`, in f32 at least.

    Life-span: made by `differentiate`; gone after `decompose`.

    Constraints:
    - C1: operands are [B, R, E], the result [B, R, 1], not bf16

    ```mlir
    func.func @f(%dy: tensor<2x32x4xf32>, %rows: tensor<2x32x4xf32>) -> tensor<2x32x1xf32> {
      %dw = rota.row_dot %dy, %rows : tensor<2x32x4xf32> -> tensor<2x32x1xf32>
      return %dw : tensor<2x32x1xf32>
    }
    ```
  }];
  let arguments = (ins Rota_FloatTensor:$lhs, Rota_FloatTensor:$rhs);
  let results = (outs Rota_F32Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `:` type($lhs) `->` type($result) attr-dict
  }];
}

def Rota_GroupedProductOp : Rota_DifferentiableOp<"grouped_product", [
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm", "canAccumulate"]>,
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "product of each row with its expert's weights";
  let description = [{
    Row r of the result is `rows[b, r, :] * weights[x]`, where x is the expert whose
    rows have r among them: in each block the first `counts[b, x]` rows are of its first
    expert, and so on. Counts of more rows than a block has end the run with an error.
    Rows after those of a block's last expert are zero. With `transposed`, weights are
    stored as [X, F, E]. With an offset, expert x is expert `offset + x` of the model:
    the error says these numbers. Accumulates in f32 at least; the result's element type
    may be wider than the operands'.

    Life-span: made by model builders, by hand, or as a derivative; `partition` divides
    the blocks with the experts and gives it an offset; becomes one call of the runtime,
    or kernels on GPUs.

    Constraints:
    - C1: rows are [B, R, E], weights [X, E, F] or, transposed, [X, F, E], counts
      [B, X], the result [B, R, F]
    - C2: blocks are 1 or more, and divide R and X
    - C3: rows and weights have one element type
    - C4: a fill is above 0 and at most 1
    - C5: an offset is a scalar

    ```mlir
    func.func @f(%rows: tensor<2x32x4xf32>, %w: tensor<8x4x6xf32>, %counts: tensor<2x8xi32>) -> tensor<2x32x6xf32> {
      %y = rota.grouped_product %rows, %w, %counts blocks = 2 : (tensor<2x32x4xf32>, tensor<8x4x6xf32>, tensor<2x8xi32>) -> tensor<2x32x6xf32>
      %x = rota.grouped_product %y, %w, %counts transposed blocks = 2 fill = 0.5 : (tensor<2x32x6xf32>, tensor<8x4x6xf32>, tensor<2x8xi32>) -> tensor<2x32x4xf32>
      return %y : tensor<2x32x6xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$rows, Rota_FloatTensor:$weights,
                            Rota_IntTensor:$counts, Optional<Rota_IntTensor>:$offset,
                            UnitAttr:$transposed), expertBlocks, expertFill);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $rows `,` $weights `,` $counts (`offset` $offset^)? (`transposed` $transposed^)?
    (`blocks` `=` $blocks^)? (`fill` `=` custom<Real>($fill)^)? `:` functional-type(operands, results) attr-dict
  }];
}

def Rota_GroupedProductGradOp : Rota_ComputeOp<"grouped_product_grad", [
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm", "canAccumulate"]>,
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "derivative of grouped_product in the weights";
  let description = [{
    Matrix x of the result is the sum over sequences b and rows r of expert x of the
    outer product of `lhs[b, r, :]` and `rhs[b, r, :]`, zero for an expert without
    rows. Rows of an expert are as in `rota.grouped_product`. Accumulates in f32 at
    least; the result's element type may be wider than the operands'.

    Life-span: made by `differentiate`; `partition` divides the blocks with the experts;
    becomes one call of the runtime, which may add into the gradient, or kernels on
    GPUs.

    Constraints:
    - C1: lhs is [B, R, E], rhs [B, R, F], counts [B, X], the result [X, E, F]
    - C2: blocks are 1 or more, and divide R and X
    - C3: lhs and rhs have one element type
    - C4: a fill is above 0 and at most 1

    ```mlir
    func.func @f(%rows: tensor<2x32x4xf32>, %dy: tensor<2x32x6xf32>, %counts: tensor<2x8xi32>) -> tensor<8x4x6xf32> {
      %dw = rota.grouped_product_grad %rows, %dy, %counts : (tensor<2x32x4xf32>, tensor<2x32x6xf32>, tensor<2x8xi32>) -> tensor<8x4x6xf32>
      return %dw : tensor<8x4x6xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$lhs, Rota_FloatTensor:$rhs,
                            Rota_IntTensor:$counts), expertBlocks, expertFill);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $counts (`blocks` `=` $blocks^)?
    (`fill` `=` custom<Real>($fill)^)? `:` functional-type(operands, results) attr-dict
  }];
}

def Rota_GroupedBiasOp : Rota_DifferentiableOp<"grouped_bias", [
    DeclareOpInterfaceMethods<TaskOpInterface, ["getInPlacePairs"]>,
    DeclareOpInterfaceMethods<PartitionOpInterface>, AllTypesMatch<["rows", "result"]>]> {
  let summary = "adds its expert's bias to each row";
  let description = [{
    Row r of expert x is `rows[b, r, :] + bias[x, :]`, added in f32 at least; rows of no
    expert stay. Rows of an expert are as in `rota.grouped_product`.

    Life-span: made by model builders or by hand; `partition` divides the blocks with
    the experts; becomes a kernel.

    Constraints:
    - C1: rows are [B, R, F], the bias is [X, F], counts [B, X]
    - C2: blocks are 1 or more, and divide R and X

    ```mlir
    func.func @f(%rows: tensor<2x32x4xf32>, %bias: tensor<8x4xf32>, %counts: tensor<2x8xi32>) -> tensor<2x32x4xf32> {
      %y = rota.grouped_bias %rows, %bias, %counts : tensor<2x32x4xf32>, tensor<8x4xf32>, tensor<2x8xi32>
      return %y : tensor<2x32x4xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$rows, Rota_FloatTensor:$bias,
                            Rota_IntTensor:$counts), expertBlocks);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $rows `,` $bias `,` $counts (`blocks` `=` $blocks^)? `:`
    type($rows) `,` type($bias) `,` type($counts) attr-dict
  }];
}

def Rota_GroupedBiasGradOp : Rota_ComputeOp<"grouped_bias_grad", [
    DeclareOpInterfaceMethods<TaskOpInterface, ["canAccumulate"]>,
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "derivative of grouped_bias in the bias";
  let description = [{
    Row x of the result is the sum of the cotangent's rows of expert x, in ascending
    order. Rows of an expert are as in `rota.grouped_product`.

    Life-span: made by `differentiate`; `partition` divides the blocks with the experts;
    becomes a kernel that adds into the gradient.

    Constraints:
    - C1: the cotangent is [B, R, F], counts [B, X], the result [X, F], not bf16
    - C2: blocks are 1 or more, and divide R and X

    ```mlir
    func.func @f(%dy: tensor<2x32x4xf32>, %counts: tensor<2x8xi32>) -> tensor<8x4xf32> {
      %db = rota.grouped_bias_grad %dy, %counts : (tensor<2x32x4xf32>, tensor<2x8xi32>) -> tensor<8x4xf32>
      return %db : tensor<8x4xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$cotangent, Rota_IntTensor:$counts),
                       expertBlocks);
  let results = (outs Rota_F32Tensor:$result);
  let assemblyFormat = [{
    $cotangent `,` $counts (`blocks` `=` $blocks^)? `:`
    functional-type(operands, results) attr-dict
  }];
}

def Rota_ReshardRowsOp : Rota_Op<"reshard_rows", [Pure,
    AllTypesMatch<["value", "result"]>, AllTypesMatch<["sent", "received"]>]> {
  let summary = "changes how counted rows are divided";
  let description = [{
    `rota.reshard` of rows of experts, of which only those in front of the counts
    matter: the others of the result are the operand's or zero. `sent` are the counts
    divided as the operand's rows are, `received` as the result's.

    Life-span: made by `insert-reshards`; becomes collectives in `partition`, an
    all-to-all among them a `rota.ragged_all_to_all`.

    Constraints:
    - C1: the value is [B, R, E], counts are [B, X]
    - C2: blocks are 1 or more, and divide R and X
    - C3: a fill is above 0 and at most 1
    - C4: both shardings have an entry per dimension and fit the module's mesh; `to` is
      unreduced over no axis over which `from` is not

    ```mlir
    rota.mesh <expert = 2>
    func.func @f(%rows: tensor<2x32x4xf32>, %sent: tensor<2x8xi32>, %received: tensor<2x8xi32>) -> tensor<2x32x4xf32> {
      %y = rota.reshard_rows %rows sent %sent received %received blocks = 2 fill = 0.25 from <[[expert], [], []]> to <[[], [expert], []]> reason "test" : tensor<2x32x4xf32>, tensor<2x8xi32>
      return %y : tensor<2x32x4xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$value, Rota_IntTensor:$sent,
                            Rota_IntTensor:$received), expertBlocks, expertFill,
                       (ins Rota_ShardingAttr:$from, Rota_ShardingAttr:$to,
                            StrAttr:$reason));
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $value `sent` $sent `received` $received (`blocks` `=` $blocks^)?
    (`fill` `=` custom<Real>($fill)^)? `from` $from `to` $to `reason` $reason `:`
    type($value) `,` type($sent) attr-dict
  }];
  let hasVerifier = 1;
}

def Rota_RaggedAllToAllOp : Rota_Op<"ragged_all_to_all", [Pure,
    CollectiveOpInterface,
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>,
    DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "an all-to-all of rows that counts say are filled";
  let description = [{
    Moves the division of rows [B, R, E] from one of their first two dimensions to the
    other, as `rota.all_to_all` does: with `gather = 0` each rank sends the rows of
    each other rank's blocks, and puts the sequences that it gets one after the other;
    with `gather = 1` back. A rank has `blocks` blocks of equal size where rows are
    divided. Of each block only the first rows travel, as many as the sum of its
    experts' counts, at most all; the others of the result are zero. Both sides know
    the counts: `sent` are those of the operand's rows, `received` of the result's. A
    block's counts are the same on both sides.

    Life-span: made by `partition`; becomes a call of the runtime.

    Constraints:
    - C1: the operand is [B, R, E]; `gather` is 0 or 1
    - C2: the group's ranks, which a mesh in the module gives, divide what is cut: R
      with `gather = 0`, B with `gather = 1`; the result's size along `gather` is the
      operand's times that number
    - C3: `sent` are [B, X] of the operand's sequences and blocks, `received` of the
      result's; where rows are divided, blocks are 1 or more, and divide rows and
      experts
    - C4: a fill is above 0 and at most 1
    - C5: `axes` names parts of the mesh's axes, each at most once

    ```mlir
    rota.mesh <expert = 2>
    func.func @f(%x: tensor<1x32x4xf32>, %sent: tensor<1x8xi32>, %received: tensor<2x4xi32>) -> tensor<2x16x4xf32> {
      %y = rota.ragged_all_to_all %x sent %sent received %received fill = 0.25 gather = 0 axes [<expert>] reason "test" : (tensor<1x32x4xf32>, tensor<1x8xi32>, tensor<2x4xi32>) -> tensor<2x16x4xf32>
      return %y : tensor<2x16x4xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$input, Rota_IntTensor:$sent,
                            Rota_IntTensor:$received), expertBlocks, expertFill,
                       (ins I64Attr:$gather, Rota_AxisRefs:$axes, StrAttr:$reason));
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $input `sent` $sent `received` $received (`blocks` `=` $blocks^)?
    (`fill` `=` custom<Real>($fill)^)? `gather` `=` custom<Count>($gather)
    `axes` custom<Axes>($axes) `reason` $reason `:`
    functional-type(operands, results) attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    CollectiveKind getCollectiveKind() { return CollectiveKind::AllToAll; }
    double getExpectedFill();
  }];
}

def Rota_Observations : Resource<"::mlir::rota::Observations">;

def Rota_ObserveOp : Rota_Op<"observe",
    [DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>,
     MemoryEffects<[MemRead<Rota_Observations>, MemWrite<Rota_Observations>]>,
     DeclareOpInterfaceMethods<FactorRuleOpInterface>,
     DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "reports counts of a layer's forward";
  let description = [{
    Adds the rows of the counts, one of each of `parts` parts of a sequence, to the
    counts of that name and of this layer in the step, over microbatches and ranks. The
    trainer reports their largest over their mean; no value but `rota.observed_mean`
    depends on them. With `each`, the counts of a part add up to that number unless
    something was dropped, which is reported too. Executions that are no training
    (validations) do not count, and neither does what a backward computes again.

    Life-span: made by model builders or by hand; becomes an address in a task.

    Constraints:
    - C1: counts are [Q, X]; a rank has some of the Q rows, of equal number
    - C2: `each` and `parts` are 1 or more
    - C3: it stands in a function of a `rota.layer`

    ```mlir
    rota.stack @layers layers = 4 pattern [@counts] {
      rota.layer @counts {
        func.func @forward(%x: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
          %w, %e = rota.route %x scaling = 1.0 : (tensor<2x16x8xf32>) -> (tensor<2x16x2xf32>, tensor<2x16x2xi32>)
          %places, %counts = rota.expert_places %e rows = 32 capacity = 4 : tensor<2x16x2xi32> -> tensor<2x8xi32>
          rota.observe "expert_load" %counts each = 32 : tensor<2x8xi32>
          return %x : tensor<2x16x8xf32>
        }
      }
    }
    ```
  }];
  let arguments = !con((ins StrAttr:$name, Rota_IntTensor:$counts,
                            OptionalAttr<I64Attr>:$each), expertParts);
  let assemblyFormat = [{
    $name $counts (`each` `=` $each^)? (`parts` `=` $parts^)? `:` type($counts) attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether an op of the layer reads the mean of these counts.
    bool isAveraged();
  }];
}

def Rota_ObservedMeanOp : Rota_Op<"observed_mean", [Pure,
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>,
    DeclareOpInterfaceMethods<FactorRuleOpInterface>,
    DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "mean of an observation over a step's microbatches";
  let description = [{
    The counts that `rota.observe` of that name adds up in this layer in the step,
    over the number of the step's microbatches, in all accumulation steps. The same on all
    ranks. The sums are known before the step's first forward: the runtime runs all
    forwards of the step once before it for them, and of a validation those of each
    run of the timeline. A constant for derivatives.

    Life-span: made by model builders or by hand; becomes an address that the runtime
    fills before a step.

    Constraints:
    - C1: the result is [X]
    - C2: it stands in a function of a `rota.layer`
    - C3: forward of that layer observes counts [B, X] of that name (checked when the
      layer becomes tasks)

    ```mlir
    rota.stack @layers layers = 4 pattern [@balanced] {
      rota.layer @balanced {
        func.func @forward(%x: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
          %w, %e = rota.route %x scaling = 1.0 : (tensor<2x16x8xf32>) -> (tensor<2x16x2xf32>, tensor<2x16x2xi32>)
          %places, %counts = rota.expert_places %e rows = 32 : tensor<2x16x2xi32> -> tensor<2x8xi32>
          rota.observe "expert_load" %counts : tensor<2x8xi32>
          %load = rota.observed_mean "expert_load" : tensor<8xf32>
          %scores = rota.reduce sum %x dims [0, 1] : tensor<2x16x8xf32> -> tensor<8xf32>
          %products = arith.mulf %load, %scores : tensor<8xf32>
          %sum = rota.reduce sum %products dims [0] : tensor<8xf32> -> tensor<f32>
          rota.auxiliary_loss "load_balance" %sum weight = 128.0 coefficient = 0.01 : tensor<f32>
          return %x : tensor<2x16x8xf32>
        }
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Rota_F32Tensor:$result);
  let assemblyFormat = "$name `:` type($result) attr-dict";
  let hasVerifier = 1;
}

#endif // ROTA_IR_ROTA_EXPERTOPS
