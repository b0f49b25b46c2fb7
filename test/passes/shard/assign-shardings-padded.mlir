// RUN: rota-opt %s --assign-shardings=mesh=tensor=4 | FileCheck %s

// A gate keeps zeros and a product does not count them, so that the last of four
// parts may be short: 3, 3, 3 and 1.
// CHECK: rota.param @gate
// CHECK-SAME: compute<{{\[\[}}tensor], []]>
rota.param @gate : tensor<10x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0>
func.func @gated(%x: tensor<12x8xf32>) -> tensor<12x8xf32> {
  %w = rota.read @gate : tensor<10x8xf32>
  %h = rota.einsum "bk,nk->bn" %x, %w : (tensor<12x8xf32>, tensor<10x8xf32>) -> tensor<12x10xf32>
  %g = rota.activation silu %h, %h : tensor<12x10xf32>
  %y = rota.einsum "bn,nk->bk" %g, %w : (tensor<12x10xf32>, tensor<10x8xf32>) -> tensor<12x8xf32>
  return %y : tensor<12x8xf32>
}

// A cap divides zeros by a number and leaves them zero.
// CHECK: rota.param @table
// CHECK-SAME: compute<{{\[\[}}tensor], []]>
rota.param @table : tensor<10x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0>
func.func @capped(%x: tensor<2x6x8xf32>, %t: tensor<2x6xi32>) -> (tensor<f32>, tensor<f32>) {
  %w = rota.read @table : tensor<10x8xf32>
  %z = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x6x8xf32>, tensor<10x8xf32>) -> tensor<2x6x10xf32>
  %cap = arith.constant dense<30.0> : tensor<2x6x10xf32>
  %share = arith.divf %z, %cap : tensor<2x6x10xf32>
  %bent = math.tanh %share : tensor<2x6x10xf32>
  %logits = arith.mulf %bent, %cap : tensor<2x6x10xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %t : (tensor<2x6x10xf32>, tensor<2x6xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x6xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}
