// SPDX-License-Identifier: Apache-2.0
//
// The smallest model: y = x W in each of eight layers, trained towards targets
// of its own. Two sequences of four rows of eight numbers make a microbatch.

rota.stack @layers layers = 8 pattern [@linear] {
  rota.layer @linear {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.normal<mean = 0.0, deviation = 0.35>
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      return %y : tensor<2x4x8xf32>
    }
  }
}

func.func @embed(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  return %x : tensor<2x4x8xf32>
}

// The sum over rows of the squared distance to the target, and the number of
// rows.
func.func @loss(%y: tensor<2x4x8xf32>, %target: tensor<2x4x8xf32>) -> (tensor<f32>, tensor<f32>) {
  %difference = arith.subf %y, %target : tensor<2x4x8xf32>
  %square = arith.mulf %difference, %difference : tensor<2x4x8xf32>
  %sum = rota.reduce sum %square dims [0, 1, 2] : tensor<2x4x8xf32> -> tensor<f32>
  %rows = arith.constant dense<8.0> : tensor<f32>
  return %sum, %rows : tensor<f32>, tensor<f32>
}
