// RUN: rota-opt %s --pad-rows --split-input-file | FileCheck %s

// The doc example.
// CHECK-LABEL: func @f
// CHECK: %[[L:.*]] = rota.einsum {{.*}} -> tensor<2x16x61xf32, #rota.row_stride<64>>
// CHECK: rota.cross_entropy %[[L]], {{.*}} : (tensor<2x16x61xf32, #rota.row_stride<64>>, tensor<2x16xi32>)
func.func @f(%x: tensor<2x16x8xf32>, %w: tensor<61x8xf32>, %targets: tensor<2x16xi32>) -> tensor<f32> {
  %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xf32>, tensor<61x8xf32>) -> tensor<2x16x61xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x61xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return %sum : tensor<f32>
}

// -----

// Logits with a soft cap and their derivative, in three products and two
// elementwise kernels. A scalar and a row that all rows share stay as they are.
// Rows of 50260 f32 alone would be aligned; those of bf16 are not.
// CHECK-LABEL: func @loss_backward
// CHECK: rota.einsum {{.*}} -> tensor<2x16x50260xbf16, #rota.row_stride<50304>>
// CHECK: rota.launch @cap {{.*}} : (tensor<2x16x50260xbf16, #rota.row_stride<50304>>, tensor<50260xf32>) -> tensor<2x16x50260xf32, #rota.row_stride<50304>>
// CHECK: rota.cross_entropy_grad {{.*}} -> tensor<2x16x50260xf32, #rota.row_stride<50304>>
// CHECK: rota.launch @cap_grad {{.*}} -> tensor<2x16x50260xbf16, #rota.row_stride<50304>>
// CHECK: rota.einsum "bsn,nk->bsk" {{.*}} : (tensor<2x16x50260xbf16, #rota.row_stride<50304>>, tensor<50260x8xbf16>) -> tensor<2x16x8xbf16>
// CHECK: rota.einsum "bsn,bsk->nk" {{.*}} : (tensor<2x16x50260xbf16, #rota.row_stride<50304>>, tensor<2x16x8xbf16>) -> tensor<50260x8xf32>
rota.kernel @cap operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>] results [#rota.result<row>] {
^bb0(%x: tensor<50260xbf16>, %scale: tensor<50260xf32>):
  %w = arith.extf %x : tensor<50260xbf16> to tensor<50260xf32>
  %t = math.tanh %w : tensor<50260xf32>
  %y = arith.mulf %t, %scale : tensor<50260xf32>
  rota.yield %y : tensor<50260xf32>
}
rota.kernel @cap_grad operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%d: tensor<50260xf32>, %x: tensor<50260xbf16>):
  %w = arith.extf %x : tensor<50260xbf16> to tensor<50260xf32>
  %p = arith.mulf %d, %w : tensor<50260xf32>
  %y = arith.truncf %p : tensor<50260xf32> to tensor<50260xbf16>
  rota.yield %y : tensor<50260xbf16>
}
func.func @loss_backward(%x: tensor<2x16x8xbf16>, %w: tensor<50260x8xbf16>, %scale: tensor<50260xf32>, %targets: tensor<2x16xi32>, %d: tensor<f32>) -> (tensor<f32>, tensor<2x16x8xbf16>, tensor<50260x8xf32>) {
  %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xbf16>, tensor<50260x8xbf16>) -> tensor<2x16x50260xbf16>
  %capped = rota.launch @cap rows = 32 (%logits, %scale) : (tensor<2x16x50260xbf16>, tensor<50260xf32>) -> tensor<2x16x50260xf32>
  %sum, %weight, %lse = rota.cross_entropy %capped, %targets : (tensor<2x16x50260xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  %dcapped = rota.cross_entropy_grad %d, %capped, %targets, %lse : (tensor<f32>, tensor<2x16x50260xf32>, tensor<2x16xi32>, tensor<2x16xf32>) -> tensor<2x16x50260xf32>
  %dlogits = rota.launch @cap_grad rows = 32 (%dcapped, %logits) : (tensor<2x16x50260xf32>, tensor<2x16x50260xbf16>) -> tensor<2x16x50260xbf16>
  %dx = rota.einsum "bsn,nk->bsk" %dlogits, %w : (tensor<2x16x50260xbf16>, tensor<50260x8xbf16>) -> tensor<2x16x8xbf16>
  %dw = rota.einsum "bsn,bsk->nk" %dlogits, %x : (tensor<2x16x50260xbf16>, tensor<2x16x8xbf16>) -> tensor<50260x8xf32>
  return %sum, %dx, %dw : tensor<f32>, tensor<2x16x8xbf16>, tensor<50260x8xf32>
}

// -----

// A part of a vocabulary whose derivative is used in parts of the batch.
// CHECK-LABEL: func @parts
// CHECK: rota.cross_entropy_shard {{.*}} : (tensor<2x16x31xf32, #rota.row_stride<64>>, tensor<2x16xi32>, tensor<i32>) -> tensor<2x16x2xf32>
// CHECK: rota.split {{.*}} -> (tensor<1x16x31xf32, #rota.row_stride<64>>, tensor<1x16x31xf32, #rota.row_stride<64>>)
func.func @parts(%x: tensor<2x16x8xf32>, %w: tensor<31x8xf32>, %targets: tensor<2x16xi32>, %offset: tensor<i32>, %d: tensor<f32>, %lse: tensor<2x16xf32>) -> (tensor<2x16x2xf32>, tensor<1x16x8xf32>, tensor<1x16x8xf32>) {
  %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xf32>, tensor<31x8xf32>) -> tensor<2x16x31xf32>
  %parts = rota.cross_entropy_shard %logits, %targets offset %offset of 61 : (tensor<2x16x31xf32>, tensor<2x16xi32>, tensor<i32>) -> tensor<2x16x2xf32>
  %dlogits = rota.cross_entropy_grad %d, %logits, %targets, %lse offset %offset of 61 : (tensor<f32>, tensor<2x16x31xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<i32>) -> tensor<2x16x31xf32>
  %halves:2 = rota.split %dlogits dim = 0 : (tensor<2x16x31xf32>) -> (tensor<1x16x31xf32>, tensor<1x16x31xf32>)
  %low = rota.einsum "bsn,nk->bsk" %halves#0, %w : (tensor<1x16x31xf32>, tensor<31x8xf32>) -> tensor<1x16x8xf32>
  %high = rota.einsum "bsn,nk->bsk" %halves#1, %w : (tensor<1x16x31xf32>, tensor<31x8xf32>) -> tensor<1x16x8xf32>
  return %parts, %low, %high : tensor<2x16x2xf32>, tensor<1x16x8xf32>, tensor<1x16x8xf32>
}

// -----

// What the first half of a split backward saves for the second.
// CHECK-LABEL: func @loss_backward_input
// CHECK-SAME: -> (tensor<f32>, tensor<f32>, tensor<2x16x8xf32>, tensor<2x16x61xf32, #rota.row_stride<64>>)
// CHECK: rota.cross_entropy_grad {{.*}} -> tensor<2x16x61xf32, #rota.row_stride<64>>
// CHECK-LABEL: func @loss_backward_weight
// CHECK-SAME: %[[D:[a-z0-9]*]]: tensor<2x16x61xf32, #rota.row_stride<64>>)
// CHECK: rota.einsum "bsn,bsk->nk" %[[D]], {{.*}} -> tensor<61x8xf32>
rota.param @w : tensor<61x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0>
func.func @loss(%x: tensor<2x16x8xf32>, %targets: tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>) {
  %w = rota.read @w : tensor<61x8xf32>
  %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xf32>, tensor<61x8xf32>) -> tensor<2x16x61xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x61xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}
func.func @loss_backward_input(%x: tensor<2x16x8xf32>, %targets: tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16x8xf32>, tensor<2x16x61xf32>) {
  %w = rota.read @w : tensor<61x8xf32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xf32>, tensor<61x8xf32>) -> tensor<2x16x61xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x61xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  %dlogits = rota.cross_entropy_grad %one, %logits, %targets, %lse : (tensor<f32>, tensor<2x16x61xf32>, tensor<2x16xi32>, tensor<2x16xf32>) -> tensor<2x16x61xf32>
  %dx = rota.einsum "bsn,nk->bsk" %dlogits, %w : (tensor<2x16x61xf32>, tensor<61x8xf32>) -> tensor<2x16x8xf32>
  return %sum, %weight, %dx, %dlogits : tensor<f32>, tensor<f32>, tensor<2x16x8xf32>, tensor<2x16x61xf32>
}
func.func @loss_backward_weight(%x: tensor<2x16x8xf32>, %targets: tensor<2x16xi32>, %dlogits: tensor<2x16x61xf32>) {
  %dw = rota.einsum "bsn,bsk->nk" %dlogits, %x : (tensor<2x16x61xf32>, tensor<2x16x8xf32>) -> tensor<61x8xf32>
  rota.accumulate @w, %dw : tensor<61x8xf32>
  return
}

// -----

// Aligned rows, and logits without a cross-entropy.
// CHECK-LABEL: func @aligned
// CHECK-NOT: row_stride
func.func @aligned(%x: tensor<2x16x8xbf16>, %w: tensor<40x8xbf16>, %targets: tensor<2x16xi32>) -> tensor<f32> {
  %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xbf16>, tensor<40x8xbf16>) -> tensor<2x16x40xbf16>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x40xbf16>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return %sum : tensor<f32>
}
func.func @logits(%x: tensor<2x16x8xf32>, %w: tensor<61x8xf32>) -> tensor<2x16x61xf32> {
  %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xf32>, tensor<61x8xf32>) -> tensor<2x16x61xf32>
  return %logits : tensor<2x16x61xf32>
}

// -----

// The gradient of a bias sums rows, so no logits of the module have gaps.
// CHECK-LABEL: func @loss
// CHECK-NOT: row_stride
rota.kernel @sum operands [affine_map<(d0) -> (d0)>] results [#rota.result<sum>] {
^bb0(%x: tensor<61xf32>):
  rota.yield %x : tensor<61xf32>
}
func.func @loss(%x: tensor<2x16x8xf32>, %w: tensor<61x8xf32>, %targets: tensor<2x16xi32>) -> tensor<f32> {
  %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xf32>, tensor<61x8xf32>) -> tensor<2x16x61xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x61xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return %sum : tensor<f32>
}
func.func @bias(%x: tensor<2x16x8xf32>, %w: tensor<61x8xf32>, %targets: tensor<2x16xi32>, %d: tensor<f32>, %lse: tensor<2x16xf32>) -> tensor<61xf32> {
  %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xf32>, tensor<61x8xf32>) -> tensor<2x16x61xf32>
  %dlogits = rota.cross_entropy_grad %d, %logits, %targets, %lse : (tensor<f32>, tensor<2x16x61xf32>, tensor<2x16xi32>, tensor<2x16xf32>) -> tensor<2x16x61xf32>
  %bias = rota.launch @sum rows = 32 (%dlogits) : (tensor<2x16x61xf32>) -> tensor<61xf32>
  return %bias : tensor<61xf32>
}

// -----

// Logits that leave their function are dense.
// CHECK-LABEL: func @leave
// CHECK-NOT: row_stride
func.func @leave(%x: tensor<2x16x8xf32>, %w: tensor<61x8xf32>, %targets: tensor<2x16xi32>) -> (tensor<f32>, tensor<2x16x61xf32>) {
  %logits = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x16x8xf32>, tensor<61x8xf32>) -> tensor<2x16x61xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x61xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return %sum, %logits : tensor<f32>, tensor<2x16x61xf32>
}
