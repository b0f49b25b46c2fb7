// RUN: rota-opt %s -build-updates="optimizer=adamw gradient-dtype=bf16" | FileCheck %s

// Accumulators of bf16 where products of bf16 alone add to them: not where a sum
// over rows does, where both do, and where products are of f32.
// CHECK: rota.param @product {{.*}} {rota.gradient = bf16, rota.squares = @squares_0, rota.update = @update_0}
// CHECK: rota.param @rows {{.*}} {rota.squares = @squares_1, rota.update = @update_1}
// CHECK: rota.param @both {{.*}} {rota.squares = @squares_2, rota.update = @update_2}
// CHECK: rota.param @wide {{.*}} {rota.squares = @squares_3, rota.update = @update_3}
// CHECK: func.func @update_0(%{{[^:]*}}: tensor<4x4xf32>, %[[G:[^:]*]]: tensor<4x4xbf16>
// CHECK-SAME: -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xbf16>, tensor<4x4xbf16>)
// CHECK: arith.extf %[[G]] : tensor<4x4xbf16> to tensor<4x4xf32>
// CHECK: func.func @squares_0(%[[G:.*]]: tensor<4x4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[G]]
// CHECK-NEXT: arith.mulf %[[W]], %[[W]]
// CHECK: func.func @update_2({{.*}} -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xbf16>)
rota.param @product : tensor<4x4xf32> axes ["x", "y"] init #rota.constant<value = 1.0>
rota.param @rows : tensor<4xf32> axes ["x"] init #rota.constant<value = 1.0>
rota.param @both : tensor<4x4xf32> axes ["x", "y"] init #rota.constant<value = 1.0>
rota.param @wide : tensor<4x4xf32> axes ["x", "y"] init #rota.constant<value = 1.0>
func.func @f(%x: tensor<2x4xbf16>, %dy: tensor<2x4xbf16>) -> (tensor<4x4xbf16>, tensor<4xbf16>, tensor<4x4xbf16>, tensor<4x4xf32>) {
  %p = rota.read @product : tensor<4x4xbf16>
  %r = rota.read @rows : tensor<4xbf16>
  %b = rota.read @both : tensor<4x4xbf16>
  %w = rota.read @wide : tensor<4x4xf32>
  %dp = rota.einsum "bk,bn->kn" %x, %dy : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<4x4xf32>
  rota.accumulate @product, %dp : tensor<4x4xf32>
  %wide = arith.extf %dy : tensor<2x4xbf16> to tensor<2x4xf32>
  %dr = rota.reduce sum %wide dims [0] : tensor<2x4xf32> -> tensor<4xf32>
  rota.accumulate @rows, %dr : tensor<4xf32>
  rota.accumulate @both, %dp : tensor<4x4xf32>
  rota.accumulate @wide, %dp : tensor<4x4xf32>
  return %p, %r, %b, %w : tensor<4x4xbf16>, tensor<4xbf16>, tensor<4x4xbf16>, tensor<4x4xf32>
}
func.func @g(%x: tensor<4x4xf32>) {
  rota.accumulate @both, %x : tensor<4x4xf32>
  return
}
