// RUN: rota-opt %s --merge-collectives --split-input-file | FileCheck %s

// The documentation's example: two sums become one, and its slice a scatter.
// CHECK-LABEL: func.func @f
// CHECK-SAME: %[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<4x8xf32>
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : tensor<4x8xf32>
// CHECK-NEXT: %[[PART:.*]] = rota.reduce_scatter %[[SUM]] dim = 0 axes [<tensor>] reason "partial products" : tensor<4x8xf32> -> tensor<2x8xf32>
// CHECK-NEXT: return %[[PART]]
rota.mesh <tensor = 2>
func.func @f(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<2x8xf32> {
  %x = rota.all_reduce sum %a axes [<tensor>] reason "partial products" : tensor<4x8xf32>
  %y = rota.all_reduce sum %b axes [<tensor>] reason "partial products" : tensor<4x8xf32>
  %sum = arith.addf %x, %y : tensor<4x8xf32>
  %part = rota.shard_slice %sum dim = 0 axes [<tensor>] reason "the next op is divided" : tensor<4x8xf32> -> tensor<2x8xf32>
  return %part : tensor<2x8xf32>
}

// -----

// A gather of a slice is the whole, uneven parts too; a slice of a gather the part.
// CHECK-LABEL: func.func @gather_of_slice
// CHECK-NEXT: return %arg0, %arg1 : tensor<7x8xf32>, tensor<2x8xf32>
rota.mesh <tensor = 4>
func.func @gather_of_slice(%x: tensor<7x8xf32>, %y: tensor<2x8xf32>) -> (tensor<7x8xf32>, tensor<2x8xf32>) {
  %part = rota.shard_slice %x dim = 0 axes [<tensor>] reason "a" : tensor<7x8xf32> -> tensor<2x8xf32>
  %whole = rota.all_gather %part dim = 0 axes [<tensor>] reason "b" : tensor<2x8xf32> -> tensor<7x8xf32>
  %all = rota.all_gather %y dim = 0 axes [<tensor>] reason "c" : tensor<2x8xf32> -> tensor<8x8xf32>
  %own = rota.shard_slice %all dim = 0 axes [<tensor>] reason "d" : tensor<8x8xf32> -> tensor<2x8xf32>
  return %whole, %own : tensor<7x8xf32>, tensor<2x8xf32>
}

// -----

// Other axes, or another dimension: nothing to cancel.
// CHECK-LABEL: func.func @gather_of_another_slice
// CHECK-COUNT-2: rota.shard_slice
// CHECK-COUNT-2: rota.all_gather
rota.mesh <data = 2, tensor = 2>
func.func @gather_of_another_slice(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<8x2xf32>) {
  %a = rota.shard_slice %x dim = 0 axes [<tensor>] reason "a" : tensor<4x4xf32> -> tensor<2x4xf32>
  %b = rota.shard_slice %x dim = 1 axes [<tensor>] reason "a" : tensor<4x4xf32> -> tensor<4x2xf32>
  %c = rota.all_gather %a dim = 0 axes [<data>] reason "b" : tensor<2x4xf32> -> tensor<4x4xf32>
  %d = rota.all_gather %b dim = 0 axes [<tensor>] reason "b" : tensor<4x2xf32> -> tensor<8x2xf32>
  return %c, %d : tensor<4x4xf32>, tensor<8x2xf32>
}

// -----

// CHECK-LABEL: func.func @gather_of_scatter
// CHECK-NEXT: rota.all_reduce sum %arg0 axes [<tensor>] reason "a" : tensor<4x4xf32>
// CHECK-NOT: rota.
// CHECK: return
rota.mesh <tensor = 2>
func.func @gather_of_scatter(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %part = rota.reduce_scatter %x dim = 0 axes [<tensor>] reason "a" : tensor<4x4xf32> -> tensor<2x4xf32>
  %whole = rota.all_gather %part dim = 0 axes [<tensor>] reason "b" : tensor<2x4xf32> -> tensor<4x4xf32>
  return %whole : tensor<4x4xf32>
}

// -----

// The part is used as well: it is cheaper to gather it than to reduce twice.
// CHECK-LABEL: func.func @gather_of_a_used_scatter
// CHECK-COUNT-1: rota.reduce_scatter
// CHECK-COUNT-1: rota.all_gather
// CHECK-NOT: rota.all_reduce
rota.mesh <tensor = 2>
func.func @gather_of_a_used_scatter(%x: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<4x4xf32>) {
  %part = rota.reduce_scatter %x dim = 0 axes [<tensor>] reason "a" : tensor<4x4xf32> -> tensor<2x4xf32>
  %whole = rota.all_gather %part dim = 0 axes [<tensor>] reason "b" : tensor<2x4xf32> -> tensor<4x4xf32>
  return %part, %whole : tensor<2x4xf32>, tensor<4x4xf32>
}

// -----

// A slice along other axes comes before the sum; a maximum is not scattered.
// CHECK-LABEL: func.func @slice_of_reduce
// CHECK: %[[PART:.*]] = rota.shard_slice %arg0 dim = 0 axes [<data>]
// CHECK: rota.all_reduce sum %[[PART]] axes [<tensor>] reason "a" : tensor<2x4xf32>
// CHECK: %[[MAX:.*]] = rota.all_reduce max %arg0 axes [<tensor>]
// CHECK: rota.shard_slice %[[MAX]] dim = 0 axes [<tensor>]
rota.mesh <data = 2, tensor = 2>
func.func @slice_of_reduce(%x: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %sum = rota.all_reduce sum %x axes [<tensor>] reason "a" : tensor<4x4xf32>
  %a = rota.shard_slice %sum dim = 0 axes [<data>] reason "b" : tensor<4x4xf32> -> tensor<2x4xf32>
  %max = rota.all_reduce max %x axes [<tensor>] reason "c" : tensor<4x4xf32>
  %b = rota.shard_slice %max dim = 0 axes [<tensor>] reason "d" : tensor<4x4xf32> -> tensor<2x4xf32>
  return %a, %b : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// The whole sum is used as well.
// CHECK-LABEL: func.func @slice_of_a_used_reduce
// CHECK-COUNT-1: rota.all_reduce
// CHECK-COUNT-1: rota.shard_slice
// CHECK-NOT: rota.reduce_scatter
rota.mesh <tensor = 2>
func.func @slice_of_a_used_reduce(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<2x4xf32>) {
  %sum = rota.all_reduce sum %x axes [<tensor>] reason "a" : tensor<4x4xf32>
  %part = rota.shard_slice %sum dim = 0 axes [<tensor>] reason "b" : tensor<4x4xf32> -> tensor<2x4xf32>
  return %sum, %part : tensor<4x4xf32>, tensor<2x4xf32>
}

// -----

// Differences, chains, and reduce-scatters: one collective each.
// CHECK-LABEL: func.func @sums
// CHECK: arith.subf
// CHECK: arith.addf
// CHECK-COUNT-1: rota.all_reduce
// CHECK-NOT: rota.all_reduce
// CHECK: arith.addf
// CHECK-COUNT-1: rota.reduce_scatter
// CHECK-NOT: rota.reduce_scatter
rota.mesh <tensor = 2>
func.func @sums(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<2x4xf32>) {
  %a = rota.all_reduce sum %x axes [<tensor>] reason "a" : tensor<4x4xf32>
  %b = rota.all_reduce sum %y axes [<tensor>] reason "b" : tensor<4x4xf32>
  %c = rota.all_reduce sum %z axes [<tensor>] reason "c" : tensor<4x4xf32>
  %d = arith.subf %a, %b : tensor<4x4xf32>
  %e = arith.addf %d, %c : tensor<4x4xf32>
  %f = rota.reduce_scatter %x dim = 0 axes [<tensor>] reason "f" : tensor<4x4xf32> -> tensor<2x4xf32>
  %g = rota.reduce_scatter %z dim = 0 axes [<tensor>] reason "g" : tensor<4x4xf32> -> tensor<2x4xf32>
  %h = arith.addf %f, %g : tensor<2x4xf32>
  return %e, %h : tensor<4x4xf32>, tensor<2x4xf32>
}

// -----

// Sums over other axes, and a sum that is used elsewhere, stay two.
// CHECK-LABEL: func.func @other_sums
// CHECK-COUNT-4: rota.all_reduce
rota.mesh <data = 2, tensor = 2>
func.func @other_sums(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = rota.all_reduce sum %x axes [<tensor>] reason "a" : tensor<4xf32>
  %b = rota.all_reduce sum %y axes [<data>] reason "b" : tensor<4xf32>
  %c = arith.addf %a, %b : tensor<4xf32>
  %d = rota.all_reduce max %x axes [<tensor>] reason "d" : tensor<4xf32>
  %e = rota.all_reduce sum %y axes [<tensor>] reason "e" : tensor<4xf32>
  %f = arith.addf %d, %e : tensor<4xf32>
  return %c, %e, %f : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// In a row: one over all axes, in the mesh's order for a reduction, minor axes
// last for the others.
// CHECK-LABEL: func.func @nested
// CHECK-DAG: rota.all_reduce sum %arg0 axes [<data>, <tensor>] reason "a" : tensor<4xf32>
// CHECK-DAG: rota.all_gather %arg0 dim = 0 axes [<tensor>, <data>] reason "c" : tensor<4xf32> -> tensor<16xf32>
// CHECK-DAG: rota.shard_slice %arg0 dim = 0 axes [<tensor>, <data>] reason "e" : tensor<4xf32> -> tensor<1xf32>
// CHECK-DAG: rota.reduce_scatter %arg0 dim = 0 axes [<tensor>, <data>] reason "g" : tensor<4xf32> -> tensor<1xf32>
// CHECK: return
rota.mesh <data = 2, tensor = 2>
func.func @nested(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<16xf32>, tensor<1xf32>, tensor<1xf32>) {
  %a = rota.all_reduce sum %x axes [<tensor>] reason "a" : tensor<4xf32>
  %b = rota.all_reduce sum %a axes [<data>] reason "b" : tensor<4xf32>
  %c = rota.all_gather %x dim = 0 axes [<data>] reason "c" : tensor<4xf32> -> tensor<8xf32>
  %d = rota.all_gather %c dim = 0 axes [<tensor>] reason "d" : tensor<8xf32> -> tensor<16xf32>
  %e = rota.shard_slice %x dim = 0 axes [<tensor>] reason "e" : tensor<4xf32> -> tensor<2xf32>
  %f = rota.shard_slice %e dim = 0 axes [<data>] reason "f" : tensor<2xf32> -> tensor<1xf32>
  %g = rota.reduce_scatter %x dim = 0 axes [<tensor>] reason "g" : tensor<4xf32> -> tensor<2xf32>
  %h = rota.reduce_scatter %g dim = 0 axes [<data>] reason "h" : tensor<2xf32> -> tensor<1xf32>
  return %b, %d, %f, %h : tensor<4xf32>, tensor<16xf32>, tensor<1xf32>, tensor<1xf32>
}

// -----

// 10 in two parts and each in three is not 10 in six: 5 is no multiple of 2. A
// sum over one axis twice is no sum over it once.
// CHECK-LABEL: func.func @nested_otherwise
// CHECK-COUNT-2: rota.shard_slice
// CHECK-COUNT-2: rota.all_reduce
rota.mesh <data = 3, tensor = 2>
func.func @nested_otherwise(%x: tensor<10xf32>) -> (tensor<2xf32>, tensor<10xf32>) {
  %a = rota.shard_slice %x dim = 0 axes [<tensor>] reason "a" : tensor<10xf32> -> tensor<5xf32>
  %b = rota.shard_slice %a dim = 0 axes [<data>] reason "b" : tensor<5xf32> -> tensor<2xf32>
  %c = rota.all_reduce sum %x axes [<data>] reason "c" : tensor<10xf32>
  %d = rota.all_reduce sum %c axes [<data>] reason "d" : tensor<10xf32>
  return %b, %d : tensor<2xf32>, tensor<10xf32>
}

// -----

// The parts of an axis together are the axis.
// CHECK-LABEL: func.func @parts
// CHECK: rota.all_reduce sum %arg0 axes [<tensor>]
rota.mesh <tensor = 4>
func.func @parts(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = rota.all_reduce sum %x axes [<tensor:(2)2>] reason "a" : tensor<4xf32>
  %b = rota.all_reduce sum %a axes [<tensor:(1)2>] reason "b" : tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// Equal but for the reason; not those of other axes.
// CHECK-LABEL: func.func @equal
// CHECK: %[[A:.*]] = rota.all_gather %arg0 dim = 0 axes [<tensor>] reason "forward"
// CHECK: %[[B:.*]] = rota.all_gather %arg0 dim = 0 axes [<data>]
// CHECK-NOT: rota.all_gather
// CHECK: return %[[A]], %[[A]], %[[B]]
rota.mesh <data = 2, tensor = 2>
func.func @equal(%x: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %a = rota.all_gather %x dim = 0 axes [<tensor>] reason "forward" : tensor<4xf32> -> tensor<8xf32>
  %b = rota.all_gather %x dim = 0 axes [<tensor>] reason "backward" : tensor<4xf32> -> tensor<8xf32>
  %c = rota.all_gather %x dim = 0 axes [<data>] reason "forward" : tensor<4xf32> -> tensor<8xf32>
  return %a, %b, %c : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// A mirrored permutation moves, though it keeps the order of its axes.
// CHECK-LABEL: func.func @mirrored
// CHECK: rota.permute %{{.*}} mirrored
rota.mesh <tensor = 2>
func.func @mirrored(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = rota.permute %x axes [<tensor>] order [<tensor>] mirrored reason "a" : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// Inverse permutations; one that moves nothing; not the same one twice.
// CHECK-LABEL: func.func @permutes
// CHECK-COUNT-2: rota.permute %{{.*}} axes [<data>, <tensor>] order [<tensor>, <data>]
// CHECK-NOT: rota.permute
// CHECK: return %arg0
rota.mesh <data = 2, tensor = 4>
func.func @permutes(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = rota.permute %x axes [<data>, <tensor>] order [<tensor>, <data>] reason "a" : tensor<4xf32>
  %b = rota.permute %a axes [<tensor>, <data>] order [<data>, <tensor>] reason "b" : tensor<4xf32>
  %c = rota.permute %b axes [<data>, <tensor>] order [<data>, <tensor>] reason "c" : tensor<4xf32>
  %d = rota.permute %x axes [<data>, <tensor>] order [<tensor>, <data>] reason "d" : tensor<4xf32>
  %e = rota.permute %d axes [<data>, <tensor>] order [<tensor>, <data>] reason "e" : tensor<4xf32>
  return %c, %e : tensor<4xf32>, tensor<4xf32>
}

// -----

// Groups of one rank.
// CHECK-LABEL: func.func @lonely
// CHECK-NEXT: return %arg0, %arg0
rota.mesh <data = 2>
func.func @lonely(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = rota.all_reduce sum %x axes [<tensor>] reason "a" : tensor<4xf32>
  %b = rota.all_gather %x dim = 0 axes [<tensor>, <fsdp>] reason "b" : tensor<4xf32> -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
