// RUN: rota-opt %s --decompose --split-input-file | FileCheck %s

// The doc example: bf16 is widened before and rounded once after.
// CHECK-LABEL: func @f
// CHECK-SAME: (%[[GATE:.*]]: tensor<2x8xbf16>, %[[UP:.*]]: tensor<2x8xbf16>)
// CHECK: %[[G:.*]] = arith.extf %[[GATE]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[G]]
// CHECK: %[[EXP:.*]] = math.exp %[[MINUS]]
// CHECK: %[[DENOMINATOR:.*]] = arith.addf %{{.*}}, %[[EXP]]
// CHECK: %[[SILU:.*]] = arith.divf %[[G]], %[[DENOMINATOR]]
// CHECK: %[[U:.*]] = arith.extf %[[UP]]
// CHECK: %[[Y:.*]] = arith.mulf %[[SILU]], %[[U]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[Y]]
// CHECK: return %[[ROUNDED]]
func.func @f(%gate: tensor<2x8xbf16>, %up: tensor<2x8xbf16>) -> tensor<2x8xbf16> {
  %y = rota.activation silu %gate, %up : tensor<2x8xbf16>
  return %y : tensor<2x8xbf16>
}

// -----

// CHECK-LABEL: func @norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8xf32>, %[[GAIN:.*]]: tensor<8xf32>)
// CHECK: rota.reduce sum %{{.*}} dims [2]
// CHECK: arith.constant dense<8.0{{.*}}> : tensor<2x4xf32>
// CHECK: arith.constant dense<2.5{{.*}}> : tensor<2x4xf32>
// CHECK: %[[ROOT:.*]] = math.sqrt
// CHECK: %[[R:.*]] = arith.divf %{{.*}}, %[[ROOT]] : tensor<2x4xf32>
// CHECK: %[[G:.*]] = rota.broadcast %[[GAIN]] dims [2]
// CHECK: %[[B:.*]] = rota.broadcast %[[R]] dims [0, 1]
// CHECK: %[[SCALED:.*]] = arith.mulf %[[X]], %[[B]]
// CHECK: arith.mulf %[[SCALED]], %[[G]]
// CHECK-NOT: rms_norm
func.func @norm(%x: tensor<2x4x8xf32>, %gain: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %y = rota.rms_norm %x, %gain epsilon = 2.5e-01 : tensor<2x4x8xf32>, tensor<8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// The gain's cotangent is summed over the rows, in f32.
// CHECK-LABEL: func @norm_grad
// CHECK-NOT: rms_norm_grad
// CHECK: rota.reduce sum %{{.*}} dims [0, 1] : tensor<2x4x8xf32> -> tensor<8xf32>
// CHECK: arith.truncf %{{.*}} : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
func.func @norm_grad(%dy: tensor<2x4x8xbf16>, %x: tensor<2x4x8xbf16>, %gain: tensor<8xf32>) -> (tensor<2x4x8xbf16>, tensor<8xf32>) {
  %dx, %dgain = rota.rms_norm_grad %dy, %x, %gain epsilon = 1.0e-05 : (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<8xf32>) -> (tensor<2x4x8xbf16>, tensor<8xf32>)
  return %dx, %dgain : tensor<2x4x8xbf16>, tensor<8xf32>
}

// -----

// CHECK-LABEL: func @gated_grad
// CHECK-NOT: rota.
// CHECK: math.exp
// CHECK-NOT: rota.
// CHECK: return
func.func @gated_grad(%dy: tensor<2x8xf32>, %gate: tensor<2x8xf32>, %up: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %dgate, %dup = rota.activation_grad silu %dy, %gate, %up : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  return %dgate, %dup : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// A sum over a dimension in the middle, for which no kernel is formed.
// CHECK-LABEL: func @sum_inside
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4x8xbf16>)
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<bf16>
// CHECK: %[[ONES:.*]] = rota.broadcast %[[ONE]] dims [] : tensor<bf16> -> tensor<2x3x4xbf16>
// CHECK: rota.einsum "abcd,abc->abd" %[[X]], %[[ONES]]
func.func @sum_inside(%x: tensor<2x3x4x8xbf16>) -> tensor<2x3x8xbf16> {
  %y = rota.reduce sum %x dims [2] : tensor<2x3x4x8xbf16> -> tensor<2x3x8xbf16>
  return %y : tensor<2x3x8xbf16>
}
