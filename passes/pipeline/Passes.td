//===- Passes.td - From layers to timelines ----------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The passes that decide the order of each rank's actions.
//===----------------------------------------------------------------------===//
#ifndef ROTA_PASSES_PIPELINE_PASSES
#define ROTA_PASSES_PIPELINE_PASSES

include "mlir/Pass/PassBase.td"

class PipelinePass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::mlir::pipe::PipeDialect"];
}

def SplitStages : PipelinePass<"split-stages"> {
  let summary = "divide the stack's layers into chunks";
  let description = [{
    Makes a `pipe.program` for the module's `rota.stack`: each chunk holds the next
    layers, the first chunk embeds, the last has the loss.

    Before: one `rota.stack`, no `pipe.program`. There are S*R chunks, for S stages
    and R repeats. With L layers per chunk, S*R*L is the number of layers, and R
    follows from it where it is 0. With `layers-per-stage`, these are the numbers of
    each stage, divided evenly over its chunks, or of each chunk. Otherwise the
    layers are divided evenly; where the chunks do not divide them, chunks have two
    sizes, the last and the first the smaller, and a warning gives the sizes. The
    first chunk may be the embedding alone and the last the loss alone: where
    `layers-per-stage` says 0, with `split=balanced`, or where two layers more would
    give each chunk one. Another chunk without layers is an error. With
    `pipeline-layers`, only that many layers are
    divided so. The others run before the loss: with one stage in the last chunk;
    with several in the unpipelined chunk, which all stages have and whose
    microbatches, a multiple of the stages, they divide. A remark says which.

    ```mlir
    rota.stack @layers layers = 4 pattern [@identity] {
      rota.layer @identity {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
    }
    ```

    becomes, with `stages=2 repeats=2 microbatches=4`, itself and

    ```
    pipe.program stack @layers stages = 2 repeats = 2 microbatches = 4 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@identity 0]>,
        <rank 1 layers [@identity 1]>,
        <rank 0 layers [@identity 2]>,
        <rank 1 layers [@identity 3] loss>
      ]
    }
    ```
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "1", "Ranks of the pipeline (S)">,
    Option<"repeats", "repeats", "int64_t", "0",
           "Chunks on each rank (R); 0: what layers-per-chunk needs, or 1">,
    Option<"layersPerChunk", "layers-per-chunk", "int64_t", "0",
           "Layers of a chunk (L); 0: the layers divided evenly">,
    Option<"split", "split", "::rota::pipe::LayerSplit",
           "::rota::pipe::LayerSplit::Even",
           "balanced: `balance-stages` follows, so there is no warning",
           "::rota::valuesOf<::rota::pipe::LayerSplit>()">,
    ListOption<"layersPerStage", "layers-per-stage", "int64_t",
               "Layers of each stage, or of each chunk">,
    Option<"microbatches", "microbatches", "int64_t", "1",
           "Microbatches of a step (M)">,
    Option<"pipelineLayers", "pipeline-layers", "int64_t", "0",
           "Layers that are divided; 0: all">,
    Option<"placement", "placement", "::rota::pipe::Placement",
           "::rota::pipe::Placement::Loop", "Which rank owns a chunk",
           "::rota::valuesOf<::rota::pipe::Placement>()">,
  ];
}

def MakeTimeline : PipelinePass<"make-timeline"> {
  let summary = "write the program's timeline";
  let description = [{
    Writes a `pipe.timeline` of compute actions into the `pipe.program`: that of
    a named schedule, or a file's.

    Before: a `pipe.program` without timeline. A file is not checked here, but by
    `verify-timeline`, except for `activations`. A remark names the actions that add
    gradients in another order than that of ascending microbatches: their bits
    differ from those of the named schedules. A schedule that does not exist
    for the program's stages, repeats and microbatches is an error that names
    the numbers and the rule, as is one that holds more than `activations`.
    With `pairs`, an F and a B or I that the schedule is published to run together
    become a pair, for `auto` those with which the step is shorter; a schedule that
    has none is an error that names those that do. A file keeps its pairs.

    `auto` searches for the timeline with the least makespan
    (passes/pipeline/README.md), with the costs of `balance-stages`, or unit costs
    where no layer has operations. With `any-placement` it tries both placements;
    with `any-repeats`, beside one chunk on each rank, two, where there are layers
    for them, which are divided evenly; with `any-split`, whole and split backwards.
    It writes what it takes, with the ranks and layers of chunks, into the program. A
    remark says what it tried and how far the result is from a lower bound.

    ```mlir
    rota.stack @layers layers = 2 pattern [@identity] {
      rota.layer @identity {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 2 repeats = 1 microbatches = 3 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@identity 0]>,
        <rank 1 layers [@identity 1] loss>
      ]
    }
    ```

    becomes, with `schedule=1f1b`, the same with

    ```
    pipe.timeline "1f1b" delay = 1 rows [
      "0F0,0F1,0B0,0F2,0B1,0B2",
      "1F0,1B0,1F1,1B1,1F2,1B2"
    ]
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", [{"circular"}],
           "a name that `rota schedule --help` lists, or a file that ends in .csv">,
    Option<"delay", "delay", "int64_t", "1",
           "2: a message leaves while its rank computes the next one">,
    Option<"splitBackward", "split-backward", "bool", "false",
           "I and W instead of B; no change where the schedule has them">,
    Option<"pairs", "pairs", "bool", "false",
           "the pairs of a forward and a backward that the schedule is published with run at once">,
    Option<"activations", "activations", "double", "0",
           "Most activations that a rank holds, those of all its layers for one microbatch counting 1; 0: no bound">,
    Option<"anyPlacement", "any-placement", "bool", "false",
           "auto may replace the program's placement">,
    Option<"anyRepeats", "any-repeats", "bool", "false",
           "auto may give each rank of a program with one chunk two">,
    Option<"anySplit", "any-split", "bool", "false",
           "auto may split backwards">,
  ];
}

def BalanceStages : PipelinePass<"balance-stages"> {
  let summary = "give chunks the layers with which a step is shortest";
  let description = [{
    With `split=balanced`, divides the layers anew over the chunks of a program, so
    that the simulated makespan of its timeline is least. A forward takes the operations of its layers
    by `CostOpInterface`, each of its own kind, with those of `@embed` and `@loss`
    where the chunk has them, a backward twice that but for what is frozen
    (`ir/rota/model/TrainingWork.h`), and messages nothing. A descent
    finds the split: no move of one or two layers makes the step shorter (or the
    search has ended at a fixed amount of work). It is never worse than the split
    before. The embedding or the loss is alone where that is shortest. A remark says the layers of each chunk and the makespans.

    Before: a model as built and a `pipe.program` with a timeline. The unpipelined
    chunk keeps its layers.

    ```mlir
    func.func @loss(%x: tensor<2x8xf32>) -> tensor<f32> {
      %y = arith.addf %x, %x : tensor<2x8xf32>
      %z = arith.mulf %y, %x : tensor<2x8xf32>
      %sum = rota.reduce sum %z dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
      return %sum : tensor<f32>
    }
    rota.stack @layers layers = 6 pattern [@double] {
      rota.layer @double {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          %y = arith.addf %x, %x : tensor<2x8xf32>
          return %y : tensor<2x8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 2 repeats = 1 microbatches = 3 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@double 0, @double 1, @double 2]>,
        <rank 1 layers [@double 3, @double 4, @double 5] loss>
      ]
      pipe.timeline "1f1b" delay = 1 rows [
        "0F0,0F1,0B0,0F2,0B1,0B2",
        "1F0,1B0,1F1,1B1,1F2,1B2"
      ]
    }
    ```

    becomes the same with

    ```
    pipe.chunks [
      <rank 0 embed layers [@double 0, @double 1, @double 2, @double 3, @double 4]>,
      <rank 1 layers [@double 5] loss>
    ]
    ```
  }];
  let options = [
    Option<"split", "split", "::rota::pipe::LayerSplit",
           "::rota::pipe::LayerSplit::Even",
           "even: nothing changes; balanced: the shortest step",
           "::rota::valuesOf<::rota::pipe::LayerSplit>()">,
  ];
}

def InsertCommunication : PipelinePass<"insert-communication"> {
  let summary = "add sends and receives to the program's timeline";
  let description = [{
    Adds `SEND_F`, `RECV_F`, `SEND_B` and `RECV_B` for each value that goes from
    one rank to another. A place for a message is posted when the message is
    ready, and not much before, by the costs of `make-timeline`.

    Before: a timeline that `verify-timeline` accepts. One that has sends and
    receives already is left as it is.

    ```mlir
    rota.stack @layers layers = 2 pattern [@identity] {
      rota.layer @identity {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@identity 0]>,
        <rank 1 layers [@identity 1] loss>
      ]
      pipe.timeline "gpipe" delay = 1 rows [
        "0F0,0F1,0B0,0B1",
        "1F0,1F1,1B0,1B1"
      ]
    }
    ```

    becomes

    ```
    pipe.timeline "gpipe" delay = 1 rows [
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1",
      "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1"
    ]
    ```
  }];
  let statistics = [
    Statistic<"messages", "messages", "Messages of a step">
  ];
}

def DivideChunks : PipelinePass<"divide-chunks"> {
  let summary = "make chunks of a chunk's layers, for windows of layers";
  let description = [{
    With `mode=per-layer`, divides each chunk of the program into parts of a layer,
    and each action of the timeline into actions of the parts. `gather-weights`
    then gathers the weights of the next layer while one computes, forward and
    backward, and reduces the gradient of the one before: a window of two layers
    serves chunks of any length.

    All chunks have as many parts as the one with the fewest layers, the embedding
    and the loss counted; the first part may be the embedding alone, the last the
    loss alone. Of chunks with more, some parts have two layers. The unpipelined
    chunk stays whole. The order of a rank's work does not change.

    Before: a timeline of compute actions and messages that `verify-timeline`
    accepts; another one is an error. Functions are of layers, so they stay.

    ```mlir
    rota.stack @layers layers = 4 pattern [@identity] {
      rota.layer @identity {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@identity 0, @identity 1]>,
        <rank 1 layers [@identity 2, @identity 3] loss>
      ]
      pipe.timeline "1f1b" delay = 1 rows [
        "0F0,0F1,0B0,0B1",
        "1F0,1B0,1F1,1B1"
      ]
    }
    ```

    becomes, with `mode=per-layer`,

    ```
    pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop parts = 3 {
      pipe.chunks [
        <rank 0 embed layers []>,
        <rank 0 layers [@identity 0]>,
        <rank 0 layers [@identity 1]>,
        <rank 1 layers [@identity 2]>,
        <rank 1 layers [@identity 3]>,
        <rank 1 layers [] loss>
      ]
      pipe.timeline "1f1b" delay = 1 rows [
        "0F0,1F0,2F0,0F1,1F1,2F1,2B0,1B0,0B0,2B1,1B1,0B1",
        "3F0,4F0,5F0,5B0,4B0,3B0,3F1,4F1,5F1,5B1,4B1,3B1"
      ]
    }
    ```
  }];
  let options = [
    Option<"mode", "mode", "::rota::pipe::GatherMode",
           "::rota::pipe::GatherMode::Auto",
           "When weights are gathered; another than per-layer divides nothing",
           "::rota::valuesOf<::rota::pipe::GatherMode>()">,
  ];
}

def GatherWeights : PipelinePass<"gather-weights"> {
  let summary = "add weight windows and gradient reductions to the timeline";
  let description = [{
    Adds `UNSHARD`, `RESHARD` and `REDUCE_GRAD`, for weights that are divided
    over the ranks of a stage. A rank's windows hold the gathered weights of
    `window` chunks at most, by the rules of
    `passes/pipeline/timeline/WeightWindows.h`. The modes:

    - `per-iteration`: gathered for each use, each gradient reduced at once;
    - `once`: all chunks gathered before the first action;
    - `per-repeat`: a chunk stays gathered while a window has room, and the next
      one that is needed is gathered meanwhile;
    - `per-layer`: for the chunks of layers that `divide-chunks` makes, as
      `per-iteration`, but for uses of a chunk that follow each other at once;
    - `auto`: `per-repeat` with several repeats, else `once`; nothing is gathered
      where no parameter's placement divides its storage further than its compute
      sharding.

    With `once` and `per-repeat`, a chunk's gradient is reduced once, after its
    last microbatch.

    Before: a timeline that `verify-timeline` accepts. Windows or reductions that
    it has already are kept. Numbers that do not fit the mode are an
    error.

    ```mlir
    rota.stack @layers layers = 3 pattern [@identity] {
      rota.layer @identity {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 1 repeats = 3 microbatches = 2 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@identity 0]>,
        <rank 0 layers [@identity 1]>,
        <rank 0 layers [@identity 2] loss>
      ]
      pipe.timeline "gpipe" delay = 1 rows [
        "0F0,0F1,1F0,1F1,2F0,2F1,2B0,2B1,1B0,1B1,0B0,0B1"
      ]
    }
    ```

    becomes

    ```
    pipe.timeline "gpipe" delay = 1 window = 2 rows [
      "0UNSHARD,1UNSHARD,0F0,0F1,0RESHARD,2UNSHARD,1F0,1F1,2F0,2F1,2B0,2B1,2RESHARD,0UNSHARD,2REDUCE_GRAD,1B0,1B1,1RESHARD,1REDUCE_GRAD,0B0,0B1,0RESHARD,0REDUCE_GRAD"
    ]
    ```
  }];
  let options = [
    Option<"mode", "mode", "::rota::pipe::GatherMode",
           "::rota::pipe::GatherMode::Auto", "When weights are gathered",
           "::rota::valuesOf<::rota::pipe::GatherMode>()">,
    Option<"window", "window", "int64_t", "-1",
           "Most chunks that a rank has gathered; -1: 2, or all for once">,
    Option<"prefetch", "prefetch", "int64_t", "-1",
           "Compute actions from a gather's start to its use at most; -1: as soon as a window is free">,
  ];
  let statistics = [
    Statistic<"gathers", "gathers", "Gathers of a chunk's weights in a step">,
    Statistic<"reductions", "reductions", "Reductions of a chunk's gradient">
  ];
}

def ExchangeUpdates : PipelinePass<"exchange-updates"> {
  let summary = "add what ranks exchange for their updates to the timeline";
  let description = [{
    Where ranks hold the same parameters, the sums of gradients and, with an
    optimizer that is divided over them, the gathers of updated weights run
    beside computation, by the rules of
    `passes/pipeline/timeline/UpdateExchange.h`:

    - `SUM_GRAD` after the last B or W of a chunk, and where REDUCE_GRAD reduces
      its gradient first, one chunk later, so that no rank waits for that. There
      are two for each chunk where some gradient is summed over two groups of
      ranks, one after the other;
    - `REFRESH` at the begin of a row, for each chunk in the order of first uses.

    Which parameters of a chunk they exchange is decided by the memory plan: not
    those of which several stages hold terms or copies. With one chunk in all,
    nothing is added.

    Before: a timeline that `verify-timeline` accepts, with the windows that it
    needs. What it has of either kind already is kept.

    ```mlir
    rota.mesh <data = 2>
    rota.param @table : tensor<4x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 8] compute <[[], []] unreduced [data]> storage <[[], []]> optimizer <[[data], []]>>
    rota.stack @layers layers = 2 pattern [@identity] {
      rota.layer @identity {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 1 repeats = 2 microbatches = 1 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@identity 0]>,
        <rank 0 layers [@identity 1] loss>
      ]
      pipe.timeline "t" delay = 1 rows [
        "0F0,1F0,1B0,0B0"
      ]
    }
    ```

    becomes

    ```
    pipe.timeline "t" delay = 1 rows [
      "0REFRESH,1REFRESH,0F0,1F0,1B0,1SUM_GRAD,0B0,0SUM_GRAD"
    ]
    ```
  }];
  let statistics = [
    Statistic<"sums", "sums", "Sums of a chunk's gradient over replicas">,
    Statistic<"gathers", "gathers", "Gathers of a chunk's updated weights">
  ];
}

def OffloadResiduals : PipelinePass<"offload-residuals"> {
  let summary = "add copies of residuals to host memory and back";
  let description = [{
    For each chunk with a layer whose backward takes an argument marked
    `rota.offload`: adds `OFFLOAD` after each F and `FETCH` before its B or I,
    `fetch-distance` compute actions ahead. Where no compute action would stand between
    the two, neither is there: the residuals stay.

    Before: a differentiated model, and a timeline that `verify-timeline` accepts.
    A timeline that offloads already is left as it is; where nothing is marked, that
    contradicts a `policy` of the user's, and is an error.

    ```mlir
    rota.stack @layers layers = 2 pattern [@identity] {
      rota.layer @identity {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
        func.func @backward(%x: tensor<2x8xf32> {rota.offload}, %dy: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %dy : tensor<2x8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 2 repeats = 1 microbatches = 3 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@identity 0]>,
        <rank 1 layers [@identity 1] loss>
      ]
      pipe.timeline "1f1b" delay = 1 rows [
        "0F0,0F1,0F2,0B0,0B1,0B2",
        "1F0,1B0,1F1,1B1,1F2,1B2"
      ]
    }
    ```

    becomes

    ```
    pipe.timeline "1f1b" delay = 1 rows [
      "0F0,0OFFLOAD0,0F1,0OFFLOAD1,0FETCH0,0F2,0OFFLOAD2,0FETCH1,0B0,0FETCH2,0B1,0B2",
      "1F0,1B0,1F1,1B1,1F2,1B2"
    ]
    ```
  }];
  let options = [
    Option<"fetchDistance", "fetch-distance", "int64_t", "1",
           "Compute actions from a FETCH to the backward that reads it">,
    Option<"policy", "policy", "std::string", [{""}],
           "The remat policy that the user chose; empty: none">,
  ];
  let statistics = [
    Statistic<"copies", "copies", "Residuals that are offloaded in a step">
  ];
}

def VerifyTimeline : PipelinePass<"verify-timeline"> {
  let summary = "prove that the program's timeline runs one training step";
  let description = [{
    Changes nothing. An error for each rule of
    `passes/pipeline/timeline/TimelineVerifier.h` that the timeline breaks, with rank,
    position and action: each action exactly once and on its rank, dependencies
    respected, pairs of a forward and a backward of two microbatches side by side,
    weight windows open where they are used, sends and receives in one order, no deadlock with two buffers
    for each direction.

    Before: a `pipe.program` with a timeline.

    ```mlir
    rota.stack @layers layers = 1 pattern [@identity] {
      rota.layer @identity {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 1 repeats = 1 microbatches = 2 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@identity 0] loss>
      ]
      pipe.timeline "by hand" delay = 1 rows [
        "0F0,0I0,0F1,0W0,0B1"
      ]
    }
    ```
  }];
  let options = [
    Option<"communication", "communication", "bool", "false",
           "A timeline without sends and receives that it needs is wrong">,
  ];
}

#endif // ROTA_PASSES_PIPELINE_PASSES
