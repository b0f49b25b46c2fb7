//===- Pipe.td - The pipe dialect --------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Chunks of layers, and the order in which ranks run them.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_PIPE_PIPE
#define ROTA_IR_PIPE_PIPE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/Properties.td"
include "mlir/IR/SymbolInterfaces.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::mlir::pipe";
  let summary = "chunks of layers, and when each rank runs which";
  let description = [{
    A program divides a model's layers into chunks, gives each chunk to a rank,
    and holds a timeline: a list of actions `(chunk, kind, microbatch)` per
    rank. All of it is a few ops, whatever the number of layers, ranks and
    microbatches: tables are attributes.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::rota::RotaDialect"];
}

class Pipe_Op<string mnemonic, list<Trait> traits = []>
    : Op<Pipe_Dialect, mnemonic, traits>;

def Pipe_Placement : I32EnumAttr<"Placement", "which rank owns a chunk", [
    I32EnumAttrCase<"Loop", 0, "loop">, I32EnumAttrCase<"V", 1, "v">]> {
  let cppNamespace = "::mlir::pipe";
}

def Pipe_ChunkAttr : AttrDef<Pipe_Dialect, "Chunk"> {
  let mnemonic = "chunk";
  let summary = "the contents and the rank of one chunk";
  let description = [{
    The rank that owns the chunk, or `all` for the unpipelined chunk, and the
    contents of the chunk: the model's embedding, layers, each with its kind (a
    symbol of the program's stack) and its number, and the model's loss, in this
    order.

    `#pipe.chunk<rank 0 embed layers [@local 0, @global 1]>`
  }];
  let parameters = (ins "int64_t":$rank, "bool":$embeds,
                        ArrayRefParameter<"FlatSymbolRefAttr">:$kinds,
                        ArrayRefParameter<"int64_t">:$layers,
                        "bool":$hasLoss);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The rank of the unpipelined chunk, which all ranks have.
    static constexpr int64_t kAllRanks = -1;
  }];
}

def Pipe_ProgramOp : Pipe_Op<"program", [SingleBlock, NoTerminator,
    NoRegionArguments, HasParent<"::mlir::ModuleOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a model as a pipeline";
  let description = [{
    `stages` ranks run `stages * repeats` chunks of the stack's layers on
    `microbatches` microbatches in a step. Chunk c = r * stages + s is the r-th
    chunk of a rank: of rank s with placement `loop`, of rank stages-1-s in odd
    rows with placement `v`. Chunks may differ in their numbers of layers. The
    first may be the embedding alone, the last the loss alone. With `parts`, each
    of these chunks is divided into as many, which follow one another on its rank
    and have numbers and contents of their own.

    With `unpipelined`, one chunk more, the last, holds layers that are left out
    of the pipeline. Every rank has it, and microbatch m runs on rank m mod stages.

    Life-span: made by `split-stages`; `divide-chunks` adds parts; stays until
    the runtime's program is made of it.

    Constraints:
    - C1: `stages`, `repeats`, `microbatches` and `parts` are positive; with
      `unpipelined`, `microbatches` is a multiple of `stages`
    - C2: the body holds one `pipe.chunks` and at most one `pipe.timeline`
    - C3: `stack` names a `rota.stack`
    - C4: there is a chunk for each stage, repeat and part, on the rank that the
      placement says, and with `unpipelined` one more, on all ranks
    - C5: each chunk has a layer, the embedding or the loss
    - C6: all chunks' layers, one after the other, are the stack's
    - C7: a layer's kind is the one that the stack's pattern says
    - C8: the first chunk embeds and the last has the loss, no other

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
      pipe.timeline "gpipe" delay = 1 rows [
        "0F0,0F1,0B0,0B1",
        "1F0,1F1,1B0,1B1"
      ]
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$stack, I64Attr:$stages,
                       I64Attr:$repeats, I64Attr:$microbatches,
                       Pipe_Placement:$placement, OptionalAttr<I64Attr>:$parts,
                       UnitAttr:$unpipelined);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `stack` $stack `stages` `=` custom<Count>($stages)
    `repeats` `=` custom<Count>($repeats)
    `microbatches` `=` custom<Count>($microbatches)
    `placement` $placement (`parts` `=` $parts^)?
    (`unpipelined` $unpipelined^)? $body attr-dict
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The sizes in the form that timelines have.
    ::rota::pipe::Shape getShape();
    ChunksOp getChunks();
    /// Null before `make-timeline`.
    TimelineOp getTimeline();
    ::mlir::rota::StackOp getStackOp();
  }];
}

def Pipe_ChunksOp : Pipe_Op<"chunks", [HasParent<"ProgramOp">]> {
  let summary = "the contents and the rank of each chunk";
  let description = [{
    A table with an entry for each chunk, in chunk order.

    Life-span: made by `split-stages` with the program around it.

    Constraints: those of `pipe.program`, C4 to C8.

    ```mlir
    rota.stack @layers layers = 3 pattern [@a, @b] {
      rota.layer @a {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
      rota.layer @b {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 1 repeats = 1 microbatches = 1 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@a 0, @b 1, @a 2] loss>
      ]
    }
    ```
  }];
  let arguments = (ins TypedArrayAttrBase<Pipe_ChunkAttr, "chunks">:$chunks);
  let assemblyFormat = "custom<ChunkTable>($chunks) attr-dict";
}

/// Rows of actions, read from their text once. They are no attribute, as those
/// stay in memory until the end of the context.
def Pipe_ActionRows : Property<"::rota::pipe::ActionRows", "rows of actions",
                               "const ::rota::pipe::ActionRows &"> {
  let hashProperty = "hashRows($_storage)";
  let readFromMlirBytecode = [{
    ::mlir::ArrayAttr rows;
    if (::mlir::failed($_reader.readAttribute(rows)))
      return ::mlir::failure();
    return convertFromAttribute($_storage, rows,
                                [&] { return $_reader.emitError(); });
  }];
  let writeToMlirBytecode = [{
    $_writer.writeAttribute(convertToAttribute($_ctxt, $_storage));
  }];
}

def Pipe_TimelineOp : Pipe_Op<"timeline", [HasParent<"ProgramOp">]> {
  let summary = "the order of each rank's actions";
  let description = [{
    A row of actions for each rank, in the text form of
    torch.distributed.pipelining: chunk, kind, microbatch. `F` is a forward; `B`
    a backward, or `I` and `W` its input and weight gradients; `SEND_F`,
    `RECV_F`, `SEND_B`, `RECV_B` hand values from rank to rank; `UNSHARD` and
    `RESHARD` open and close a window of a chunk's weights, and `REDUCE_GRAD`
    reduce-scatters its gradient; `SUM_GRAD` sums a gradient over ranks that
    hold the same parameters, and `REFRESH` gathers what they have updated in the
    step before; `OFFLOAD` and `FETCH` move residuals to the
    host and back. `(0F7;7B3)OVERLAP_F_B` is a pair, whose halves run at the same
    time. `delay` is one more than the number of actions between the one
    that makes a message and its `SEND`. `window`, where given, bounds a rank's
    open windows. The string in front is the source of the timeline: a schedule's
    name or a file.

    This op does not check the timeline: see `verify-timeline`.

    Life-span: made by `make-timeline`; `insert-communication`, `gather-weights`,
    `exchange-updates` and `offload-residuals` add to it.

    Constraints:
    - C1: there is a row for each stage
    - C2: each row is a list of actions
    - C3: `delay` is 1 or 2
    - C4: `window` is positive, where it stands

    ```mlir
    rota.stack @layers layers = 2 pattern [@identity] {
      rota.layer @identity {
        func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
          return %x : tensor<2x8xf32>
        }
      }
    }
    pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
      pipe.chunks [
        <rank 0 embed layers [@identity 0]>,
        <rank 1 layers [@identity 1] loss>
      ]
      pipe.timeline "by hand" delay = 1 window = 1 rows [
        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0RESHARD,0REDUCE_GRAD",
        "1UNSHARD,1RECV_F0,1F0,1I0,1SEND_B0,1W0,1RESHARD,1REDUCE_GRAD"
      ]
    }
    ```
  }];
  let arguments = (ins StrAttr:$schedule, I64Attr:$delay,
                       OptionalAttr<I64Attr>:$window,
                       Pipe_ActionRows:$rows);
  let assemblyFormat = [{
    $schedule `delay` `=` custom<Count>($delay)
    (`window` `=` custom<Count>($window)^)? `rows` custom<Rows>($rows)
    attr-dict
  }];
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "StringRef":$schedule,
                   "const ::rota::pipe::Timeline &":$timeline)>];
  let extraClassDeclaration = [{
    ::rota::pipe::Timeline read();
    void write(const ::rota::pipe::Timeline &timeline);
  }];
}

#endif // ROTA_IR_PIPE_PIPE
