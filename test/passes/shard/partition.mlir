// RUN: rota-opt %s --split-input-file --partition | FileCheck %s

// The description's example.
// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32> {
// CHECK-SAME: -> (tensor<4x8xf32> {
// CHECK-NEXT: %[[Y:.*]] = math.tanh %[[X]] : tensor<4x4xf32>
// CHECK-NEXT: %[[R:.*]] = rota.all_gather %[[Y]] dim = 1 axes [<tensor>] reason "result 0" : tensor<4x4xf32> -> tensor<4x8xf32>
// CHECK-NEXT: return %[[R]]
rota.mesh <tensor = 2>
func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}) {
  %y = math.tanh %x {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]} : tensor<4x8xf32>
  %r = rota.reshard %y from <[[], [tensor]]> to <[[], []]> reason "result 0" : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// A parameter has the type of its compute sharding; constants shrink.
// CHECK: rota.param @up : tensor<8x8xf32>
// CHECK-SAME: whole[16, 8]
// CHECK-LABEL: func.func @g
// CHECK: rota.read @up : tensor<8x8xf32>
// CHECK: arith.constant dense<1.000000e+00> : tensor<8x8xf32>
rota.mesh <tensor = 2>
rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [16, 8] compute <[[tensor], []]> storage <[[tensor], []]> optimizer <[[tensor], []]>>
func.func @g() -> (tensor<16x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) {
  %w = rota.read @up : tensor<16x8xf32>
  %one = arith.constant {rota.factors = [#rota.dimension<[tensor]>, #rota.dimension<[]>]} dense<1.0> : tensor<16x8xf32>
  %y = arith.addf %w, %one {rota.factors = [#rota.dimension<[tensor]>, #rota.dimension<[]>]} : tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}

// -----

// A maximum over a divided dimension.
// CHECK-LABEL: func.func @maximum
// CHECK: %[[M:.*]] = rota.reduce max %{{.*}} dims {{.*}} : tensor<4x4xf32> -> tensor<4xf32>
// CHECK: rota.all_reduce max %[[M]] axes [<tensor>]
rota.mesh <tensor = 2>
func.func @maximum(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}) {
  %a = rota.reduce max %x dims [1] : tensor<4x8xf32> -> tensor<4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]}
  return %a : tensor<4xf32>
}

// -----

// Parts of a vocabulary.
// CHECK-LABEL: func.func @vocabulary
// CHECK: %[[O:.*]] = rota.shard_offset axes [<tensor>] factor = 8 : tensor<i32>
// CHECK: rota.embedding %{{.*}}, %{{.*}} offset %[[O]] : (tensor<2x4xi32>, tensor<8x4xf32>, tensor<i32>) -> tensor<2x4x4xf32>
// CHECK: %[[P:.*]] = rota.shard_offset axes [<tensor>] factor = 8
// CHECK: %[[PART:.*]] = rota.cross_entropy_shard %{{.*}}, %{{.*}} offset %[[P]]
// CHECK: %[[PARTS:.*]] = rota.all_gather %[[PART]] dim = 2 axes [<tensor>] {{.*}} : tensor<2x4x2xf32> -> tensor<2x4x4xf32>
// CHECK: %[[SUM:.*]], %{{.*}}, %[[LSE:.*]] = rota.cross_entropy_merge %[[PARTS]], %{{.*}}
// CHECK: rota.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[LSE]] offset %{{.*}} -> tensor<2x4x8xf32>
// CHECK: rota.embedding_grad %{{.*}}, %{{.*}} offset %{{.*}} -> tensor<8x4xf32>
rota.mesh <tensor = 2>
func.func @vocabulary(%t: tensor<2x4xi32>, %table: tensor<16x4xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}, %logits: tensor<2x4x16xf32> {rota.sharding = #rota.sharding<[[], [], [tensor]]>}, %d: tensor<f32>) -> (tensor<2x4x4xf32>, tensor<f32>, tensor<2x4x16xf32> {rota.sharding = #rota.sharding<[[], [], [tensor]]>}, tensor<16x4xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) {
  %x = rota.embedding %t, %table : (tensor<2x4xi32>, tensor<16x4xf32>) -> tensor<2x4x4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
  %r = rota.reshard %x from <[[], [], []] unreduced [tensor]> to <[[], [], []]> reason "test" : tensor<2x4x4xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %t : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>) {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
  %dlogits = rota.cross_entropy_grad %d, %logits, %t, %lse : (tensor<f32>, tensor<2x4x16xf32>, tensor<2x4xi32>, tensor<2x4xf32>) -> tensor<2x4x16xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
  %dtable = rota.embedding_grad %t, %r : (tensor<2x4xi32>, tensor<2x4x4xf32>) -> tensor<16x4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
  return %r, %sum, %dlogits, %dtable : tensor<2x4x4xf32>, tensor<f32>, tensor<2x4x16xf32>, tensor<16x4xf32>
}

// -----

// Three parts of eleven entries are four, four and three: the padding of the last
// part is not counted.
// CHECK-LABEL: func.func @padded
// CHECK-SAME: tensor<4x4xf32>
// CHECK-SAME: tensor<2x4x4xf32>
// CHECK: rota.shard_offset axes [<tensor>] factor = 4
// CHECK: rota.cross_entropy_shard %{{.*}}, %{{.*}} offset %{{.*}} of 11 : (tensor<2x4x4xf32>
// CHECK: rota.cross_entropy_grad %{{.*}} offset %{{.*}} of 11 : {{.*}} -> tensor<2x4x4xf32>
// CHECK: rota.einsum {{.*}} -> tensor<4x4xf32>
rota.mesh <tensor = 3>
func.func @padded(%t: tensor<2x4xi32>, %table: tensor<11x4xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}, %x: tensor<2x4x4xf32>, %logits: tensor<2x4x11xf32> {rota.sharding = #rota.sharding<[[], [], [tensor]]>}, %d: tensor<f32>) -> (tensor<f32>, tensor<11x4xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) {
  %sum, %weight, %lse = rota.cross_entropy %logits, %t : (tensor<2x4x11xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>) {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
  %g = rota.cross_entropy_grad %d, %logits, %t, %lse : (tensor<f32>, tensor<2x4x11xf32>, tensor<2x4xi32>, tensor<2x4xf32>) -> tensor<2x4x11xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
  %dt = rota.einsum "bsn,bsk->nk" %g, %x : (tensor<2x4x11xf32>, tensor<2x4x4xf32>) -> tensor<11x4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>, #rota.dimension<[]>]}
  return %sum, %dt : tensor<f32>, tensor<11x4xf32>
}
