//===- AttentionOps.td - Attention -------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Attention and its derivative. Both have the same form: scale, window, soft cap,
// direction, sinks and documents (AttentionForm.h).
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_ATTENTIONOPS
#define ROTA_IR_ROTA_ATTENTIONOPS

include "ir/rota/OpClasses.td"

defvar attentionForm = (ins Optional<Rota_F32Tensor>:$sinks,
                            Optional<Rota_IntTensor>:$documents,
                            Optional<Rota_IntTensor>:$position,
                            Optional<Rota_IntTensor>:$key_position, F64Attr:$scale,
                            OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$soft_cap,
                            UnitAttr:$bidirectional, UnitAttr:$ring, UnitAttr:$balanced,
                            OptionalAttr<I64Attr>:$behind);
defvar attentionFormText = [{
    (`sinks` $sinks^)? (`documents` $documents^)? (`position` $position^)? (`behind` `=` $behind^)? (`key_position` $key_position^)?
    `scale` `=` custom<Real>($scale) (`window` `=` $window^)? (`soft_cap` `=` custom<Real>($soft_cap)^)?
    (`bidirectional` $bidirectional^)? (`ring` $ring^)? (`balanced` $balanced^)? `:`
    functional-type(operands, results) attr-dict
}];
defvar attentionMaskMethod = [{
    /// The keys that each query sees, of a block that is seen.
    AttentionMask getMask() {
      auto query = ::llvm::cast<::mlir::RankedTensorType>(getQuery().getType());
      bool isWhole = getBidirectional() || getKeyPosition();
      return AttentionMask::of(query.getDimSize(1), getWindow(), isWhole,
                               getBehind().value_or(0));
    }
}];

def Rota_DocumentPositionsOp : Rota_ComputeOp<"document_positions", [
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>]> {
  let summary = "positions of the microbatch's tokens in their documents";
  let description = [{
    Element [b, s] is the number of tokens between the position s and the start of its
    document: 0 at the start of sequence b and after each token `end`, the last one of
    a document. The runtime makes it of the tokens that `embed` reads, for each
    microbatch, on the ranks of every stage.

    Life-span: made by model builders or by hand; becomes a block of data.

    Constraints:
    - C1: the result is [batch, sequence]
    - C2: `end` is 0 or more; it is one number in a model, and so is the type

    ```mlir
    func.func @f() -> tensor<2x16xi32> {
      %positions = rota.document_positions end = 2 : tensor<2x16xi32>
      return %positions : tensor<2x16xi32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$end);
  let results = (outs Rota_IntTensor:$result);
  let assemblyFormat = "`end` `=` $end `:` type($result) attr-dict";
}

def Rota_AttentionOp : Rota_DifferentiableOp<"attention", [TaskOpInterface,
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "grouped-query attention";
  let description = [{
    `softmax(score(scale * q k^T)) v` per head; head h uses key-value head
    h / (H / Hkv). Also returns the logarithm of each row's softmax denominator, for
    the derivative. The score matrix is never stored, and kernels do not visit blocks
    of keys that no query of a block sees.

    The position s attends to the positions

    | form | positions t |
    |---|---|
    | by default: causal | t <= s |
    | `window = W` | s - W < t <= s: W positions, its own among them |
    | `bidirectional` | all |
    | `bidirectional` and `window = W` | s - W < t < s + W |

    `soft_cap = c` makes scores `c tanh(scale * q k^T / c)` before the mask. `sinks`
    are one more score for each head (after cap and mask), which is in the denominator
    of every row of the head and has no value.

    `documents` are the positions [batch, sequence] of the queries in their documents,
    as `rota.document_positions` gives them: the query at position s sees no key before
    s - documents[s]. From a position to the next the number grows by 1 at most, so
    that blocks of keys before the document of a block's first query are not visited.
    Costs are those of all pairs.

    Sharding divides batch and heads, and sinks with the heads. With `ring` it may
    divide the sequence too: a rank then has a block of the queries, and `partition`
    makes an attention to each block of keys, which travel around the ring of ranks.
    With `balanced` too, each rank works on an early and a late half of a block, so
    that all have equal work.

    Attention to another block than the queries' own says so: `position` is the number
    of the queries' block, on ranks that have other blocks another one, and the keys
    are those of the block `behind` blocks before, of the same length. Where there is
    none they are from the end of the sequence: queries that are not `bidirectional`
    see none of them. With a `key_position` instead of `behind`, it is the number of
    the keys' block, which is another on other ranks too: queries see none of the keys
    of a block after their own, and all of any other block. A rank has such ops in
    pairs, of which one sees its keys, so each costs half. `previous` are output and
    logsumexp of attention to other keys, which then count too.

    Life-span: made by model builders or by hand; `ring` and `balanced` by
    `choose-context-exchange`; `position` and `previous` by `partition`; becomes a
    kernel.

    Constraints:
    - C1: q is [batch, sequence, H, D], k is [batch, sequence, Hkv, D], and v is
      [batch, sequence, Hkv, Dv], of one element type
    - C2: Hkv divides H
    - C3: the output is [batch, sequence, H, Dv], of q's element type or not bf16;
      logsumexp is [batch, H, sequence], not bf16
    - C4: a window is 1 or more
    - C5: a soft cap is finite and above 0
    - C6: sinks are [H] and have logsumexp's element type
    - C7: the position is a scalar, with `behind` of 1 or more or a scalar key
      position; queries of a ring, or with a position, that are `bidirectional` have
      no window
    - C8: the previous output is [batch, sequence, H, Dv], not bf16; its logsumexp has
      logsumexp's type
    - C9: a `balanced` op has a `ring`; it, and one with a key position, is causal and
      has no window
    - C10: documents are [batch, sequence] of causal attention without a key position
      and not `balanced`

    ```mlir
    func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>) -> tensor<2x16x4x8xf32> {
      %o, %lse = rota.attention %q, %k, %v scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
      return %o : tensor<2x16x4x8xf32>
    }
    func.func @form(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x6xf32>, %sinks: tensor<4xf32>) -> tensor<2x16x4x6xf32> {
      %o, %lse = rota.attention %q, %k, %v sinks %sinks scale = 0.35 window = 5 soft_cap = 50.0 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x6xf32>, tensor<4xf32>) -> (tensor<2x16x4x6xf32>, tensor<2x4x16xf32>)
      return %o : tensor<2x16x4x6xf32>
    }
    func.func @packed(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>) -> tensor<2x16x4x8xf32> {
      %documents = rota.document_positions end = 2 : tensor<2x16xi32>
      %o, %lse = rota.attention %q, %k, %v documents %documents scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16xi32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
      return %o : tensor<2x16x4x8xf32>
    }
    func.func @block(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>, %position: tensor<i32>, %before: tensor<2x16x4x8xf32>, %line: tensor<2x4x16xf32>) -> tensor<2x16x4x8xf32> {
      %o, %lse = rota.attention %q, %k, %v previous %before, %line position %position behind = 1 scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<i32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
      return %o : tensor<2x16x4x8xf32>
    }
    func.func @half(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>, %position: tensor<i32>, %key: tensor<i32>, %before: tensor<2x16x4x8xf32>, %line: tensor<2x4x16xf32>) -> tensor<2x16x4x8xf32> {
      %o, %lse = rota.attention %q, %k, %v previous %before, %line position %position key_position %key scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<i32>, tensor<i32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
      return %o : tensor<2x16x4x8xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$query, Rota_FloatTensor:$key,
                            Rota_FloatTensor:$value,
                            Optional<Rota_F32Tensor>:$previous,
                            Optional<Rota_F32Tensor>:$previous_logsumexp), attentionForm);
  let results = (outs Rota_FloatTensor:$output, Rota_F32Tensor:$logsumexp);
  /// Results follow from the operands; logsumexp is f32, or f64 as q.
  let builders = [OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$key,
      "::mlir::Value":$value, "const ::mlir::rota::AttentionForm &":$form)>];
  let assemblyFormat = !strconcat("$query `,` $key `,` $value ",
      "(`previous` $previous^ `,` $previous_logsumexp)? ", attentionFormText);
  let extraClassDeclaration = attentionMaskMethod;
}

def Rota_AttentionGradOp : Rota_ComputeOp<"attention_grad", [TaskOpInterface,
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "derivative of attention";
  let description = [{
    Cotangents of query, key and value, and of sinks where there are any;
    probabilities are recomputed block by block from `logsumexp` (Dao et al. 2022,
    algorithm 4). With scores `z = c tanh(x / c)` the cotangent of x is that of z times
    `1 - (z / c)^2`. A sink's cotangent is the sum over batch and sequence of
    `-exp(sink - logsumexp) * dot(cotangent, output)`. Output and logsumexp are those of
    attention to all blocks of keys where there is a position.

    Life-span: made by `differentiate`; becomes kernels.

    Constraints:
    - C1: operands and form agree as in `rota.attention`; results have the types of
      query, key and value, but the query's cotangent may be f32
    - C2: there is a cotangent of sinks, of their type, where there are sinks

    ```mlir
    func.func @f(%do: tensor<2x16x4x8xf32>, %q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>, %o: tensor<2x16x4x8xf32>, %lse: tensor<2x4x16xf32>) -> tensor<2x16x4x8xf32> {
      %dq, %dk, %dv = rota.attention_grad %do, %q, %k, %v, %o, %lse scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)
      return %dq : tensor<2x16x4x8xf32>
    }
    func.func @sinks(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %lse: tensor<2x4x16xf32>, %sinks: tensor<4xf32>) -> tensor<4xf32> {
      %dq, %dk, %dv, %dsinks = rota.attention_grad %q, %q, %k, %k, %q, %lse sinks %sinks scale = 0.35 window = 5 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<4xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<4xf32>)
      return %dsinks : tensor<4xf32>
    }
    ```
  }];
  let arguments = !con((ins Rota_FloatTensor:$cotangent, Rota_FloatTensor:$query,
                            Rota_FloatTensor:$key, Rota_FloatTensor:$value,
                            Rota_FloatTensor:$output, Rota_F32Tensor:$logsumexp),
                       attentionForm);
  let results = (outs Rota_FloatTensor:$query_cotangent, Rota_FloatTensor:$key_cotangent,
                      Rota_FloatTensor:$value_cotangent,
                      Optional<Rota_F32Tensor>:$sinks_cotangent);
  let assemblyFormat = !strconcat(
      "$cotangent `,` $query `,` $key `,` $value `,` $output `,` $logsumexp ",
      attentionFormText);
  let extraClassDeclaration = attentionMaskMethod;
}

#endif // ROTA_IR_ROTA_ATTENTIONOPS
