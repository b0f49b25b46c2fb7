// RUN: rota-opt %s --differentiate="remat=full" | FileCheck %s
// RUN: rota-opt %s --differentiate="split=true remat=none" | FileCheck %s --check-prefix=SPLIT

// An auxiliary loss is added in forward alone. Its sum's cotangent is known at
// the start of the step, for which there is a function of the loss's weight; in
// a split backward both halves read it; it is no cotangent residual.

// CHECK:     func @forward
// CHECK:       rota.auxiliary_loss "squares" %{{.*}} weight = 6.400000e+01 coefficient = 5.000000e-01 : tensor<f32>
// CHECK:     func @backward(%[[X:.*]]: tensor<2x4x8xf32>, %[[DY:.*]]: tensor<2x4x8xf32>)
// CHECK-NOT:   rota.auxiliary_loss
// CHECK:       %[[Y:.*]] = rota.einsum "bsk,kn->bsn" %[[X]]
// CHECK:       %[[C:.*]] = rota.auxiliary_cotangent "squares" : tensor<f32>
// CHECK:       %[[D:.*]] = rota.einsum ",bsk->bsk" %[[C]], %[[Y]]
// CHECK:       rota.accumulate @weight
// CHECK:     func @loss_weight(%[[T:.*]]: tensor<2x4x8xf32>) -> tensor<f32> {
// CHECK-NEXT:  %[[W:.*]] = rota.reduce sum %[[T]] dims [0, 1, 2]
// CHECK-NEXT:  return %[[W]]

// SPLIT:     func @backward_input(%{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>)
// SPLIT:       rota.auxiliary_cotangent "squares"
// SPLIT:     func @backward_weight(%{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<2x4x8xf32>)

rota.stack @layers layers = 2 pattern [@linear] {
  rota.layer @linear {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      %s = rota.einsum "bsk,bsk->" %y, %y : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<f32>
      rota.auxiliary_loss "squares" %s weight = 64.0 coefficient = 0.5 : tensor<f32>
      return %y : tensor<2x4x8xf32>
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
