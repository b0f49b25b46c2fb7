//===- VocabularyOps.td - Tokens and logits ----------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The ops between tokens and tensors: embedding, cross-entropy, and what they
// become where the vocabulary is divided over ranks. An `offset` says which entry
// of the vocabulary the first row of a table, or the first column of logits, is.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_VOCABULARYOPS
#define ROTA_IR_ROTA_VOCABULARYOPS

include "ir/rota/OpClasses.td"

def Rota_EmbeddingOp : Rota_DifferentiableOp<"embedding", [TaskOpInterface,
    DeclareOpInterfaceMethods<IndexOpInterface>,
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "rows of a table by token";
  let description = [{
    Element [b, s, :] is `table[tokens[b, s], :]`. A token that the table has no row
    for ends the run with an error. With an offset, row r of the table is entry
    `offset + r` of the vocabulary, and tokens whose rows the table lacks give
    zeros. A given size of the vocabulary is that without padding.

    Life-span: made by model builders or by hand; `partition` gives it an offset
    where it divides the vocabulary; becomes a kernel.

    Constraints:
    - C1: tokens are [batch, sequence], the table [vocabulary, embed], the result
      [batch, sequence, embed] in the table's element type
    - C2: an offset is a scalar
    - C3: a size of the vocabulary is positive, and stands with an offset

    ```mlir
    func.func @f(%tokens: tensor<2x16xi32>, %table: tensor<256x8xf32>) -> tensor<2x16x8xf32> {
      %x = rota.embedding %tokens, %table : (tensor<2x16xi32>, tensor<256x8xf32>) -> tensor<2x16x8xf32>
      return %x : tensor<2x16x8xf32>
    }
    func.func @part(%tokens: tensor<2x16xi32>, %table: tensor<128x8xf32>, %offset: tensor<i32>) -> tensor<2x16x8xf32> {
      %x = rota.embedding %tokens, %table offset %offset : (tensor<2x16xi32>, tensor<128x8xf32>, tensor<i32>) -> tensor<2x16x8xf32>
      return %x : tensor<2x16x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_IntTensor:$tokens, Rota_FloatTensor:$table,
                       Optional<Rota_IntTensor>:$offset,
                       OptionalAttr<I64Attr>:$vocabulary);
  let results = (outs Rota_FloatTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$tokens,
      "::mlir::Value":$table), [{
    build($_builder, $_state, result, tokens, table, ::mlir::Value(),
          ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = [{
    $tokens `,` $table (`offset` $offset^)? (`of` $vocabulary^)? `:`
    functional-type(operands, results) attr-dict
  }];
}

def Rota_EmbeddingGradOp : Rota_ComputeOp<"embedding_grad", [
    DeclareOpInterfaceMethods<TaskOpInterface, ["canAccumulate"]>,
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "derivative of embedding in the table";
  let description = [{
    Row t of the result is the sum of the cotangent's rows at which the token is
    t, in ascending order. With an offset, row t is that of token `offset + t`.
    Tokens that have no row add nothing.

    Life-span: made by `differentiate`; `partition` gives it an offset where it
    divides the vocabulary; becomes a kernel that adds into the gradient.

    Constraints:
    - C1: tokens are [batch, sequence], the cotangent [batch, sequence, embed], the
      result [vocabulary, embed], not bf16
    - C2: an offset is a scalar

    ```mlir
    func.func @f(%tokens: tensor<2x16xi32>, %dy: tensor<2x16x8xf32>) -> tensor<256x8xf32> {
      %dtable = rota.embedding_grad %tokens, %dy : (tensor<2x16xi32>, tensor<2x16x8xf32>) -> tensor<256x8xf32>
      return %dtable : tensor<256x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_IntTensor:$tokens, Rota_FloatTensor:$cotangent,
                       Optional<Rota_IntTensor>:$offset);
  let results = (outs Rota_F32Tensor:$result);
  let assemblyFormat = [{
    $tokens `,` $cotangent (`offset` $offset^)? `:` functional-type(operands, results) attr-dict
  }];
}

def Rota_CrossEntropyOp : Rota_DifferentiableOp<"cross_entropy", [TaskOpInterface,
    DeclareOpInterfaceMethods<IndexOpInterface, ["allowsNegativeIndices"]>,
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "softmax cross-entropy with integer targets";
  let description = [{
    The sum over rows of `logsumexp(logits) - logits[target]`, the number of rows,
    and each row's logsumexp. A row whose target is negative counts in neither and
    has the logsumexp 0; a target that has no column ends the run with an error.

    Life-span: made by model builders or by hand; `partition` makes it
    `rota.cross_entropy_shard` and `rota.cross_entropy_merge` where it divides the
    vocabulary; becomes a kernel.

    Constraints:
    - C1: logits are [batch, sequence, vocabulary], targets and logsumexp [batch,
      sequence], sum and weight scalars, not bf16

    ```mlir
    func.func @f(%logits: tensor<2x16x256xf32>, %targets: tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>) {
      %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x256xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
      return %sum, %weight : tensor<f32>, tensor<f32>
    }
    ```
  }];
  let arguments = (ins Rota_FloatTensor:$logits, Rota_IntTensor:$targets);
  let results = (outs Rota_F32Tensor:$sum, Rota_F32Tensor:$weight, Rota_F32Tensor:$logsumexp);
  let assemblyFormat = "$logits `,` $targets `:` functional-type(operands, results) attr-dict";
}

def Rota_CrossEntropyGradOp : Rota_ComputeOp<"cross_entropy_grad", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TaskOpInterface, ["getInPlacePairs"]>,
    DeclareOpInterfaceMethods<PartitionOpInterface>]> {
  let summary = "derivative of cross_entropy in the logits";
  let description = [{
    `cotangent * (softmax(logits) - onehot(target))`, zero in rows whose target is
    negative. With `rows`, the cotangent of each row's logsumexp, the other rows
    have `rows * softmax(logits)` more. Where the logits die here it overwrites
    them. With an offset, column c of the logits is entry `offset + c` of the
    vocabulary; rows whose target has no column have no one-hot term. Columns of no
    entry of a vocabulary of the given size are padding, and zero.

    Life-span: made by `differentiate`; `partition` gives it an offset where it
    divides the vocabulary; becomes a kernel.

    Constraints:
    - C1: operands agree as in `rota.cross_entropy`, the cotangent is a scalar, the
      result has the logits' type, the logsumexp's cotangent its shape
    - C2: an offset is a scalar
    - C3: a size of the vocabulary is positive, and stands with an offset

    ```mlir
    func.func @f(%dsum: tensor<f32>, %logits: tensor<2x16x256xf32>, %targets: tensor<2x16xi32>, %lse: tensor<2x16xf32>) -> tensor<2x16x256xf32> {
      %dlogits = rota.cross_entropy_grad %dsum, %logits, %targets, %lse : (tensor<f32>, tensor<2x16x256xf32>, tensor<2x16xi32>, tensor<2x16xf32>) -> tensor<2x16x256xf32>
      return %dlogits : tensor<2x16x256xf32>
    }
    ```
  }];
  let arguments = (ins Rota_F32Tensor:$cotangent, Rota_FloatTensor:$logits,
                       Rota_IntTensor:$targets, Rota_F32Tensor:$logsumexp,
                       Optional<Rota_IntTensor>:$offset,
                       OptionalAttr<I64Attr>:$vocabulary,
                       Optional<Rota_F32Tensor>:$rowCotangent);
  let results = (outs Rota_FloatTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$cotangent,
      "::mlir::Value":$logits, "::mlir::Value":$targets, "::mlir::Value":$logsumexp,
      "::mlir::Value":$rowCotangent), [{
    build($_builder, $_state, result, cotangent, logits, targets, logsumexp,
          ::mlir::Value(), ::mlir::IntegerAttr(), rowCotangent);
  }]>];
  let assemblyFormat = [{
    $cotangent `,` $logits `,` $targets `,` $logsumexp (`offset` $offset^)?
    (`of` $vocabulary^)? (`rows` $rowCotangent^)? `:`
    functional-type(operands, results) attr-dict
  }];
}

def Rota_CrossEntropyShardOp : Rota_ComputeOp<"cross_entropy_shard", [TaskOpInterface,
    DeclareOpInterfaceMethods<IndexOpInterface, ["allowsNegativeIndices"]>]> {
  let summary = "what one part of the vocabulary says of the cross-entropy";
  let description = [{
    Column c of the logits is entry `offset + c` of the vocabulary. Element
    [b, s, 0] is the logsumexp over these columns, [b, s, 1] the logit of the
    target where it is one of them, else 0. Columns of no entry of a vocabulary of
    the given size are padding and do not count; where all are, element 0 is the
    least number there is.

    Life-span: made by `partition` from `rota.cross_entropy`; becomes a kernel.

    Constraints:
    - C1: logits are [batch, sequence, columns], targets [batch, sequence], the
      result [batch, sequence, 2], not bf16
    - C2: the offset is a scalar
    - C3: a size of the vocabulary is positive

    ```mlir
    func.func @f(%logits: tensor<2x16x128xf32>, %targets: tensor<2x16xi32>, %offset: tensor<i32>) -> tensor<2x16x2xf32> {
      %parts = rota.cross_entropy_shard %logits, %targets offset %offset of 250 : (tensor<2x16x128xf32>, tensor<2x16xi32>, tensor<i32>) -> tensor<2x16x2xf32>
      return %parts : tensor<2x16x2xf32>
    }
    ```
  }];
  let arguments = (ins Rota_FloatTensor:$logits, Rota_IntTensor:$targets,
                       Rota_IntTensor:$offset,
                       OptionalAttr<I64Attr>:$vocabulary);
  let results = (outs Rota_F32Tensor:$parts);
  let assemblyFormat = [{
    $logits `,` $targets `offset` $offset (`of` $vocabulary^)? `:`
    functional-type(operands, results) attr-dict
  }];
}

def Rota_CrossEntropyMergeOp : Rota_ComputeOp<"cross_entropy_merge", [TaskOpInterface]> {
  let summary = "the cross-entropy out of the parts of a vocabulary";
  let description = [{
    The results of `rota.cross_entropy` from those of `rota.cross_entropy_shard`
    on the parts of a divided vocabulary, one after the other along the last
    dimension: columns 2i and 2i + 1 are part i's. They are merged in that order.

    Life-span: made by `partition` from `rota.cross_entropy`; becomes a kernel.

    Constraints:
    - C1: parts are [batch, sequence, 2 * number of parts], at least one, targets
      and logsumexp [batch, sequence], sum and weight scalars
    - C2: results have the element type of the parts

    ```mlir
    func.func @f(%parts: tensor<2x16x8xf32>, %targets: tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>) {
      %sum, %weight, %lse = rota.cross_entropy_merge %parts, %targets : (tensor<2x16x8xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
      return %sum, %weight : tensor<f32>, tensor<f32>
    }
    ```
  }];
  let arguments = (ins Rota_F32Tensor:$parts, Rota_IntTensor:$targets);
  let results = (outs Rota_F32Tensor:$sum, Rota_F32Tensor:$weight, Rota_F32Tensor:$logsumexp);
  let assemblyFormat = "$parts `,` $targets `:` functional-type(operands, results) attr-dict";
}

#endif // ROTA_IR_ROTA_VOCABULARYOPS
