// RUN: rota-opt %s --differentiate --canonicalize --cse --verify-differentiated | FileCheck %s
// RUN: rota-opt %s --differentiate=split=true --canonicalize --cse --verify-differentiated | FileCheck %s --check-prefix=SPLIT

// Frozen parameters have no gradients: their products are not there, and their
// operands are no residuals. The tanh between both weights is the one value that
// backward needs, since the first weight is not frozen.

// CHECK-LABEL: rota.layer @linear
// CHECK: func.func @forward({{.*}}) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>)
// CHECK: func.func @backward(%[[X:.*]]: tensor<2x4x8xf32>, %[[Z:.*]]: tensor<2x4x8xf32>, %[[DY:.*]]: tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
// CHECK: rota.accumulate @first
// CHECK-NOT: rota.accumulate
// SPLIT: func.func @backward_input
// SPLIT: func.func @backward_weight
// SPLIT: rota.accumulate @first
// SPLIT-NOT: rota.accumulate
rota.param @table : tensor<32x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> frozen
rota.stack @layers layers = 4 pattern [@linear] {
  rota.layer @linear {
    rota.param @first : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    rota.param @second : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0> frozen
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %v = rota.read @first : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %v : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      %z = math.tanh %y : tensor<2x4x8xf32>
      %w = rota.read @second : tensor<8x8xf32>
      %u = rota.einsum "bsk,kn->bsn" %z, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      return %u : tensor<2x4x8xf32>
    }
  }
}

// CHECK-LABEL: func.func @embed_backward
// CHECK-NEXT: return
func.func @embed(%tokens: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
  %table = rota.read @table : tensor<32x8xf32>
  %x = rota.embedding %tokens, %table : (tensor<2x4xi32>, tensor<32x8xf32>) -> tensor<2x4x8xf32>
  return %x : tensor<2x4x8xf32>
}

// The head's weight is the table: the cotangent of the input alone is left.
// CHECK-LABEL: func.func @loss_backward
// CHECK: rota.einsum "bsv,vk->bsk"
// CHECK-NOT: rota.einsum
// CHECK: return
// SPLIT-LABEL: func.func @loss_backward_weight
// SPLIT-NEXT: return
func.func @loss(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
  %table = rota.read @table : tensor<32x8xf32>
  %logits = rota.einsum "bsk,vk->bsv" %x, %table : (tensor<2x4x8xf32>, tensor<32x8xf32>) -> tensor<2x4x32xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x4x32xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}
