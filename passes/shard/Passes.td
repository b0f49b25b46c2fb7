//===- Passes.td - Shardings and partitioning --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The passes that say where each tensor lives and make the ranks' local
// functions, with the collectives between them.
//===----------------------------------------------------------------------===//
#ifndef ROTA_PASSES_SHARD_PASSES
#define ROTA_PASSES_SHARD_PASSES

include "mlir/Pass/PassBase.td"

def AssignShardings : Pass<"assign-shardings", "::mlir::ModuleOp"> {
  let summary = "assign placements and shardings of activations";
  let description = [{
    Makes the `rota.mesh` of the option, gives each `rota.param` a placement and
    the activations at functions' borders a `rota.sharding`, from logical axis
    rules. A placement or sharding that is there already stays.

    A rule is `name=axis+axis` (the first axis major), or `name=` for a dimension
    that stays whole. Rules stand in order, the user's before the defaults, and
    the first that matches counts:

    | name | applies to | default |
    |---|---|---|
    | `vocab`, `positions`, `heads`, `kv_heads`, `mlp` | compute sharding of the dimension | sequence+tensor |
    | `joined` | the same | tensor |
    | `experts` | the same | expert |
    | any other logical axis | the same | whole |
    | `storage/embed`, `storage/norm`, `storage/in` | storage: of the rules, the first that names one of the tensor's dimensions; of those, the first | fsdp |
    | `storage/choice` | storage of what only choices depend on: it has no gradient to be reduced | none |
    | no `storage/` rule matches | storage: the largest dimension, the first of equal ones | fsdp |
    | `activation/batch` | first dimension of activations and data | data+fsdp+expert |
    | `activation/length` | second dimension of activations | context+sequence |
    | `activation/embed` | third | whole |
    | `gather/length` | axes over which `explicit` mode may gather the length of activations where an op needs the whole, and cut what is whole (`insert-reshards`) | context+sequence |
    | `move/experts` | axes over which `explicit` mode may move values of layers with experts, from a division of tokens to one of experts and back (`insert-reshards`) | expert |

    Storage divides the compute sharding further, the optimizer's sharding that
    of storage: with `shard-optimizer` (ZeRO-1) over the axes along which what is
    stored is replicated (data, context, ..., and tensor and sequence for norms),
    along one dimension: the first of those that axes divide into the most parts,
    evenly. Where no dimension has room for all of these axes, some stay replicas. A
    dimension whose uses need whole units, such as attention its heads, is divided
    into at most that many parts: with two key-value heads and `tensor=4`,
    `kv_heads` is divided over `tensor:(1)2`. A single unit is divided inside,
    evenly: one key-value head of 256 elements gives parts of 64, whose products
    are gathered before attention. `joined`, the input of a product with several
    activations side by side, is divided over `tensor` alone: along `sequence`
    such a product has its part of the tokens. With `mode=explicit` neither is
    divided: activations would have to move.

    Where axes do not divide a parameter's dimension the last parts are padded
    with zeros, if all its uses keep zeros and count none: products, gates,
    entries of a vocabulary.

    An error: a rule with an unknown axis, or with a name that neither a
    parameter nor a default rule has, an axis twice in a tensor, a compute
    sharding that does not divide a size where padding would be computed with,
    an activation sharding that does not, a storage sharding whose uneven parts
    would straddle those of the compute sharding. Remarks (category `shard`):
    padded parts, fewer parts than ranks, parts of units, storage or optimizer state
    that stays as it is.

    Before (`mesh=data=2,tensor=2`):
    ```mlir
    rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0>
    func.func @embed(%x: tensor<4x2x8xf32>) -> tensor<4x2x8xf32> {
      return %x : tensor<4x2x8xf32>
    }
    ```
    After:
    ```mlir
    rota.mesh <data = 2, tensor = 2>
    rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [16, 8] compute <[[tensor], []]> storage <[[tensor], []]> optimizer <[[tensor], []]>>
    func.func @embed(%x: tensor<4x2x8xf32> {rota.sharding = #rota.sharding<[[data], [?], []]>}) -> (tensor<4x2x8xf32> {rota.sharding = #rota.sharding<[[data], [], []]>}) {
      return %x : tensor<4x2x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let options = [
    Option<"meshText", "mesh", "std::string", /*default=*/"\"\"",
           "Sizes of the mesh axes: data=2,stage=4,...; empty: the module's mesh">,
    Option<"ranks", "ranks", "int64_t", /*default=*/"0",
           "Number of ranks, from which a size of -1 is inferred; 0: unknown">,
    Option<"rules", "rules", "std::string", /*default=*/"\"\"",
           "Logical axis rules before the defaults: name=axis+axis,...">,
    Option<"shardOptimizer", "shard-optimizer", "bool", /*default=*/"false",
           "Divide the optimizer's state over the replicas of each parameter "
           "(ZeRO-1)">,
    Option<"divisionMode", "mode", "ShardingMode", "ShardingMode::Auto",
           "auto: also divide what is in units; explicit: not",
           "::rota::valuesOf<ShardingMode>()">
  ];
}

def ChooseContextExchange : Pass<"choose-context-exchange", "::mlir::ModuleOp"> {
  let summary = "let keys and values travel around a ring";
  let description = [{
    Marks attention and its derivative with `ring`, so that the context axis may
    divide their sequence. Without the mark each rank of the axis gathers queries,
    keys and values, and computes attention of the whole sequence, which is worth
    it for short ones alone. With `balanced`
    too, ranks exchange halves of their blocks so that all have equal work.

    `exchange=gather` marks none. `exchange=ring` marks all but bidirectional
    attention with a window. `exchange=balanced-ring` marks the same, and causal
    attention without a window as balanced: 2 C must divide its sequence, of C
    ranks. `exchange=auto` takes what needs the least time by the costs of
    operations and transfers: of a ring, those of the last rank, whose queries see
    the keys of all others. A ring's transfer counts as far as it is longer than the
    work beside it; an exchange of halves counts whole. A remark (category `shard`)
    has the times, and why a ring that was to be balanced is not.

    Before: the module has a `rota.mesh`. Nothing is marked where its context axis
    has one rank.

    Before:
    ```mlir
    rota.mesh <context = 2>
    func.func @f(%q: tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32> {
      %o, %lse = rota.attention %q, %q, %q scale = 0.35 : (tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>) -> (tensor<1x16x4x8xf32>, tensor<1x4x16xf32>)
      return %o : tensor<1x16x4x8xf32>
    }
    ```
    After (`exchange=ring`):
    ```mlir
    rota.mesh <context = 2>
    func.func @f(%q: tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32> {
      %o, %lse = rota.attention %q, %q, %q scale = 0.35 ring : (tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>) -> (tensor<1x16x4x8xf32>, tensor<1x4x16xf32>)
      return %o : tensor<1x16x4x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let options = [
    Option<"exchange", "exchange", "ContextExchange", "ContextExchange::Auto",
           "gather, ring, balanced-ring, or auto: what takes the least time",
           "::rota::valuesOf<ContextExchange>()">
  ];
  let statistics = [Statistic<"rings", "rings", "Ops with a ring">];
}

def PropagateShardings : Pass<"propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "divide every op";
  let description = [{
    Finds how the factors of each op's rule are divided and writes that on the
    op as `rota.factors`, an entry per factor; no attribute where nothing is
    divided. Fixed are the compute shardings of parameters and the
    `rota.sharding` of arguments, results and `rota.constrain`; open dimensions
    of these, and all else, follow. A fixpoint in three rounds: what parameters
    say goes everywhere before what borders say, that before the rest. Where two
    dimensions want one axis, the one with the higher priority has it, then that
    for which fewer bytes move, then the lower factor.

    An op that decomposes, such as a norm, is replaced by its parts before that
    where a factor that it needs whole would be divided, and sums over ranks cost
    less than gathers (category `shard`, name `divided-row`).

    Ops with the trait `DividedByCost`, which move elements from one dimension to
    another, then choose anew: the dimension for which the reshards of their operands
    and results together send fewest bytes has the axis, or none where an axis of
    tokens would make sums of all rows. Functions of a layer choose together, so that
    what backward computes again is divided as in forward. A remark (category `shard`,
    name `divided-by-cost`) says how each is divided and what that saves.

    With `mode=auto`, ops whose work all ranks of an axis would repeat are divided
    along the length of activations where gathering their results costs less; ops
    next to them follow that work on each token alone (name `divided-by-tokens`).

    A residual has the sharding of its result in all functions that take it; data
    has the sharding that it gets in `embed` and `loss`. Every tensor argument and
    result of rank 1 or more has a closed sharding afterwards. A value need not be
    divided as its uses need it: that is the task of `insert-reshards`.

    Before:
    ```mlir
    rota.mesh <data = 2, tensor = 2>
    rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [16, 8] compute <[[tensor], []]> storage <[[tensor], []]> optimizer <[[tensor], []]>>
    func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) -> tensor<4x16xf32> {
      %w = rota.read @up : tensor<16x8xf32>
      %y = rota.einsum "bk,nk->bn" %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
    ```
    After:
    ```mlir
    rota.mesh <data = 2, tensor = 2>
    rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [16, 8] compute <[[tensor], []]> storage <[[tensor], []]> optimizer <[[tensor], []]>>
    func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) -> (tensor<4x16xf32> {rota.sharding = #rota.sharding<[[data], [tensor]]>}) {
      %w = rota.read @up : tensor<16x8xf32>
      %y = rota.einsum "bk,nk->bn" %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32> {rota.factors = [#rota.dimension<[data]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
      return %y : tensor<4x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let options = [
    Option<"divisionMode", "mode", "ShardingMode", "ShardingMode::Auto",
           "auto: also divide tokens where that costs less; explicit: not",
           "::rota::valuesOf<ShardingMode>()">
  ];
  let statistics = [Statistic<"dividedOps", "divided", "Ops that are divided">,
                    Statistic<"decomposed", "decomposed",
                              "Ops written as their parts">,
                    Statistic<"dividedByTokens", "divided-by-tokens",
                              "Ops divided along tokens by costs">];
}

def InsertReshards : Pass<"insert-reshards", "::mlir::ModuleOp"> {
  let summary = "insert reshards where shardings disagree";
  let description = [{
    Puts a `rota.reshard` before each use of a value that is not divided as the
    use needs it, or a `rota.reshard_rows` where rows of experts move between
    sequences and rows and only those in front of their counts matter. Before: ops
    with `rota.factors`. `rota.constrain` becomes a reshard or nothing.

    A divided factor that an op reduces over makes a sum over ranks. It stays
    one (`unreduced`) through ops that are linear in it as long as no more bytes
    move for it, and is summed up once, before the first op that needs it. Counts
    of rows are summed up where they are made. Into
    `rota.accumulate`, sums go as they are: over which axes is written into the
    parameter's placement, the same for all its accumulates. Sum, weight and terms
    of the loss leave as sums too, over axes that the results' `rota.sharding` says,
    and so do auxiliary losses, over the same; a constant weight is divided by
    their ranks. A residual may be a sum where its users can take it so.

    `mode=auto` repairs every disagreement with a remark (category `shard`) that
    says why. `mode=explicit` refuses all but the summing up of sums, what
    `rota.constrain` asks for and what the rules `gather/length` and `move/experts` of
    `assign-shardings` allow, with both sides and their locations. The length is
    the second dimension of activations and data, and every dimension that is
    the same factor as it in an op. With the default, activations that rest
    divided over `sequence` are gathered before products whose weights
    `sequence` divides, and attention over `context` has all keys; `gather/length=`
    refuses these reshards, too. Where a function has an op with the trait
    `DividedByCost`, such as tokens that become rows of experts, all of its values may
    move over the axes of `move/experts`: `expert` divides the batch outside of the
    experts, so that something moves in any case.

    Before:
    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}, %w: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4x16xf32> {rota.sharding = #rota.sharding<[[], []]>}) {
      %y = rota.einsum "bk,nk->bn" %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>, #rota.dimension<[]>]}
      %z = arith.negf %y : tensor<4x16xf32>
      return %z : tensor<4x16xf32>
    }
    ```
    After:
    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}, %w: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4x16xf32> {rota.sharding = #rota.sharding<[[], []]>}) {
      %y = rota.einsum "bk,nk->bn" %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>, #rota.dimension<[]>]}
      %z = arith.negf %y : tensor<4x16xf32>
      %r = rota.reshard %z from <[[], []] unreduced [tensor]> to <[[], []]> reason "partial sums of 'arith.negf'" : tensor<4x16xf32>
      return %r : tensor<4x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let options = [
    Option<"mode", "mode", "ShardingMode", "ShardingMode::Auto",
           "auto: reshard where shardings disagree; explicit: refuse",
           "::rota::valuesOf<ShardingMode>()">,
    Option<"gatherRules", "rules", "std::string", /*default=*/"\"\"",
           "As for the pass assign-shardings">
  ];
  let statistics = [
    Statistic<"insertedReshards", "reshards", "Reshards inserted">
  ];
}

def CountWork : Pass<"count-work", "::mlir::ModuleOp"> {
  let summary = "count what each axis divides, and remark on the rest";
  let description = [{
    Writes `rota.work` on each function: the operations of the rank that has most,
    those of a mesh of one rank, and, for each axis, those of the busiest rank if
    that axis had one rank and all others divided what they do. The costs are
    those of the ops that `partition` makes (CostOpInterface): an axis that divides
    no factor of an op repeats it, attention around a ring counts the pairs of the
    last rank, padding counts.

    A remark (category `shard`) at each computation that some axis does not divide
    (`repeated`: operations, bytes of its results) and at each tensor (`whole`:
    parameters at rest, the optimizer's parts of them, values that functions take
    and make, results of reshards), with these axes: all of their ranks have it
    alike, or whole sums of their own. Numbers are those of one rank for one
    microbatch, in all layers of the kind; of an optimizer's functions, those of
    a step. Equal computations of one place are one remark. The largest come
    first.

    Before: after `insert-reshards`, in either mode. Nothing is done where the mesh
    has one rank for each stage; `stage` divides the layers, not the functions.

    Before:
    ```mlir
    rota.mesh <data = 2, tensor = 2>
    func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) {
      %y = math.tanh %x {rota.factors = [#rota.dimension<[data]>, #rota.dimension<[]>]} : tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```
    After:
    ```mlir
    rota.mesh <data = 2, tensor = 2>
    func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) attributes {rota.work = #rota.work<rank = 16, whole = 32, data = 32>} {
      // repeated: Axes=tensor, Bytes=64, Operations=16, Reason='math.tanh'
      %y = math.tanh %x {rota.factors = [#rota.dimension<[data]>, #rota.dimension<[]>]} : tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let statistics = [
    Statistic<"repeated", "repeated", "Computations that some axis repeats">
  ];
}

def Partition : Pass<"partition", "::mlir::ModuleOp"> {
  let summary = "make one rank's functions";
  let description = [{
    Every type becomes that of one rank's part, parameters' that of their compute
    sharding; each `rota.reshard` and `rota.reshard_rows` becomes the cheapest
    collectives (ReshardPlanner.h); an op that is not itself on parts (`PartitionOpInterface`)
    is rewritten: with a divided vocabulary, `rota.embedding` gets a
    `rota.shard_offset`, `rota.cross_entropy` a part of each rank and a merge.

    Before: after `insert-reshards`, every operand is divided as its op needs it.
    Does not look for better collectives between reshards: `merge-collectives`.

    Before:
    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}) {
      %y = math.tanh %x {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]} : tensor<4x8xf32>
      %r = rota.reshard %y from <[[], [tensor]]> to <[[], []]> reason "result 0" : tensor<4x8xf32>
      return %r : tensor<4x8xf32>
    }
    ```
    After:
    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<4x4xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}) {
      %y = math.tanh %x : tensor<4x4xf32>
      %r = rota.all_gather %y dim = 1 axes [<tensor>] reason "result 0" : tensor<4x4xf32> -> tensor<4x8xf32>
      return %r : tensor<4x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let statistics = [
    Statistic<"reshards", "reshards", "Reshards that became collectives">
  ];
}

def MergeCollectives : Pass<"merge-collectives", "::mlir::ModuleOp"> {
  let summary = "make one collective of several, or none";
  let description = [{
    Rewrites that keep values and never move more bytes:

    - collectives that undo each other are dropped: a gather of a slice, a slice
      of a gather, two inverse permutations; so is any collective of one rank
    - a slice of an all-reduce is a reduce-scatter; along other axes, it comes
      first; a gather of a reduce-scatter is an all-reduce
    - one of two: a sum or difference of two all-reduces or reduce-scatters is
      one of the sum; all-reduces over different axes, and gathers, slices or
      reduce-scatters of one dimension in a row, are one over all their axes
    - equal collectives of one value in a block are one, whatever their reasons

    An op with other uses stays. Parts that do not divide a dimension are sliced
    and gathered as before. Sums may change their order
    where the axes of a slice stand in another order than those of the sum.

    Before: a partitioned module. Does not search for other sequences of
    collectives, which is the reshard planner's task.

    Before:
    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<2x8xf32> {
      %x = rota.all_reduce sum %a axes [<tensor>] reason "partial products" : tensor<4x8xf32>
      %y = rota.all_reduce sum %b axes [<tensor>] reason "partial products" : tensor<4x8xf32>
      %sum = arith.addf %x, %y : tensor<4x8xf32>
      %part = rota.shard_slice %sum dim = 0 axes [<tensor>] reason "the next op is divided" : tensor<4x8xf32> -> tensor<2x8xf32>
      return %part : tensor<2x8xf32>
    }
    ```
    After:
    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<2x8xf32> {
      %sum = arith.addf %a, %b : tensor<4x8xf32>
      %part = rota.reduce_scatter %sum dim = 0 axes [<tensor>] reason "partial products" : tensor<4x8xf32> -> tensor<2x8xf32>
      return %part : tensor<2x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let statistics = [
    Statistic<"cancelled", "cancelled", "Collectives that did nothing">,
    Statistic<"equal", "equal", "Collectives that repeated another">,
    Statistic<"combined", "combined", "Pairs that became one">,
    Statistic<"scattered", "scattered", "Slices taken into a reduction">
  ];
}

def SplitCollectives : Pass<"split-collectives", "::mlir::ModuleOp"> {
  let summary = "exchange what products read and make in pieces";
  let description = [{
    A `rota.einsum` waits for all of what it reads when that is gathered, and the
    reduction of its partial sums waits for all of it. In pieces, each piece travels,
    once around the ring of ranks, while the product of another is computed.

    - An all-reduce or reduce-scatter that alone reads the result of a product: the
      last piece has no product beside it.
    - An all-gather that products read along another dimension than those that they
      sum over: the first piece has none. Readers that take no pieces get them put
      together.

    A piece is a stretch of a dimension that is in one operand of the product and in
    its result, or, of the dimension that the collective gathers or cuts, a stretch of
    each rank's part. Of the dimensions, the one is taken for which the fewest bytes
    are copied: pieces that lie one after the other in memory cost none. Each piece is
    summed over ranks in their order, as the whole is. The sums inside products of
    pieces may have another order than those inside the whole product.

    `tensor-exchange=gather` changes nothing, `ring` cuts into as many as 8 pieces
    what 2, 4 or 8 divide, and `auto` does so where it takes less time by the costs of
    `ir/rota/cost/`: the wait for the transfer, against that for the piece without a
    product beside it, for what is longer than the products beside the others, and
    for the starts and copies of pieces. Only a collective and its product decide, not
    what is around them, so that products which backward computes again keep their
    bits. A remark (category `shard`) has the number of pieces and both times.

    Before: a partitioned module, after `merge-collectives`. Parts that do not divide
    a dimension are not cut.

    Before:
    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) -> tensor<4x16xf32> {
      %part = rota.einsum "sk,nk->sn" %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
      %y = rota.all_reduce sum %part axes [<tensor>] reason "partial products" : tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
    ```
    After (two pieces):
    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) -> tensor<4x16xf32> {
      %x0, %x1 = rota.split %x dim = 0 : (tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
      %part0 = rota.einsum "sk,nk->sn" %x0, %w : (tensor<2x8xf32>, tensor<16x8xf32>) -> tensor<2x16xf32>
      %y0 = rota.all_reduce sum %part0 axes [<tensor>] reason "partial products" : tensor<2x16xf32>
      %part1 = rota.einsum "sk,nk->sn" %x1, %w : (tensor<2x8xf32>, tensor<16x8xf32>) -> tensor<2x16xf32>
      %y1 = rota.all_reduce sum %part1 axes [<tensor>] reason "partial products" : tensor<2x16xf32>
      %y = rota.concat %y0, %y1 dim = 0 : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::rota::RotaDialect"];
  let options = [
    Option<"tensorExchange", "tensor-exchange", "TensorExchange",
           "TensorExchange::Auto",
           "gather, ring, or auto: what takes the least time",
           "::rota::valuesOf<TensorExchange>()">
  ];
  let statistics = [
    Statistic<"reductions", "reductions", "Reductions that became pieces">,
    Statistic<"gathers", "gathers", "Gathers that became pieces">
  ];
}

def ScheduleCollectives : Pass<"schedule-collectives", "::mlir::ModuleOp"> {
  let summary = "put work between collectives and their first uses";
  let description = [{
    A collective runs beside the ops between itself and the first use of its
    result. Where those take less time than the transfer, by the costs of
    `ir/rota/cost/` (Overlap.h), moves in this order, as far as that shortens the
    time in which a rank waits for transfers, and no further, since values then live
    longer:

    - the collective up, at most to the op that makes its operand
    - ops above it that do not feed it to below it, such as products for weights'
      gradients, with the ops that need them, the nearest first
    - ops below the first use that do not depend on it to above that use, with the
      ops that they need, the nearest first

    Values keep their bits. Ops with effects keep their order, but for additions to
    the gradients of different parameters; so do products that add to one gradient. All ranks have the same function, so they
    start collectives in one order.

    Before: a partitioned module. Leaves functions whose ops have regions alone.

    Before:
    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<64x256xf32>, %dy: tensor<64x256xf32>, %w: tensor<256x256xf32>) -> (tensor<64x256xf32>, tensor<256x256xf32>) {
      %part = rota.einsum "bn,nk->bk" %dy, %w : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
      %dw = rota.einsum "bn,bk->nk" %dy, %x : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<256x256xf32>
      %dx = rota.all_reduce sum %part axes [<tensor>] reason "partial products" : tensor<64x256xf32>
      return %dx, %dw : tensor<64x256xf32>, tensor<256x256xf32>
    }
    ```
    After:
    ```mlir
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<64x256xf32>, %dy: tensor<64x256xf32>, %w: tensor<256x256xf32>) -> (tensor<64x256xf32>, tensor<256x256xf32>) {
      %part = rota.einsum "bn,nk->bk" %dy, %w : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
      %dx = rota.all_reduce sum %part axes [<tensor>] reason "partial products" : tensor<64x256xf32>
      %dw = rota.einsum "bn,bk->nk" %dy, %x : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<256x256xf32>
      return %dx, %dw : tensor<64x256xf32>, tensor<256x256xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"moves", "moves", "Moves of collectives and of work beside them">
  ];
}

def VerifyPartitioned : Pass<"verify-partitioned", "::mlir::ModuleOp"> {
  let summary = "check that a model is partitioned";
  let description = [{
    Fails with the place, the value and the rule unless

    - V1: the module has a `rota.mesh`, and no `rota.reshard`,
      `rota.reshard_rows` or `rota.constrain` is left
    - V2: no collective is over `stage`, whose ranks run different functions
    - V3: each parameter has a placement, and its type is that of one rank's part
      under the compute sharding
    - V4: in a model, a value of several functions has one type and, where both
      have one, one sharding: activations and their cotangents, residuals of
      forward and backward functions, tokens, targets, sum and weight of the loss

    Types of collectives against the mesh, of `rota.read` and `rota.accumulate`
    against parameters are verified by the ops.

    A model that passes:
    ```mlir
    rota.mesh <data = 2, tensor = 2>
    rota.param @table : tensor<32x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> placement <whole [64, 8] compute <[[tensor], []] unreduced [data]> storage <[[tensor], []]> optimizer <[[tensor], [data]]>>
    rota.stack @layers layers = 4 pattern [@linear] {
      rota.layer @linear {
        rota.param @weight : tensor<8x4xf32> axes ["in", "out"] init #rota.constant<value = 1.0> placement <whole [8, 8] compute <[[], [tensor]] unreduced [data]> storage <[[], [tensor]]> optimizer <[[data], [tensor]]>>
        func.func @forward(%x: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
          %w = rota.read @weight : tensor<8x4xf32>
          %h = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<1x4x8xf32>, tensor<8x4xf32>) -> tensor<1x4x4xf32>
          %y = rota.all_gather %h dim = 2 axes [<tensor>] reason "the layer's result is whole" : tensor<1x4x4xf32> -> tensor<1x4x8xf32>
          return %y : tensor<1x4x8xf32>
        }
      }
    }
    func.func @embed(%tokens: tensor<1x4xi32>) -> tensor<1x4x8xf32> {
      %table = rota.read @table : tensor<32x8xf32>
      %offset = rota.shard_offset axes [<tensor>] factor = 32 : tensor<i32>
      %rows = rota.embedding %tokens, %table offset %offset : (tensor<1x4xi32>, tensor<32x8xf32>, tensor<i32>) -> tensor<1x4x8xf32>
      %x = rota.all_reduce sum %rows axes [<tensor>] reason "rows of one rank each" : tensor<1x4x8xf32>
      return %x : tensor<1x4x8xf32>
    }
    func.func @loss(%x: tensor<1x4x8xf32>, %targets: tensor<1x4xi32>) -> (tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [data]>}, tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [data]>}) {
      %sum, %weight, %lse = rota.cross_entropy %x, %targets : (tensor<1x4x8xf32>, tensor<1x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<1x4xf32>)
      return %sum, %weight : tensor<f32>, tensor<f32>
    }
    ```
  }];
}

def ExplainCommunication : Pass<"explain-communication", "::mlir::ModuleOp"> {
  let summary = "remark on the tensor, bytes and reason of each collective";
  let description = [{
    A remark (category `communication`) at each collective: its reason, the
    tensor it makes, the bytes that one rank sends (ring model,
    ir/rota/cost/Traffic.h), the axes and number of ranks of its group. Changes
    nothing.

    ```mlir
    rota.mesh <tensor = 4>
    func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      // all_reduce: Axes=tensor, Bytes=96, Ranks=4, Reason="partial products", Tensor=tensor<2x8xf32>
      %y = rota.all_reduce sum %x axes [<tensor>] reason "partial products" : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"collectives", "collectives", "Collectives in the module">,
    Statistic<"bytes", "bytes", "Bytes that one rank sends if each runs once">
  ];
}

#endif // ROTA_PASSES_SHARD_PASSES
