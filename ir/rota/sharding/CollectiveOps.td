//===- CollectiveOps.td - Shardings and communication ------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The ops that say where values live, and those that move them.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_COLLECTIVEOPS
#define ROTA_IR_ROTA_COLLECTIVEOPS

include "ir/rota/model/ModelOps.td"
include "ir/rota/sharding/Shardings.td"

def Rota_MeshOp : Rota_Op<"mesh", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "the device mesh that the module is for";
  let description = [{
    Ranks are numbered row-major over the axes data, stage, fsdp, expert,
    context, sequence, tensor.

    Life-span: made by `assign-shardings` or by hand; stays to the end.

    Constraints:
    - C1: a module has at most one

    ```mlir
    rota.mesh <data = 2, stage = 4, tensor = 2>
    ```
  }];
  let arguments = (ins Rota_MeshAttr:$mesh);
  let assemblyFormat = "$mesh attr-dict";
  let hasVerifier = 1;
}

def Rota_ConstrainOp : Rota_Op<"constrain", [Pure, SameOperandsAndResultType,
    ViewOpInterface,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<FactorRuleOpInterface>,
    DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "says how a value is divided";
  let description = [{
    The operand; it and its cotangent have this sharding.

    Life-span: made by model builders or by hand; gone after `insert-reshards`.

    Constraints:
    - C1: the sharding has an entry per dimension and fits the module's mesh:
      what stands in front of a part of an axis, and the part, divide the axis

    ```mlir
    func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = rota.constrain %x <[[data], []]> : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_Tensor:$value, Rota_ShardingAttr:$sharding);
  let results = (outs Rota_Tensor:$result);
  let assemblyFormat = "$value $sharding `:` type($value) attr-dict";
  let hasVerifier = 1;
}

def Rota_ReshardOp : Rota_Op<"reshard", [Pure, SameOperandsAndResultType]> {
  let summary = "changes how a value is divided";
  let description = [{
    The operand, which is divided as `from` says, divided as `to` says. `reason`
    is for people: why it must move.

    Life-span: made by `insert-reshards`; becomes collectives in `partition`.

    Constraints:
    - C1: both shardings have an entry per dimension and fit the module's mesh
    - C2: `to` is unreduced over no axis over which `from` is not

    ```mlir
    func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = rota.reshard %x from <[[data], []]> to <[[], [data]]> reason "test" : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_Tensor:$value, Rota_ShardingAttr:$from,
                       Rota_ShardingAttr:$to, StrAttr:$reason);
  let results = (outs Rota_Tensor:$result);
  let assemblyFormat = [{
    $value `from` $from `to` $to `reason` $reason `:` type($value) attr-dict
  }];
  let hasVerifier = 1;
}

/// Moves a value among the ranks that differ along `axes` only; the first of
/// them is the slowest in the group's order. `kind`: a CollectiveKind.
class Rota_CollectiveOp<string mnemonic, string kind, list<Trait> traits = []>
    : Rota_Op<mnemonic, !listconcat([Pure, CollectiveOpInterface,
        TaskOpInterface, DeclareOpInterfaceMethods<CostOpInterface>], traits)> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    CollectiveKind getCollectiveKind() { return CollectiveKind::}] # kind # [{; }
    TaskForm getTaskForm() { return TaskForm::Collective; }
  }];
}

def Rota_AllGatherOp : Rota_CollectiveOp<"all_gather", "AllGather"> {
  let summary = "puts the parts of a tensor together on every rank";
  let description = [{
    The parts of the group's ranks, one after the other along `dim`. Where the
    parts do not divide the whole dimension the last are short, see
    `#rota.sharding`.

    Life-span: made by `partition`; becomes two calls of the runtime: one starts it,
    one waits for it before the first use of its result.

    Constraints:
    - C1: `dim` is a dimension; the others keep their sizes
    - C2: the operand's size along `dim` is the ceiling of the result's over the
      ranks of the group, which a mesh in the module gives
    - C3: `axes` names parts of the mesh's axes, each at most once

    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
      %y = rota.all_gather %x dim = 1 axes [<tensor>] reason "test" : tensor<2x4xf32> -> tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_Tensor:$input, I64Attr:$dim, Rota_AxisRefs:$axes,
                       StrAttr:$reason);
  let results = (outs Rota_Tensor:$result);
  let assemblyFormat = [{
    $input `dim` `=` custom<Count>($dim) `axes` custom<Axes>($axes)
    `reason` $reason `:` type($input) `->` type($result) attr-dict
  }];
}

def Rota_ReduceScatterOp : Rota_CollectiveOp<"reduce_scatter", "ReduceScatter"> {
  let summary = "sums over ranks and leaves each its part";
  let description = [{
    The sum of the group's operands, in the group's order, cut along `dim`.

    Life-span: made by `partition`; becomes two calls of the runtime: one starts it,
    one waits for it before the first use of its result.

    Constraints:
    - C1: `dim` is a dimension; the others keep their sizes
    - C2: the result's size along `dim` is the ceiling of the operand's over the
      ranks of the group, which a mesh in the module gives
    - C3: `axes` names parts of the mesh's axes, each at most once

    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
      %y = rota.reduce_scatter %x dim = 1 axes [<tensor>] reason "test" : tensor<2x8xf32> -> tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    }
    ```
  }];
  let arguments = (ins Rota_FloatTensor:$input, I64Attr:$dim,
                       Rota_AxisRefs:$axes, StrAttr:$reason);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $input `dim` `=` custom<Count>($dim) `axes` custom<Axes>($axes)
    `reason` $reason `:` type($input) `->` type($result) attr-dict
  }];
}

def Rota_AllReduceOp : Rota_CollectiveOp<"all_reduce", "AllReduce", [SameOperandsAndResultType,
    DeclareOpInterfaceMethods<TaskOpInterface, ["getInPlacePairs"]>]> {
  let summary = "the sum or maximum over ranks";
  let description = [{
    Combines the group's operands element by element, in the group's order.

    Life-span: made by `partition`; becomes two calls of the runtime: one starts it,
    one waits for it before the first use of its result.

    Constraints:
    - C1: `axes` names parts of the mesh's axes, each at most once

    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = rota.all_reduce sum %x axes [<tensor>] reason "test" : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_ReduceKind:$kind, Rota_FloatTensor:$input,
                       Rota_AxisRefs:$axes, StrAttr:$reason);
  let results = (outs Rota_FloatTensor:$result);
  let assemblyFormat = [{
    $kind $input `axes` custom<Axes>($axes) `reason` $reason `:` type($input) attr-dict
  }];
}

def Rota_AllToAllOp : Rota_CollectiveOp<"all_to_all", "AllToAll"> {
  let summary = "moves the division from one dimension to another";
  let description = [{
    Gathers along `gather` while it cuts along `split`: each rank sends part j of
    its operand along `split` to rank j of the group, and puts the parts that it
    gets one after the other along `gather`.

    Life-span: made by `partition`; becomes two calls of the runtime: one starts it,
    one waits for it before the first use of its result.

    Constraints:
    - C1: `gather` and `split` are two dimensions; the others keep their sizes
    - C2: the group's ranks, which a mesh in the module gives, divide the
      operand's size along `split`; the result's along `gather` is the operand's
      times that number
    - C3: `axes` names parts of the mesh's axes, each at most once

    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<2x8xf32>) -> tensor<4x4xf32> {
      %y = rota.all_to_all %x gather = 0 split = 1 axes [<tensor>] reason "test" : tensor<2x8xf32> -> tensor<4x4xf32>
      return %y : tensor<4x4xf32>
    }
    ```
  }];
  let arguments = (ins Rota_Tensor:$input, I64Attr:$gather, I64Attr:$split,
                       Rota_AxisRefs:$axes, StrAttr:$reason);
  let results = (outs Rota_Tensor:$result);
  let assemblyFormat = [{
    $input `gather` `=` custom<Count>($gather) `split` `=` custom<Count>($split)
    `axes` custom<Axes>($axes) `reason` $reason
    `:` type($input) `->` type($result) attr-dict
  }];
}

def Rota_ShardSliceOp : Rota_CollectiveOp<"shard_slice", "Slice"> {
  let summary = "this rank's part of a tensor that all ranks have";
  let description = [{
    Part i along `dim`, where i is the rank's position in its group. Nothing
    travels.

    Life-span: made by `partition`; becomes two calls of the runtime: one starts it,
    one waits for it before the first use of its result.

    Constraints: those of `rota.reduce_scatter`.

    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
      %y = rota.shard_slice %x dim = 1 axes [<tensor>] reason "test" : tensor<2x8xf32> -> tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    }
    ```
  }];
  let arguments = (ins Rota_Tensor:$input, I64Attr:$dim, Rota_AxisRefs:$axes,
                       StrAttr:$reason);
  let results = (outs Rota_Tensor:$result);
  let assemblyFormat = [{
    $input `dim` `=` custom<Count>($dim) `axes` custom<Axes>($axes)
    `reason` $reason `:` type($input) `->` type($result) attr-dict
  }];
}

def Rota_PermuteOp : Rota_CollectiveOp<"permute", "Permute", [SameOperandsAndResultType]> {
  let summary = "hands tensors around";
  let description = [{
    Each rank of the group gives its operand to one other: the rank at position p
    counted with `axes` (the first slowest) to the rank at position p counted
    with `order`, the same axes in another order. With a `shift` it is position
    p + shift, and the last position is followed by the first. With `mirrored` it is
    position n - 1 - p of n, plus the shift.

    Life-span: made by `partition`; becomes two calls of the runtime: one starts it,
    one waits for it before the first use of its result.

    Constraints:
    - C1: `order` has the axes of `axes`
    - C2: `axes` names parts of the mesh's axes, each at most once
    - C3: the shift is below the number of the group's ranks, and not negative

    ```mlir
    rota.mesh <data = 2, tensor = 2>
    func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = rota.permute %x axes [<data>, <tensor>] order [<tensor>, <data>] reason "test" : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
    ```
  }];
  let arguments = (ins Rota_Tensor:$input, Rota_AxisRefs:$axes,
                       Rota_AxisRefs:$order, StrAttr:$reason,
                       DefaultValuedAttr<I64Attr, "0">:$shift, UnitAttr:$mirrored);
  let results = (outs Rota_Tensor:$result);
  let assemblyFormat = [{
    $input `axes` custom<Axes>($axes) `order` custom<Axes>($order)
    (`mirrored` $mirrored^)? (`shift` `=` $shift^)? `reason` $reason `:` type($input) attr-dict
  }];
}

def Rota_ShardOffsetOp : Rota_Op<"shard_offset", [Pure,
    DeclareOpInterfaceMethods<TaskOpInterface, ["getTaskForm"]>]> {
  let summary = "the first element of this rank's part";
  let description = [{
    The rank's position p along `axes` (the first slowest) times `factor`. With a
    `shift` it is position p + shift instead, and the last position is followed by the
    first. `start` is added at the end.

    Life-span: made by `partition`; becomes an address that the runtime fills at
    start.

    Constraints:
    - C1: `axes` names parts of the mesh's axes, each at most once
    - C2: the result is a scalar
    - C3: the shift is below the number of the group's ranks, and not negative

    ```mlir
    rota.mesh <tensor = 2>
    func.func @f() -> tensor<i32> {
      %o = rota.shard_offset axes [<tensor>] factor = 128 : tensor<i32>
      return %o : tensor<i32>
    }
    ```
  }];
  let arguments = (ins Rota_AxisRefs:$axes, I64Attr:$factor,
                       DefaultValuedAttr<I64Attr, "0">:$shift,
                       DefaultValuedAttr<I64Attr, "0">:$start);
  let results = (outs Rota_IntTensor:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{
    `axes` custom<Axes>($axes) (`shift` `=` $shift^)? `factor` `=` custom<Count>($factor)
    (`start` `=` $start^)? `:` type($result) attr-dict
  }];
}

#endif // ROTA_IR_ROTA_COLLECTIVEOPS
