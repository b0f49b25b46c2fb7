// RUN: rota-opt %s --split-input-file --verify-differentiated | FileCheck %s

// A differentiated model passes and is left as it is.
// CHECK: func @backward
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return %dz : tensor<4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// So does one whose backward is split.
// CHECK: func @backward_weight
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward_input(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      return %dz, %dz : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward_weight(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward_input(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}
func.func @loss_backward_weight(%x: tensor<4x8xf32>, %t: tensor<4xi32>) {
  return
}
