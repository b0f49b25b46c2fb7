// RUN: rota-opt %s --differentiate --canonicalize --cse --verify-differentiated | FileCheck %s
// RUN: rota-opt %s --differentiate=split=true --canonicalize --cse --verify-differentiated | FileCheck %s --check-prefix=SPLIT

// Nothing that trains is before the first two layers: the first, which is frozen, has
// no product and no residual in its backward; the second makes the gradient of its
// first weight, but no cotangent of its input.

rota.param @table : tensor<32x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> frozen
rota.stack @layers layers = 3 pattern [@still, @lowest, @upper] {
  // CHECK-LABEL: rota.layer @still frozen_input
  // CHECK: func.func @forward({{.*}}) -> tensor<2x4x8xf32>
  // CHECK: func.func @backward({{.*}}) -> tensor<2x4x8xf32> {
  // CHECK-NEXT: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
  // CHECK-NEXT: return %[[ZERO]]
  rota.layer @still frozen_input {
    rota.param @first : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0> frozen
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %v = rota.read @first : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %v : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      %z = math.tanh %y : tensor<2x4x8xf32>
      return %z : tensor<2x4x8xf32>
    }
  }
  // CHECK-LABEL: rota.layer @lowest frozen_input
  // CHECK: func.func @backward
  // CHECK: rota.einsum "bsn,bsk->kn"
  // CHECK-NEXT: rota.accumulate @first
  // CHECK-NOT: rota.einsum
  // CHECK: return
  // SPLIT-LABEL: rota.layer @lowest frozen_input
  // SPLIT: func.func @backward_input
  // SPLIT-NOT: rota.einsum
  // SPLIT: func.func @backward_weight
  // SPLIT: rota.accumulate @first
  rota.layer @lowest frozen_input {
    rota.param @first : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %v = rota.read @first : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %v : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      return %y : tensor<2x4x8xf32>
    }
  }
  // CHECK-LABEL: rota.layer @upper {
  // CHECK: rota.einsum "bsn,kn->bsk"
  rota.layer @upper {
    rota.param @first : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %v = rota.read @first : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %v : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      return %y : tensor<2x4x8xf32>
    }
  }
}
func.func @embed(%tokens: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
  %table = rota.read @table : tensor<32x8xf32>
  %x = rota.embedding %tokens, %table : (tensor<2x4xi32>, tensor<32x8xf32>) -> tensor<2x4x8xf32>
  return %x : tensor<2x4x8xf32>
}
func.func @loss(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
  %table = rota.read @table : tensor<32x8xf32>
  %logits = rota.einsum "bsk,vk->bsv" %x, %table : (tensor<2x4x8xf32>, tensor<32x8xf32>) -> tensor<2x4x32xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x4x32xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}
