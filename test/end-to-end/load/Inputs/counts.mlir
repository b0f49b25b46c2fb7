// SPDX-License-Identifier: Apache-2.0
//
// Two kinds of layers that observe tables which do not depend on data. A
// microbatch of two sequences adds up to the columns 3 5 2 6 and 1 1 1 9.

rota.stack @layers layers = 2 pattern [@first, @second] {
  rota.layer @first {
    rota.param @weight : tensor<8x8xf32> axes ["in", "mlp"] init #rota.normal<mean = 0.0, deviation = 0.35>
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %counts = arith.constant dense<[[1, 3, 0, 4], [2, 2, 2, 2]]> : tensor<2x4xi32>
      rota.observe "expert_load" %counts each = 10 : tensor<2x4xi32>
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      return %y : tensor<2x4x8xf32>
    }
  }
  rota.layer @second {
    rota.param @weight : tensor<8x8xf32> axes ["in", "mlp"] init #rota.normal<mean = 0.0, deviation = 0.35>
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %counts = arith.constant dense<[[0, 0, 0, 8], [1, 1, 1, 1]]> : tensor<2x4xi32>
      rota.observe "expert_load" %counts each = 12 : tensor<2x4xi32>
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      return %y : tensor<2x4x8xf32>
    }
  }
}

func.func @embed(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  return %x : tensor<2x4x8xf32>
}

func.func @loss(%y: tensor<2x4x8xf32>, %target: tensor<2x4x8xf32>) -> (tensor<f32>, tensor<f32>) {
  %difference = arith.subf %y, %target : tensor<2x4x8xf32>
  %square = arith.mulf %difference, %difference : tensor<2x4x8xf32>
  %sum = rota.reduce sum %square dims [0, 1, 2] : tensor<2x4x8xf32> -> tensor<f32>
  %rows = arith.constant dense<8.0> : tensor<f32>
  return %sum, %rows : tensor<f32>, tensor<f32>
}
