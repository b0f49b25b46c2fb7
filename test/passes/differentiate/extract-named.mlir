// RUN: rota-opt %s --split-input-file --extract-named=extract=logits | FileCheck %s

// The description's example: the value depends on the activation alone.
// CHECK-LABEL: func @logits
//  CHECK-SAME: (%[[X:.*]]: tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
//  CHECK-NEXT:   %[[Z:.*]] = math.tanh %[[X]]
//  CHECK-NEXT:   return %[[Z]]
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      return %x : tensor<2x4x8xf32>
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

// -----

// A value that depends on parameters and targets.
// CHECK-LABEL: func @logits
//  CHECK-SAME: (%[[X:.*]]: tensor<8xf32>, %[[T:.*]]: tensor<8xf32>) -> tensor<8xf32>
//       CHECK:   %[[G:.*]] = rota.read @gain
//       CHECK:   %[[D:.*]] = arith.subf %[[X]], %[[T]]
//       CHECK:   %[[E:.*]] = arith.mulf %[[D]], %[[G]]
//   CHECK-NOT:   arith.
//       CHECK:   return %[[E]]
rota.param @gain : tensor<8xf32> axes ["embed"] init #rota.constant<value = 1.0>
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %g = rota.read @gain : tensor<8xf32>
  %d = arith.subf %x, %t : tensor<8xf32>
  %e = arith.mulf %d, %g : tensor<8xf32>
  %n = rota.name "logits" %e : tensor<8xf32>
  %q = arith.mulf %n, %n : tensor<8xf32>
  %s = rota.reduce sum %q dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %s : tensor<f32>, tensor<f32>
}
