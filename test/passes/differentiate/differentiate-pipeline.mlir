// RUN: rota-opt %s --differentiate-pipeline="remat=minimal extract=logits" | FileCheck %s
// RUN: rota-opt %s --schedule-layers="stages=2 microbatches=2 split-backward" --differentiate-pipeline | FileCheck %s --check-prefix=SPLIT
// RUN: not rota-opt %s --schedule-layers="stages=2 microbatches=2" --differentiate-pipeline="split=true" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: rota-opt %s --differentiate-pipeline="split=true" | FileCheck %s --check-prefix=SPLIT
// RUN: rota-opt %s --schedule-layers="stages=2 microbatches=2" --differentiate-pipeline="remat=1:full" | FileCheck %s --check-prefix=STAGES

// One pipeline from a model as built: names are erased, the value to extract
// has a function, and unused cotangents are gone.
// CHECK-NOT:   rota.name
// CHECK-LABEL: func @backward
// CHECK-LABEL: func @embed_backward
// CHECK-LABEL: func @logits
// CHECK-LABEL: func @loss_backward
//       CHECK:   %[[Z:.*]] = math.tanh
//       CHECK:   %[[SUM:.*]], %{{.*}}, %[[LSE:.*]] = rota.cross_entropy %[[Z]]
//       CHECK:   rota.cross_entropy_grad %{{.*}}, %[[Z]], %{{.*}}, %[[LSE]]
// CHECK-NOT:   rota.name

// SPLIT-LABEL: func @backward_input
// SPLIT-LABEL: func @backward_weight
//   SPLIT-NOT: func @logits

// TWICE: error: expected no 'split' for a module with a timeline, which says it

// A policy per stage: a kind of layers for each.
// STAGES: rota.stack @layers layers = 2 pattern [@mlp, @mlp_stage1]
// STAGES: func @forward(%{{.*}}) -> (tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
// STAGES: func @forward(%{{.*}}) -> tensor<2x4x8xf32>

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
