// RUN: rota-opt %s --split-input-file --propagate-shardings | FileCheck %s

// The description's example: rows from the argument, columns from the parameter.
// CHECK-LABEL: func.func @f
// CHECK-SAME: -> (tensor<4x16xf32> {rota.sharding = #rota.sharding<{{\[\[}}data], [tensor]]>})
// CHECK: rota.einsum
// CHECK-SAME: {rota.factors = [#rota.dimension<[data]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
rota.mesh <data = 2, tensor = 2>
rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [16, 8] compute <[[tensor], []]> storage <[[tensor], []]> optimizer <[[tensor], []]>>
func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) -> tensor<4x16xf32> {
  %w = rota.read @up : tensor<16x8xf32>
  %y = rota.einsum "bk,nk->bn" %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

// From results backwards, through a reshape whose heads are the major factor,
// into an open argument; an axis too large for the heads is cut, and what is
// left does not divide the size of a head.
// CHECK-LABEL: func.func @heads
// CHECK-SAME: tensor<2x16xf32> {rota.sharding = #rota.sharding<{{\[\[}}], [tensor:(1)2]]>}
// CHECK: rota.reshape
// CHECK-SAME: {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor:(1)2]>, #rota.dimension<[]>]}
rota.mesh <tensor = 4>
func.func @heads(%x: tensor<2x16xf32>) -> (tensor<2x2x8xf32> {rota.sharding = #rota.sharding<[[], [tensor:(1)2], []]>}) {
  %y = rota.reshape %x : tensor<2x16xf32> -> tensor<2x2x8xf32>
  return %y : tensor<2x2x8xf32>
}

// -----

// `tensor` would divide both dimensions of the product: a parameter asks for the
// second, an argument of the function for the first.
// CHECK-LABEL: func.func @conflict
// CHECK: rota.einsum
// CHECK-SAME: {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
rota.mesh <tensor = 2>
rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [16, 8] compute <[[tensor], []]> storage <[[tensor], []]> optimizer <[[tensor], []]>>
func.func @conflict(%x: tensor<64x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) -> tensor<64x16xf32> {
  %w = rota.read @up : tensor<16x8xf32>
  %y = rota.einsum "bk,nk->bn" %x, %w : (tensor<64x8xf32>, tensor<16x8xf32>) -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

// -----

// Equal priorities: %x is larger, so its rows stay where they are.
// CHECK-LABEL: func.func @bytes
// CHECK: rota.einsum
// CHECK-SAME: {rota.factors = [#rota.dimension<[tensor]>, #rota.dimension<[]>, #rota.dimension<[]>]}
rota.mesh <tensor = 2>
func.func @bytes(%x: tensor<64x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}, %w: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) -> tensor<64x16xf32> {
  %y = rota.einsum "bk,nk->bn" %x, %w : (tensor<64x8xf32>, tensor<16x8xf32>) -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

// -----

// Dimensions that may not be divided: the pairs of a rotation, an odd size, an axis that the
// value's sharding keeps out.
// CHECK-LABEL: func.func @whole
// CHECK: rota.rope
// CHECK-NOT: rota.factors
// CHECK: math.exp
// CHECK-NOT: rota.factors
// CHECK: math.tanh
// CHECK-NOT: rota.factors
// CHECK: return
rota.mesh <tensor = 2>
func.func @whole(%x: tensor<2x3x1x8xf32> {rota.sharding = #rota.sharding<[[], [], [], [tensor]]>}, %table: tensor<3x4x2xf32>, %odd: tensor<3xf32> {rota.sharding = #rota.sharding<[[tensor]]>}, %closed: tensor<4xf32> {rota.sharding = #rota.sharding<[[?]] replicated [tensor]>}) -> (tensor<2x3x1x8xf32>, tensor<3xf32>, tensor<4xf32>) {
  %y = rota.rope %x, %table : tensor<2x3x1x8xf32>, tensor<3x4x2xf32>
  %z = math.exp %odd : tensor<3xf32>
  %t = math.tanh %closed : tensor<4xf32>
  return %y, %z, %t : tensor<2x3x1x8xf32>, tensor<3xf32>, tensor<4xf32>
}

// -----

// A residual has one sharding in forward and in backward.
// CHECK-LABEL: func.func @backward
// CHECK-SAME: %{{[^:]*}}: tensor<2x4x8xf32> {rota.sharding = #rota.sharding<{{\[\[}}data], [], []]>}
// CHECK-SAME: %{{[^:]*}}: tensor<2x4x16xf32> {rota.sharding = #rota.sharding<{{\[\[}}data], [], [tensor]]>}
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@block] {
  rota.layer @block {
    rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [16, 8] compute <[[tensor], []]> storage <[[tensor], []]> optimizer <[[tensor], []]>>
    func.func @backward(%x: tensor<2x4x8xf32> {rota.sharding = #rota.sharding<[[data], [], []]>}, %h: tensor<2x4x16xf32>, %dy: tensor<2x4x8xf32> {rota.sharding = #rota.sharding<[[data], [], []]>}) -> tensor<2x4x8xf32> {
      return %dy : tensor<2x4x8xf32>
    }
    func.func @forward(%x: tensor<2x4x8xf32> {rota.sharding = #rota.sharding<[[data], [], []]>}) -> (tensor<2x4x8xf32> {rota.sharding = #rota.sharding<[[data], [], []]>}, tensor<2x4x16xf32>) {
      %w = rota.read @up : tensor<16x8xf32>
      %h = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
      %y = rota.einsum "bsn,nk->bsk" %h, %w : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
      return %y, %h : tensor<2x4x8xf32>, tensor<2x4x16xf32>
    }
  }
}
