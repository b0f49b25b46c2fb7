// RUN: rota-opt %s --differentiate="split=true remat=full" | FileCheck %s

// Input and weight halves. What both need crosses as a cotangent residual: the
// seed, the recomputed tanh, and a cotangent, without its view. The weight half
// reads no parameter.

// CHECK:     func @backward_input(%[[X:.*]]: tensor<2x4x8xf32>, %[[DY:.*]]: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
// CHECK:       %[[T:.*]] = math.tanh
// CHECK:       %[[DUVIEW:.*]] = rota.reshape %[[DU:.*]] : tensor<8x16xf32> -> tensor<2x4x16xf32>
// CHECK-NEXT:  rota.einsum "bsn,nk->bsk" %[[DUVIEW]]
// CHECK:       %[[DX:.*]] = arith.addf %[[DY]]
// CHECK-NOT:   rota.accumulate
// CHECK:       return %[[DX]], %[[DY]], %[[T]], %[[DU]]
// CHECK:     func @backward_weight(%[[X:.*]]: tensor<2x4x8xf32>, %[[DY:.*]]: tensor<2x4x8xf32>, %[[T:.*]]: tensor<8x16xf32>, %[[DU:.*]]: tensor<8x16xf32>) {
// CHECK-NEXT:  %[[V:.*]] = rota.reshape %[[T]]
// CHECK-NEXT:  %[[GDOWN:.*]] = rota.einsum "bsn,bsk->nk" %[[DY]], %[[V]]
// CHECK-NEXT:  rota.accumulate @down, %[[GDOWN]]
// CHECK-NEXT:  %[[DUVIEW:.*]] = rota.reshape %[[DU]]
// CHECK-NEXT:  %[[GUP:.*]] = rota.einsum "bsn,bsk->nk" %[[DUVIEW]], %[[X]]
// CHECK-NEXT:  rota.accumulate @up, %[[GUP]]
// CHECK-NEXT:  return

// The loss is split too; it has no parameter here.
// CHECK:     func @loss_backward_input({{.*}}) -> (tensor<f32>, tensor<f32>, tensor<2x4x8xf32>) {
// CHECK:     func @loss_backward_weight(%{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<2x4xi32>) {
// CHECK-NEXT:  return

rota.stack @layers layers = 2 pattern [@mlp] {
  rota.layer @mlp {
    rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0>
    rota.param @down : tensor<8x16xf32> axes ["embed", "mlp"] init #rota.constant<value = 1.0>
    func.func @forward(%input: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %x = rota.name "decoder_layer_input" %input : tensor<2x4x8xf32>
      %wup = rota.read @up : tensor<16x8xf32>
      %u = rota.einsum "bsk,nk->bsn" %x, %wup : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
      %rows = rota.reshape %u : tensor<2x4x16xf32> -> tensor<8x16xf32>
      %named = rota.name "mlpwi" %rows : tensor<8x16xf32>
      %a = math.exp %named : tensor<8x16xf32>
      %t = math.tanh %a : tensor<8x16xf32>
      %v = rota.reshape %t : tensor<8x16xf32> -> tensor<2x4x16xf32>
      %wdown = rota.read @down : tensor<8x16xf32>
      %d = rota.einsum "bsk,nk->bsn" %v, %wdown : (tensor<2x4x16xf32>, tensor<8x16xf32>) -> tensor<2x4x8xf32>
      %o = rota.name "mlpwo" %d : tensor<2x4x8xf32>
      %y = arith.addf %x, %o : tensor<2x4x8xf32>
      return %y : tensor<2x4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  return %x : tensor<2x4x8xf32>
}
func.func @loss(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
  %z = math.tanh %x : tensor<2x4x8xf32>
  %logits = rota.name "logits" %z : tensor<2x4x8xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}
