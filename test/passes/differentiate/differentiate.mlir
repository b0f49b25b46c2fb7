// RUN: rota-opt %s --split-input-file --differentiate | FileCheck %s

// The description's example with an embedding and a loss around it: a backward
// for each part, gradients accumulated right behind the op that makes them.

rota.param @table : tensor<32x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0>

// CHECK-LABEL: rota.layer @linear
rota.stack @layers layers = 4 pattern [@linear] {
  rota.layer @linear {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    // CHECK: func @forward(%[[X:.*]]: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>)
    // CHECK:   %[[Z:.*]] = math.tanh
    // CHECK:   return %[[Z]], %[[Z]]
    // CHECK: func @backward(%[[X:.*]]: tensor<2x4x8xf32>, %[[Z:.*]]: tensor<2x4x8xf32>, %[[DZ:.*]]: tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    // CHECK:   %[[W:.*]] = rota.read @weight
    // CHECK:   %[[ONE:.*]] = arith.constant dense<1.0
    // CHECK:   %[[SQUARE:.*]] = arith.mulf %[[Z]], %[[Z]]
    // CHECK:   %[[SLOPE:.*]] = arith.subf %[[ONE]], %[[SQUARE]]
    // CHECK:   %[[DY:.*]] = arith.mulf %[[DZ]], %[[SLOPE]]
    // CHECK:   %[[DX:.*]] = rota.einsum "bsn,kn->bsk" %[[DY]], %[[W]]
    // CHECK:   %[[DW:.*]] = rota.einsum "bsn,bsk->kn" %[[DY]], %[[X]]
    // CHECK-NEXT: rota.accumulate @weight, %[[DW]]
    // CHECK:   return %[[DX]]
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      %z = math.tanh %y : tensor<2x4x8xf32>
      return %z : tensor<2x4x8xf32>
    }
  }
}

// CHECK-LABEL: func @embed_backward
//  CHECK-SAME: (%[[TOKENS:.*]]: tensor<2x4xi32>, %[[DX:.*]]: tensor<2x4x8xf32>) {
//  CHECK-NEXT:   %[[G:.*]] = rota.embedding_grad %[[TOKENS]], %[[DX]]
//  CHECK-NEXT:   rota.accumulate @table, %[[G]]
//  CHECK-NEXT:   return
func.func @embed(%tokens: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
  %table = rota.read @table : tensor<32x8xf32>
  %x = rota.embedding %tokens, %table : (tensor<2x4xi32>, tensor<32x8xf32>) -> tensor<2x4x8xf32>
  return %x : tensor<2x4x8xf32>
}

// The forward part stands inside; the sum's cotangent is 1, the weight has none.
// CHECK-LABEL: func @loss_backward
//  CHECK-SAME: (%[[X:.*]]: tensor<2x4x8xf32>, %[[TARGETS:.*]]: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4x8xf32>)
//       CHECK:   %[[W:.*]] = rota.read @table
//       CHECK:   %[[LOGITS:.*]] = rota.einsum "bsk,vk->bsv" %[[X]], %[[W]]
//       CHECK:   %[[SUM:.*]], %[[WEIGHT:.*]], %[[LSE:.*]] = rota.cross_entropy %[[LOGITS]], %[[TARGETS]]
//       CHECK:   %[[ONE:.*]] = arith.constant dense<1.0{{.*}}> : tensor<f32>
//       CHECK:   %[[DLOGITS:.*]] = rota.cross_entropy_grad %[[ONE]], %[[LOGITS]], %[[TARGETS]], %[[LSE]]
//       CHECK:   %[[DX:.*]] = rota.einsum "bsv,vk->bsk" %[[DLOGITS]], %[[W]]
//       CHECK:   %[[DW:.*]] = rota.einsum "bsv,bsk->vk" %[[DLOGITS]], %[[X]]
//  CHECK-NEXT:   rota.accumulate @table, %[[DW]]
//       CHECK:   return %[[SUM]], %[[WEIGHT]], %[[DX]]
func.func @loss(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
  %table = rota.read @table : tensor<32x8xf32>
  %logits = rota.einsum "bsk,vk->bsv" %x, %table : (tensor<2x4x8xf32>, tensor<32x8xf32>) -> tensor<2x4x32xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x4x32xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}

// -----

// Values and parameters with several uses, in bf16: cotangents of a value are
// added in its type; a parameter's gradient is made and added in f32, the last
// read's contribution first, and accumulated once. A parameter that nothing
// depends on has no gradient.

// CHECK-LABEL: rota.layer @reused
rota.stack @layers layers = 1 pattern [@reused] {
  rota.layer @reused {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    rota.param @bias : tensor<8xf32> axes ["out"] init #rota.constant<value = 1.0>
    // CHECK: func @backward(%[[X:.*]]: tensor<2x4x8xbf16>, %[[Y:.*]]: tensor<2x4x8xbf16>, %[[DR:.*]]: tensor<2x4x8xbf16>)
    // CHECK:   %[[W0:.*]] = rota.read @weight
    // CHECK:   %[[W1:.*]] = rota.read @weight
    // CHECK:   %[[WIDE:.*]] = arith.extf %[[DR]]
    // CHECK:   %[[DB:.*]] = rota.reduce sum %[[WIDE]] dims [0, 1] : tensor<2x4x8xf32> -> tensor<8xf32>
    // CHECK-NEXT: rota.accumulate @bias, %[[DB]] : tensor<8xf32>
    // CHECK:   %[[DY0:.*]] = rota.einsum "bsn,kn->bsk" %[[DR]], %[[W1]] {{.*}} -> tensor<2x4x8xbf16>
    // CHECK:   %[[G1:.*]] = rota.einsum "bsn,bsk->kn" %[[DR]], %[[Y]] {{.*}} -> tensor<8x8xf32>
    // CHECK:   %[[DY:.*]] = arith.addf %[[DR]], %[[DY0]] : tensor<2x4x8xbf16>
    // CHECK:   %[[DX:.*]] = rota.einsum "bsn,kn->bsk" %[[DY]], %[[W0]]
    // CHECK:   %[[G0:.*]] = rota.einsum "bsn,bsk->kn" %[[DY]], %[[X]] {{.*}} -> tensor<8x8xf32>
    // CHECK:   %[[G:.*]] = arith.addf %[[G1]], %[[G0]] : tensor<8x8xf32>
    // CHECK-NEXT: rota.accumulate @weight, %[[G]]
    // CHECK-NOT: rota.accumulate
    // CHECK:   return %[[DX]]
    func.func @forward(%x: tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16> {
      %w0 = rota.read @weight : tensor<8x8xbf16>
      %y = rota.einsum "bsk,kn->bsn" %x, %w0 : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
      %w1 = rota.read @weight : tensor<8x8xbf16>
      %z = rota.einsum "bsk,kn->bsn" %y, %w1 : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
      %b = rota.read @bias : tensor<8xbf16>
      %rows = rota.broadcast %b dims [2] : tensor<8xbf16> -> tensor<2x4x8xbf16>
      %u = arith.addf %z, %rows : tensor<2x4x8xbf16>
      %r = arith.addf %y, %u : tensor<2x4x8xbf16>
      return %r : tensor<2x4x8xbf16>
    }
  }
}
// CHECK-LABEL: func @embed_backward
//  CHECK-NEXT:   return
func.func @embed(%x: tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16> {
  return %x : tensor<2x4x8xbf16>
}
// A loss that ignores its input has a zero cotangent.
// CHECK-LABEL: func @loss_backward
//       CHECK:   %[[ZERO:.*]] = arith.constant dense<0.0{{.*}}> : tensor<2x4x8xbf16>
//       CHECK:   return %{{.*}}, %{{.*}}, %[[ZERO]]
func.func @loss(%x: tensor<2x4x8xbf16>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = arith.constant dense<2.0> : tensor<f32>
  %weight = arith.constant dense<3.0> : tensor<f32>
  return %sum, %weight : tensor<f32>, tensor<f32>
}

// -----

// The gradient of a parameter's bf16 copy that products see through views is
// made in f32 by the product and is rounded nowhere.

// CHECK-LABEL: rota.layer @viewed
rota.stack @layers layers = 1 pattern [@viewed] {
  rota.layer @viewed {
    rota.param @weight : tensor<8x2x4xf32> axes ["in", "heads", "out"] init #rota.constant<value = 1.0>
    // CHECK: func @backward
    // CHECK:   %[[G:.*]] = rota.einsum "bsn,bsk->kn" {{.*}} -> tensor<8x8xf32>
    // CHECK:   %[[D:.*]] = rota.constrain %[[G]] <{{.*}}> : tensor<8x8xf32>
    // CHECK:   %[[V:.*]] = rota.reshape %[[D]] : tensor<8x8xf32> -> tensor<8x2x4xf32>
    // CHECK-NEXT: rota.accumulate @weight, %[[V]] : tensor<8x2x4xf32>
    func.func @forward(%x: tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16> {
      %w = rota.read @weight : tensor<8x2x4xbf16>
      %named = rota.name "weight" %w : tensor<8x2x4xbf16>
      %flat = rota.reshape %named : tensor<8x2x4xbf16> -> tensor<8x8xbf16>
      %constrained = rota.constrain %flat <[[], []]> : tensor<8x8xbf16>
      %y = rota.einsum "bsk,kn->bsn" %x, %constrained : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
      return %y : tensor<2x4x8xbf16>
    }
  }
}
func.func @embed(%x: tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16> {
  return %x : tensor<2x4x8xbf16>
}
func.func @loss(%x: tensor<2x4x8xbf16>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = arith.constant dense<2.0> : tensor<f32>
  %weight = arith.constant dense<3.0> : tensor<f32>
  return %sum, %weight : tensor<f32>, tensor<f32>
}

// -----

// The operands of a condition are saved, not the condition.

rota.stack @layers layers = 1 pattern [@larger] {
  rota.layer @larger {
    // CHECK: func @forward({{.*}}) -> (tensor<8xf32>, tensor<8xf32>)
    // CHECK:   %[[E:.*]] = math.exp
    // CHECK:   return %{{.*}}, %[[E]]
    // CHECK: func @backward(%[[X:.*]]: tensor<8xf32>, %[[E:.*]]: tensor<8xf32>, %{{.*}}: tensor<8xf32>)
    // CHECK:   arith.cmpf ogt, %[[X]], %[[E]]
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      %e = math.exp %x : tensor<8xf32>
      %c = arith.cmpf ogt, %x, %e : tensor<8xf32>
      %y = arith.select %c, %x, %e : tensor<8xi1>, tensor<8xf32>
      return %y : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %targets: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}

// -----

// A parameter that is used, but only where nothing depends on it smoothly, has
// the gradient 0.

// CHECK-LABEL: rota.layer @gated
rota.stack @layers layers = 1 pattern [@gated] {
  rota.layer @gated {
    rota.param @threshold : tensor<8xf32> axes ["choice"] init #rota.constant<value = 1.0>
    // CHECK: func @backward
    // CHECK: arith.select
    // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<8xf32>
    // CHECK-NEXT: rota.accumulate @threshold, %[[ZERO]] : tensor<8xf32>
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      %t = rota.read @threshold : tensor<8xf32>
      %above = arith.cmpf ogt, %x, %t : tensor<8xf32>
      %none = arith.constant dense<0.0> : tensor<8xf32>
      %y = arith.select %above, %x, %none : tensor<8xi1>, tensor<8xf32>
      return %y : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  %w = rota.reduce sum %t dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %w : tensor<f32>, tensor<f32>
}

// -----

// Learned positions in bf16: the numbers of the rows are constants, so all
// sequences share the rows, and the sum over the batch is not rounded.

rota.param @table : tensor<32x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0>
rota.param @positions : tensor<4x8xf32> axes ["positions", "embed"] init #rota.constant<value = 1.0>

// CHECK-LABEL: rota.layer @same
rota.stack @layers layers = 1 pattern [@same] {
  rota.layer @same {
    func.func @forward(%x: tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16> {
      return %x : tensor<2x4x8xbf16>
    }
  }
}

// CHECK-LABEL: func @embed_backward
//  CHECK-SAME: (%[[TOKENS:.*]]: tensor<2x4xi32>, %[[DX:.*]]: tensor<2x4x8xbf16>) {
//       CHECK:   %[[WIDE:.*]] = arith.extf %[[DX]]
//  CHECK-NEXT:   %[[SUM:.*]] = rota.reduce sum %[[WIDE]] dims [0]
//  CHECK-NEXT:   %[[ROWS:.*]] = rota.reshape %[[SUM]] : tensor<4x8xf32> -> tensor<1x4x8xf32>
//  CHECK-NEXT:   %[[G:.*]] = rota.embedding_grad %{{.*}}, %[[ROWS]]
//  CHECK-NEXT:   rota.accumulate @positions, %[[G]]
//       CHECK:   rota.embedding_grad %[[TOKENS]], %[[DX]] : (tensor<2x4xi32>, tensor<2x4x8xbf16>)
func.func @embed(%tokens: tensor<2x4xi32>) -> tensor<2x4x8xbf16> {
  %table = rota.read @table : tensor<32x8xbf16>
  %rows = rota.embedding %tokens, %table : (tensor<2x4xi32>, tensor<32x8xbf16>) -> tensor<2x4x8xbf16>
  %numbers = arith.constant dense<[[0, 1, 2, 3]]> : tensor<1x4xi32>
  %positions = rota.read @positions : tensor<4x8xbf16>
  %places = rota.embedding %numbers, %positions : (tensor<1x4xi32>, tensor<4x8xbf16>) -> tensor<1x4x8xbf16>
  %one = rota.reshape %places : tensor<1x4x8xbf16> -> tensor<4x8xbf16>
  %all = rota.broadcast %one dims [1, 2] : tensor<4x8xbf16> -> tensor<2x4x8xbf16>
  %x = arith.addf %rows, %all : tensor<2x4x8xbf16>
  return %x : tensor<2x4x8xbf16>
}

func.func @loss(%x: tensor<2x4x8xbf16>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
  %table = rota.read @table : tensor<32x8xbf16>
  %logits = rota.einsum "bsk,vk->bsv" %x, %table : (tensor<2x4x8xbf16>, tensor<32x8xbf16>) -> tensor<2x4x32xbf16>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x4x32xbf16>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}
