// RUN: rota-opt %s --decompose --form-kernels --verify-lowered | FileCheck %s

rota.mesh <tensor = 2>

// The result of form-kernels on a decomposed function is legal, in a layer and in
// the module; so are products, views and constant tables.
// CHECK-LABEL: func.func @forward
// CHECK: rota.einsum
// CHECK: rota.launch @
// CHECK-LABEL: func.func @table
// CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK: rota.reshape
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = rota.activation silu %y, %x : tensor<4x8xf32>
      return %z : tensor<4x8xf32>
    }
  }
}
func.func @table() -> tensor<1x2xf32> {
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = rota.reshape %0 : tensor<2xf32> -> tensor<1x2xf32>
  return %1 : tensor<1x2xf32>
}

// Collectives stay, and what is before and behind them is in kernels of its own.
// CHECK-LABEL: func.func @moved
// CHECK-NEXT: rota.launch @
// CHECK-NEXT: rota.all_reduce
// CHECK-NEXT: rota.launch @
// CHECK-NEXT: rota.reduce_scatter
// CHECK-NEXT: rota.all_gather
// CHECK-NEXT: rota.all_to_all
// CHECK-NEXT: rota.shard_slice
// CHECK-NEXT: rota.permute
// CHECK-NEXT: rota.shard_offset
func.func @moved(%x: tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<i32>) {
  %0 = math.exp %x : tensor<4x8xf32>
  %1 = rota.all_reduce sum %0 axes [<tensor>] reason "test" : tensor<4x8xf32>
  %2 = math.tanh %1 : tensor<4x8xf32>
  %3 = rota.reduce_scatter %2 dim = 1 axes [<tensor>] reason "test" : tensor<4x8xf32> -> tensor<4x4xf32>
  %4 = rota.all_gather %3 dim = 0 axes [<tensor>] reason "test" : tensor<4x4xf32> -> tensor<8x4xf32>
  %5 = rota.all_to_all %4 gather = 1 split = 0 axes [<tensor>] reason "test" : tensor<8x4xf32> -> tensor<4x8xf32>
  %6 = rota.shard_slice %5 dim = 1 axes [<tensor>] reason "test" : tensor<4x8xf32> -> tensor<4x4xf32>
  %7 = rota.permute %6 axes [<tensor>] order [<tensor>] reason "test" : tensor<4x4xf32>
  %8 = rota.shard_offset axes [<tensor>] factor = 4 : tensor<i32>
  return %7, %8 : tensor<4x4xf32>, tensor<i32>
}

// The ops of a part of the vocabulary have kernels.
// CHECK-LABEL: func.func @part
// CHECK: rota.shard_offset
// CHECK: rota.cross_entropy_shard
// CHECK: rota.all_gather
// CHECK: rota.cross_entropy_merge
// CHECK: rota.kernel @
func.func @part(%logits: tensor<1x4x8xf32>, %targets: tensor<1x4xi32>) -> tensor<f32> {
  %offset = rota.shard_offset axes [<tensor>] factor = 8 : tensor<i32>
  %part = rota.cross_entropy_shard %logits, %targets offset %offset : (tensor<1x4x8xf32>, tensor<1x4xi32>, tensor<i32>) -> tensor<1x4x2xf32>
  %parts = rota.all_gather %part dim = 2 axes [<tensor>] reason "vocabulary" : tensor<1x4x2xf32> -> tensor<1x4x4xf32>
  %sum, %weight, %lse = rota.cross_entropy_merge %parts, %targets : (tensor<1x4x4xf32>, tensor<1x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<1x4xf32>)
  return %sum : tensor<f32>
}
