// RUN: rota-opt %s --differentiate="remat=none" | FileCheck %s
// RUN: rota-opt %s --differentiate="split=true remat=full" | FileCheck %s --check-prefix=SPLIT

// The mean of an observation is known before the step: a constant, which
// backward reads again instead of keeping it. What is observed is observed in
// forward alone.

// CHECK:     func @forward
// CHECK:       rota.observe "load"
// CHECK:       rota.observed_mean "load" : tensor<8xf32>
// CHECK:     func @backward(%[[X:.*]]: tensor<2x4x8xf32>, %[[DY:.*]]: tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
// CHECK-NOT:   rota.observe "load"
// CHECK-DAG:   %[[C:.*]] = rota.auxiliary_cotangent "balance" : tensor<f32>
// CHECK-DAG:   %[[M:.*]] = rota.observed_mean "load" : tensor<8xf32>
// CHECK:       %[[D:.*]] = rota.einsum ",x->x" %[[C]], %[[M]]
// CHECK:     func @loss

// SPLIT:     func @backward_input
// SPLIT-NOT:   rota.observe "load"
// SPLIT:       rota.observed_mean "load" : tensor<8xf32>
// SPLIT:     func @backward_weight
// SPLIT-NOT:   rota.observe "load"

rota.stack @layers layers = 2 pattern [@balanced] {
  rota.layer @balanced {
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %weights, %experts = rota.route %x scaling = 1.0 : (tensor<2x4x8xf32>) -> (tensor<2x4x2xf32>, tensor<2x4x2xi32>)
      %places, %counts = rota.expert_places %experts rows = 8 : tensor<2x4x2xi32> -> tensor<2x8xi32>
      rota.observe "load" %counts : tensor<2x8xi32>
      %scores = rota.reduce sum %x dims [0, 1] : tensor<2x4x8xf32> -> tensor<8xf32>
      %mean = rota.observed_mean "load" : tensor<8xf32>
      %sum = rota.einsum "x,x->" %scores, %mean : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
      rota.auxiliary_loss "balance" %sum weight = 64.0 coefficient = 0.5 : tensor<f32>
      return %x : tensor<2x4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  return %x : tensor<2x4x8xf32>
}
func.func @loss(%x: tensor<2x4x8xf32>, %targets: tensor<2x4x8xf32>) -> (tensor<f32>, tensor<f32>) {
  %d = arith.subf %x, %targets : tensor<2x4x8xf32>
  %sum = rota.reduce sum %d dims [0, 1, 2] : tensor<2x4x8xf32> -> tensor<f32>
  %weight = rota.reduce sum %targets dims [0, 1, 2] : tensor<2x4x8xf32> -> tensor<f32>
  return %sum, %weight : tensor<f32>, tensor<f32>
}
