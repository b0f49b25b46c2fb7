// RUN: rota-opt %s --split-input-file --partition | FileCheck %s --implicit-check-not='= rota.{{(all|reduce_scatter|shard_slice|permute)}}'
//
// Each move of the planner, alone and in sequences, which are the cheapest.

// A value that is needed whole is gathered, all axes of a dimension at once.
// CHECK-LABEL: func.func @gather
// CHECK: rota.all_gather %{{.*}} dim = 0 axes [<data>, <tensor>] {{.*}} : tensor<4x8xf32> -> tensor<16x8xf32>
rota.mesh <data = 2, tensor = 2>
func.func @gather(%x: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[data, tensor], []]>}) -> tensor<16x8xf32> {
  %r = rota.reshard %x from <[[data, tensor], []]> to <[[], []]> reason "test" : tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// Only the minor axis is gathered.
// CHECK-LABEL: func.func @gather_minor
// CHECK: rota.all_gather %{{.*}} dim = 0 axes [<tensor>] {{.*}} : tensor<4x8xf32> -> tensor<8x8xf32>
rota.mesh <data = 2, tensor = 2>
func.func @gather_minor(%x: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[data, tensor], []]>}) -> (tensor<16x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) {
  %r = rota.reshard %x from <[[data, tensor], []]> to <[[data], []]> reason "test" : tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// A slice costs nothing.
// CHECK-LABEL: func.func @slice
// CHECK: rota.shard_slice %{{.*}} dim = 1 axes [<tensor>] {{.*}} : tensor<8x8xf32> -> tensor<8x4xf32>
rota.mesh <data = 2, tensor = 2>
func.func @slice(%x: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) -> (tensor<16x8xf32> {rota.sharding = #rota.sharding<[[data], [tensor]]>}) {
  %r = rota.reshard %x from <[[data], []]> to <[[data], [tensor]]> reason "test" : tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// An axis that changes dimension: one exchange, where a gather would move more.
// CHECK-LABEL: func.func @exchange
// CHECK: rota.all_to_all %{{.*}} gather = 1 split = 0 axes [<tensor>] {{.*}} : tensor<16x4xf32> -> tensor<8x8xf32>
rota.mesh <tensor = 2>
func.func @exchange(%x: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<16x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) {
  %r = rota.reshard %x from <[[], [tensor]]> to <[[tensor], []]> reason "test" : tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// A sum that is needed whole.
// CHECK-LABEL: func.func @sum
// CHECK: rota.all_reduce sum %{{.*}} axes [<data>, <tensor>]
rota.mesh <data = 2, tensor = 2>
func.func @sum(%x: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[], []] unreduced [data, tensor]>}) -> tensor<16x8xf32> {
  %r = rota.reshard %x from <[[], []] unreduced [data, tensor]> to <[[], []]> reason "test" : tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// A sum that is needed in parts: no all-reduce and slice.
// CHECK-LABEL: func.func @scatter
// CHECK: rota.reduce_scatter %{{.*}} dim = 0 axes [<tensor>] {{.*}} : tensor<16x8xf32> -> tensor<8x8xf32>
rota.mesh <tensor = 2>
func.func @scatter(%x: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[], []] unreduced [tensor]>}) -> (tensor<16x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) {
  %r = rota.reshard %x from <[[], []] unreduced [tensor]> to <[[tensor], []]> reason "test" : tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// One axis is summed up in parts and the other stays a sum.
// CHECK-LABEL: func.func @scatter_some
// CHECK: rota.reduce_scatter %{{.*}} dim = 1 axes [<tensor>] {{.*}} : tensor<16x8xf32> -> tensor<16x4xf32>
rota.mesh <data = 2, tensor = 2>
func.func @scatter_some(%x: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[], []] unreduced [data, tensor]>}) -> (tensor<16x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]] unreduced [data]>}) {
  %r = rota.reshard %x from <[[], []] unreduced [data, tensor]> to <[[], [tensor]] unreduced [data]> reason "test" : tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// Axes of one dimension change places: each rank sends its part.
// CHECK-LABEL: func.func @order
// CHECK: rota.permute %{{.*}} axes [<data>, <tensor>] order [<tensor>, <data>] {{.*}} : tensor<4x8xf32>
rota.mesh <data = 2, tensor = 2>
func.func @order(%x: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[data, tensor], []]>}) -> (tensor<16x8xf32> {rota.sharding = #rota.sharding<[[tensor, data], []]>}) {
  %r = rota.reshard %x from <[[data, tensor], []]> to <[[tensor, data], []]> reason "test" : tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}

// -----

// Several moves: the sum is scattered first, so that later messages are small.
// CHECK-LABEL: func.func @several
// CHECK: %[[S:.*]] = rota.reduce_scatter %{{.*}} axes [<data>]
// CHECK: rota.all_gather %{{.*}} axes [<tensor>]
rota.mesh <data = 2, tensor = 2>
func.func @several(%x: tensor<512x512xf32> {rota.sharding = #rota.sharding<[[], [tensor]] unreduced [data]>}) -> (tensor<512x512xf32> {rota.sharding = #rota.sharding<[[data], []]>}) {
  %r = rota.reshard %x from <[[], [tensor]] unreduced [data]> to <[[data], []]> reason "test" : tensor<512x512xf32>
  return %r : tensor<512x512xf32>
}

// -----

// Parts of an axis: the minor half is gathered, the major one stays.
// CHECK-LABEL: func.func @halves
// CHECK: rota.all_gather %{{.*}} dim = 0 axes [<tensor:(2)2>] {{.*}} : tensor<4x8xf32> -> tensor<8x8xf32>
rota.mesh <tensor = 4>
func.func @halves(%x: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) -> (tensor<16x8xf32> {rota.sharding = #rota.sharding<[[tensor:(1)2], []]>}) {
  %r = rota.reshard %x from <[[tensor], []]> to <[[tensor:(1)2], []]> reason "test" : tensor<16x8xf32>
  return %r : tensor<16x8xf32>
}
