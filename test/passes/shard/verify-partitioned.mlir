// RUN: rota-opt %s --verify-partitioned --split-input-file | FileCheck %s

// The documentation's example.
// CHECK-LABEL: module
// CHECK: rota.mesh
rota.mesh <data = 2, tensor = 2>
rota.param @table : tensor<32x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> placement <whole [64, 8] compute <[[tensor], []] unreduced [data]> storage <[[tensor], []]> optimizer <[[tensor], [data]]>>
rota.stack @layers layers = 4 pattern [@linear] {
  rota.layer @linear {
    rota.param @weight : tensor<8x4xf32> axes ["in", "out"] init #rota.constant<value = 1.0> placement <whole [8, 8] compute <[[], [tensor]] unreduced [data]> storage <[[], [tensor]]> optimizer <[[data], [tensor]]>>
    func.func @forward(%x: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
      %w = rota.read @weight : tensor<8x4xf32>
      %h = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<1x4x8xf32>, tensor<8x4xf32>) -> tensor<1x4x4xf32>
      %y = rota.all_gather %h dim = 2 axes [<tensor>] reason "the layer's result is whole" : tensor<1x4x4xf32> -> tensor<1x4x8xf32>
      return %y : tensor<1x4x8xf32>
    }
  }
}
func.func @embed(%tokens: tensor<1x4xi32>) -> tensor<1x4x8xf32> {
  %table = rota.read @table : tensor<32x8xf32>
  %offset = rota.shard_offset axes [<tensor>] factor = 32 : tensor<i32>
  %rows = rota.embedding %tokens, %table offset %offset : (tensor<1x4xi32>, tensor<32x8xf32>, tensor<i32>) -> tensor<1x4x8xf32>
  %x = rota.all_reduce sum %rows axes [<tensor>] reason "rows of one rank each" : tensor<1x4x8xf32>
  return %x : tensor<1x4x8xf32>
}
func.func @loss(%x: tensor<1x4x8xf32>, %targets: tensor<1x4xi32>) -> (tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [data]>}, tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [data]>}) {
  %sum, %weight, %lse = rota.cross_entropy %x, %targets : (tensor<1x4x8xf32>, tensor<1x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<1x4xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}

// -----

// With backward functions, split and not, residuals, and sub-axes in the border.
// CHECK-LABEL: module
rota.mesh <data = 2, tensor = 4>
rota.stack @layers layers = 4 pattern [@plain, @split] {
  rota.layer @plain {
    func.func @forward(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32> {rota.sharding = #rota.sharding<[[data], [tensor]]>}) {
      %r = rota.shard_slice %x dim = 1 axes [<data>] reason "test" : tensor<2x4xf32> -> tensor<2x2xf32>
      return %x, %r : tensor<2x4xf32>, tensor<2x2xf32>
    }
    func.func @backward(%x: tensor<2x4xf32>, %r: tensor<2x2xf32> {rota.sharding = #rota.sharding<[[data, ?], [tensor:(1)2, tensor:(2)2]]>}, %dy: tensor<2x4xf32>) -> tensor<2x4xf32> {
      return %dy : tensor<2x4xf32>
    }
  }
  rota.layer @split {
    func.func @forward(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>) {
      %r = rota.reduce sum %x dims [1] : tensor<2x4xf32> -> tensor<2xf32>
      return %x, %r : tensor<2x4xf32>, tensor<2xf32>
    }
    func.func @backward_input(%x: tensor<2x4xf32>, %r: tensor<2xf32>, %dy: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>) {
      %c = rota.reduce sum %dy dims [0] : tensor<2x4xf32> -> tensor<4xf32>
      return %dy, %c : tensor<2x4xf32>, tensor<4xf32>
    }
    func.func @backward_weight(%x: tensor<2x4xf32>, %r: tensor<2xf32>, %c: tensor<4xf32>) {
      return
    }
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @embed_backward(tensor<2xi32>, tensor<2x4xf32>)
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)
func.func private @loss_backward(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
