//===- KernelOps.td - Fused kernels ------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The description of a fused group, from which CPU code (and GPU code) is
// emitted: the computation of one row.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_KERNELOPS
#define ROTA_IR_ROTA_KERNELOPS

include "ir/rota/model/ModelOps.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Rota_RowStrideAttr : Rota_Attr<"RowStride", "row_stride",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "distance between the rows of a tensor in memory";
  let description = [{
    The encoding of a tensor whose rows, which are along the last dimension, begin
    at multiples of this number of elements: `tensor<2x16x61xf32, #rota.row_stride<64>>`.
    The elements between the end of a row and the next one have no value: nothing
    reads them, and nothing must keep them.

    Life-span: made by `pad-rows`; a task reads it as the distance between rows.

    Constraints:
    - C1: at least the last dimension, of a tensor that has one
  }];
  let parameters = (ins "int64_t":$elements);
  let assemblyFormat = "`<` $elements `>`";
  let extraClassDeclaration = [{
    /// Elements from the begin of a row to that of the next one; the last
    /// dimension where rows are next to each other.
    static int64_t of(::mlir::RankedTensorType type);
  }];
}

def Rota_KernelOp : Rota_Op<"kernel", [Symbol, IsolatedFromAbove,
    SingleBlockImplicitTerminator<"YieldOp">, HasParent<"::mlir::ModuleOp">]> {
  let summary = "the computation of a fused kernel on one row";
  let description = [{
    The body computes one row: its arguments and results are rank-1 tensors (a
    row's columns) or rank-0 tensors (one value a row). `operand_maps` gives for
    each operand which of its rows goes with row d0: `(d0) -> (d0)` is its own,
    `(d0) -> (0)` the one that all rows share. A result of kind `row` is written
    to its row; one of kind `sum` is summed over all rows, in an order that
    depends on the number of rows alone.

    Life-span: made by `form-kernels`; becomes a native function.

    Constraints:
    - C1: a map per argument with one dimension and one result
    - C2: a kind per yielded value
    - C3: arguments and yielded values are tensors of rank 0 or 1
    - C4: the body holds arith and math ops, `rota.reduce`, `rota.broadcast`

    ```mlir
    rota.kernel @scale operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>] results [#rota.result<row>] {
    ^bb0(%x: tensor<8xf32>, %gain: tensor<8xf32>):
      %y = arith.mulf %x, %gain : tensor<8xf32>
      rota.yield %y : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, AffineMapArrayAttr:$operand_maps,
                       Rota_ResultKindArrayAttr:$result_kinds);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `operands` $operand_maps `results` $result_kinds $body attr-dict
  }];
  let hasRegionVerifier = 1;
}

def Rota_YieldOp : Rota_Op<"yield", [Pure, Terminator, ReturnLike,
    ParentOneOf<["KernelOp"]>]> {
  let summary = "a kernel's results for one row";
  let description = [{
    Ends the body of a `rota.kernel`.

    Life-span: that of the kernel.

    ```mlir
    rota.kernel @identity operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
    ^bb0(%x: tensor<8xf32>):
      rota.yield %x : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange{}); }]>];
}

def Rota_LaunchOp : Rota_Op<"launch", [Pure,
    DeclareOpInterfaceMethods<CostOpInterface>,
    DeclareOpInterfaceMethods<TaskOpInterface, ["canAccumulate", "getInPlacePairs"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel over all rows";
  let description = [{
    Runs the kernel for rows 0 to `rows` - 1. An operand or result is seen as
    [rows, columns] of its elements in row-major order, whatever its shape; a
    result of kind `sum` has the columns alone. A kernel reads all of a row before
    it writes any of it, so that a result of kind `row` may lie on an operand.

    Life-span: made by `form-kernels`; becomes a call of the runtime.

    Constraints:
    - C1: the symbol names a `rota.kernel`
    - C2: operands and results agree in number and element type with the kernel
    - C3: an operand that each row reads in its own row, and a result of kind
      `row`, has `rows` times the columns of the kernel's
    - C4: all those that have columns have one row stride or none; with one, their
      last dimension is the columns

    ```mlir
    rota.kernel @twice operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
    ^bb0(%x: tensor<8xf32>):
      %y = arith.addf %x, %x : tensor<8xf32>
      rota.yield %y : tensor<8xf32>
    }
    func.func @f(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
      %y = rota.launch @twice rows = 6 (%x) : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
      return %y : tensor<2x3x8xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, I64Attr:$rows,
                       Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let extraClassDeclaration = [{
    /// The kernel; null when the symbol names none.
    KernelOp getKernelOp();
  }];
  let assemblyFormat = [{
    $kernel `rows` `=` custom<Count>($rows) `(` $inputs `)` `:` functional-type($inputs, $results) attr-dict
  }];
}

#endif // ROTA_IR_ROTA_KERNELOPS
