// RUN: rota-opt %s --decompose --form-kernels --split-input-file | FileCheck %s

// The doc example: the bias is shared by all rows.
// CHECK-LABEL: func @f
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[Y:.*]] = rota.launch @fused rows = 6(%[[X]], %[[B]])
// CHECK-NEXT: return %[[Y]]
// CHECK: rota.kernel @fused operands [#[[ROW:.*]], #[[SHARED:.*]]] results [#rota.result<row>]
// CHECK-NEXT: (%[[X:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[X]], %[[B]] : tensor<8xf32>
// CHECK-NEXT: %[[Y:.*]] = math.tanh %[[SUM]] : tensor<8xf32>
// CHECK-NEXT: rota.yield %[[Y]]
func.func @f(%x: tensor<2x3x8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %0 = rota.broadcast %b dims [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %1 = arith.addf %x, %0 : tensor<2x3x8xf32>
  %2 = math.tanh %1 : tensor<2x3x8xf32>
  return %2 : tensor<2x3x8xf32>
}

// -----

// A residual addition and the norm after it are one kernel with two results.
// The same again is the same kernel.
// CHECK-LABEL: func @residual
// CHECK-NEXT: %[[Y:.*]]:2 = rota.launch @rms_norm rows = 8(
// CHECK-NEXT: return %[[Y]]#0, %[[Y]]#1
// CHECK-LABEL: func @again
// CHECK-NEXT: rota.launch @rms_norm rows = 4(
// CHECK: rota.kernel @rms_norm
// CHECK: %[[H:.*]] = arith.addf %{{.*}} : tensor<8xbf16>
// CHECK: arith.extf %[[H]]
// CHECK: rota.reduce sum %{{.*}} dims [0] : tensor<8xf32> -> tensor<f32>
// CHECK: %[[N:.*]] = arith.truncf
// CHECK: rota.yield %[[H]], %[[N]]
// CHECK-NOT: rota.kernel
func.func @residual(%x: tensor<2x4x8xbf16>, %a: tensor<2x4x8xbf16>, %gain: tensor<8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>) {
  %h = arith.addf %x, %a : tensor<2x4x8xbf16>
  %y = rota.rms_norm %h, %gain epsilon = 1.0e-05 : tensor<2x4x8xbf16>, tensor<8xbf16>
  return %h, %y : tensor<2x4x8xbf16>, tensor<2x4x8xbf16>
}
func.func @again(%x: tensor<4x8xbf16>, %a: tensor<4x8xbf16>, %gain: tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>) {
  %h = arith.addf %x, %a : tensor<4x8xbf16>
  %y = rota.rms_norm %h, %gain epsilon = 1.0e-05 : tensor<4x8xbf16>, tensor<8xbf16>
  return %h, %y : tensor<4x8xbf16>, tensor<4x8xbf16>
}

// -----

// The gain's cotangent is summed over the rows; accumulating it is left to the
// task.
// CHECK-LABEL: func @norm_grad
// CHECK: %[[Y:.*]]:2 = rota.launch @fused rows = 8(
// CHECK-SAME: -> (tensor<2x4x8xf32>, tensor<8xf32>)
// CHECK-NEXT: rota.accumulate @gain, %[[Y]]#1
// CHECK-NEXT: return %[[Y]]#0
// CHECK: results [#rota.result<row>, #rota.result<sum>]
rota.param @gain : tensor<8xf32> axes ["embed"] init #rota.constant<value = 1.0>
func.func @norm_grad(%dy: tensor<2x4x8xf32>, %x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %g = rota.read @gain : tensor<8xf32>
  %dgain_term = arith.mulf %dy, %x : tensor<2x4x8xf32>
  %b = rota.broadcast %g dims [2] : tensor<8xf32> -> tensor<2x4x8xf32>
  %dx = arith.mulf %dy, %b : tensor<2x4x8xf32>
  %dgain = rota.reduce sum %dgain_term dims [0, 1] : tensor<2x4x8xf32> -> tensor<8xf32>
  rota.accumulate @gain, %dgain : tensor<8xf32>
  return %dx : tensor<2x4x8xf32>
}

// -----

// Two ops that read the same rows are one kernel, though neither reads the other.
// CHECK-LABEL: func @siblings
// CHECK-NEXT: rota.launch
// CHECK-NEXT: return
func.func @siblings(%dy: tensor<2x8xf32>, %gate: tensor<2x8xf32>, %up: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %y = rota.activation silu %gate, %up : tensor<2x8xf32>
  %dgate, %dup = rota.activation_grad silu %dy, %gate, %up : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  return %y, %dgate, %dup : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// A whole optimizer step, the zeroed gradient included.
// CHECK-LABEL: func @adamw
// CHECK-NEXT: %{{.*}}:5 = rota.launch @fused{{.*}} rows = 4(
// CHECK-NEXT: return
func.func @adamw(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %r1: tensor<f32>, %r2: tensor<f32>, %eps: tensor<f32>, %wd: tensor<f32>, %c1: tensor<f32>, %c2: tensor<f32>, %s: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xbf16>) {
  %lr_ = rota.broadcast %lr dims [] : tensor<f32> -> tensor<4x8xf32>
  %r1_ = rota.broadcast %r1 dims [] : tensor<f32> -> tensor<4x8xf32>
  %r2_ = rota.broadcast %r2 dims [] : tensor<f32> -> tensor<4x8xf32>
  %eps_ = rota.broadcast %eps dims [] : tensor<f32> -> tensor<4x8xf32>
  %wd_ = rota.broadcast %wd dims [] : tensor<f32> -> tensor<4x8xf32>
  %c1_ = rota.broadcast %c1 dims [] : tensor<f32> -> tensor<4x8xf32>
  %c2_ = rota.broadcast %c2 dims [] : tensor<f32> -> tensor<4x8xf32>
  %s_ = rota.broadcast %s dims [] : tensor<f32> -> tensor<4x8xf32>
  %gs = arith.mulf %s_, %g : tensor<4x8xf32>
  %m0 = arith.mulf %r1_, %m : tensor<4x8xf32>
  %m1 = arith.subf %m, %m0 : tensor<4x8xf32>
  %m2 = arith.mulf %r1_, %gs : tensor<4x8xf32>
  %m3 = arith.addf %m1, %m2 : tensor<4x8xf32>
  %sq = arith.mulf %gs, %gs : tensor<4x8xf32>
  %v0 = arith.mulf %r2_, %v : tensor<4x8xf32>
  %v1 = arith.subf %v, %v0 : tensor<4x8xf32>
  %v2 = arith.mulf %r2_, %sq : tensor<4x8xf32>
  %v3 = arith.addf %v1, %v2 : tensor<4x8xf32>
  %vc = arith.divf %v3, %c2_ : tensor<4x8xf32>
  %root = math.sqrt %vc : tensor<4x8xf32>
  %den = arith.addf %root, %eps_ : tensor<4x8xf32>
  %mc = arith.divf %m3, %c1_ : tensor<4x8xf32>
  %step = arith.divf %mc, %den : tensor<4x8xf32>
  %dec = arith.mulf %wd_, %p : tensor<4x8xf32>
  %full = arith.addf %step, %dec : tensor<4x8xf32>
  %move = arith.mulf %lr_, %full : tensor<4x8xf32>
  %q = arith.subf %p, %move : tensor<4x8xf32>
  %zero = arith.constant dense<0.0> : tensor<4x8xf32>
  %copy = arith.truncf %q : tensor<4x8xf32> to tensor<4x8xbf16>
  return %q, %m3, %v3, %zero, %copy : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xbf16>
}

// -----

// No kernel reads what comes of its own result through an einsum: what is before
// it and what is after it are two kernels.
// CHECK-LABEL: func @detour
// CHECK: %[[A:.*]] = rota.launch
// CHECK: %[[E:.*]] = rota.einsum "mk,nk->mn" %[[A]]
// CHECK: rota.launch @{{.*}}(%[[A]], %[[E]])
// CHECK-NEXT: return
func.func @detour(%x: tensor<6x8xf32>, %w: tensor<8x8xf32>) -> tensor<6x8xf32> {
  %a = arith.mulf %x, %x : tensor<6x8xf32>
  %e = rota.einsum "mk,nk->mn" %a, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %b = arith.addf %a, %e : tensor<6x8xf32>
  return %b : tensor<6x8xf32>
}

// -----

// A value that only another kernel needs is computed again there, if that reads little:
// %d, but not the row's sum.
// CHECK-LABEL: func @repeats
// CHECK: %[[A:.*]]:2 = rota.launch @{{.*}}(%[[X:.*]]) : (tensor<6x8xf32>) -> (tensor<6xf32>, tensor<6x8xf32>)
// CHECK: %[[E:.*]] = rota.einsum "mk,nk->mn" %[[A]]#1
// CHECK: rota.launch @{{.*}}(%[[X]], %[[A]]#0, %[[E]])
// CHECK-NEXT: return
func.func @repeats(%x: tensor<6x8xf32>, %w: tensor<8x8xf32>) -> tensor<6x8xf32> {
  %s = rota.reduce sum %x dims [1] : tensor<6x8xf32> -> tensor<6xf32>
  %b = rota.broadcast %s dims [0] : tensor<6xf32> -> tensor<6x8xf32>
  %d = arith.divf %x, %b : tensor<6x8xf32>
  %a = arith.mulf %d, %d : tensor<6x8xf32>
  %e = rota.einsum "mk,nk->mn" %a, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %y = arith.addf %d, %e : tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// Nor does it read its own sum.
// CHECK-LABEL: func @own_sum
// CHECK: %[[S:.*]] = rota.launch @{{.*}} rows = 6(%[[X:.*]]) : (tensor<2x3x8xf32>) -> tensor<f32>
// CHECK: rota.launch @{{.*}} rows = 6(%[[X]], %[[S]])
func.func @own_sum(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %s = rota.reduce sum %x dims [0, 1, 2] : tensor<2x3x8xf32> -> tensor<f32>
  %b = rota.broadcast %s dims [] : tensor<f32> -> tensor<2x3x8xf32>
  %c = arith.mulf %x, %b : tensor<2x3x8xf32>
  return %c : tensor<2x3x8xf32>
}

// -----

// Reshapes between rows of one length are looked through; what an einsum needs
// is reshaped from the kernel's result.
// CHECK-LABEL: func @reshapes
// CHECK: %[[Y:.*]] = rota.launch @fused rows = 6(
// CHECK: %[[V:.*]] = rota.reshape %[[Y]]
// CHECK: rota.einsum "mk,nk->mn" %[[V]]
// CHECK-NOT: rota.launch
// CHECK: return
func.func @reshapes(%x: tensor<2x3x8xf32>, %w: tensor<4x4xf32>) -> tensor<12x4xf32> {
  %a = math.tanh %x : tensor<2x3x8xf32>
  %b = rota.reshape %a : tensor<2x3x8xf32> -> tensor<6x8xf32>
  %c = arith.mulf %b, %b : tensor<6x8xf32>
  %d = rota.reshape %c : tensor<6x8xf32> -> tensor<12x4xf32>
  %e = rota.einsum "mk,nk->mn" %d, %w : (tensor<12x4xf32>, tensor<4x4xf32>) -> tensor<12x4xf32>
  return %e : tensor<12x4xf32>
}

// -----

// A batch's rows and a position's: which row goes with row d0.
// CHECK-DAG: affine_map<(d0) -> (d0 floordiv 15)>
// CHECK-DAG: affine_map<(d0) -> ((d0 floordiv 5) mod 3)>
// CHECK-LABEL: func @rows
// CHECK-NEXT: rota.launch @fused rows = 30(
// CHECK-NEXT: return
func.func @rows(%x: tensor<2x3x5x8xf32>, %b: tensor<2x8xf32>, %s: tensor<3xf32>) -> tensor<2x3x5x8xf32> {
  %0 = rota.broadcast %b dims [0, 3] : tensor<2x8xf32> -> tensor<2x3x5x8xf32>
  %1 = rota.broadcast %s dims [1] : tensor<3xf32> -> tensor<2x3x5x8xf32>
  %2 = arith.addf %x, %0 : tensor<2x3x5x8xf32>
  %3 = arith.mulf %2, %1 : tensor<2x3x5x8xf32>
  return %3 : tensor<2x3x5x8xf32>
}

// -----

// A maximum over rows is no row's work.
// CHECK-LABEL: func @stays
// CHECK: rota.reduce max %{{.*}} dims [0]
// CHECK-NOT: rota.kernel
func.func @stays(%x: tensor<2x3x8xf32>) -> tensor<3x8xf32> {
  %0 = rota.reduce max %x dims [0] : tensor<2x3x8xf32> -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}

// -----

// Nothing is fused across a collective: what is before it is one kernel, what is
// behind it another, and a reduced sum that was a row stays one.
// CHECK-LABEL: func @reduced
// CHECK-NEXT: %[[BEFORE:.*]] = rota.launch @{{.*}} rows = 8(
// CHECK-NEXT: %[[SUM:.*]] = rota.all_reduce sum %[[BEFORE]] axes [<tensor>] reason "out_proj" : tensor<2x4x8xbf16>
// CHECK-NEXT: %[[AFTER:.*]]:2 = rota.launch @rms_norm rows = 8({{.*}}%[[SUM]]
// CHECK-NEXT: return %[[AFTER]]#0, %[[AFTER]]#1
rota.mesh <tensor = 2>
func.func @reduced(%x: tensor<2x4x8xbf16>, %p: tensor<2x4x8xf32>, %gain: tensor<8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>) {
  %t = math.tanh %p : tensor<2x4x8xf32>
  %part = arith.truncf %t : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  %sum = rota.all_reduce sum %part axes [<tensor>] reason "out_proj" : tensor<2x4x8xbf16>
  %h = arith.addf %x, %sum : tensor<2x4x8xbf16>
  %y = rota.rms_norm %h, %gain epsilon = 1.0e-05 : tensor<2x4x8xbf16>, tensor<8xbf16>
  return %h, %y : tensor<2x4x8xbf16>, tensor<2x4x8xbf16>
}

// -----

// Nor are values that two collectives need kept apart: the sums that go out and
// the rows that stay are results of one kernel.
// CHECK-LABEL: func @scattered
// CHECK-NEXT: %[[ROWS:.*]] = rota.all_gather
// CHECK-NEXT: %[[Y:.*]]:2 = rota.launch @{{.*}} rows = 8(%[[ROWS]])
// CHECK-NEXT: %[[GAIN:.*]] = rota.all_reduce sum %[[Y]]#1
// CHECK-NEXT: %[[PART:.*]] = rota.reduce_scatter %[[Y]]#0
// CHECK-NEXT: return %[[PART]], %[[GAIN]]
rota.mesh <sequence = 2>
func.func @scattered(%x: tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<8xf32>) {
  %rows = rota.all_gather %x dim = 1 axes [<sequence>] reason "length" : tensor<1x4x8xf32> -> tensor<1x8x8xf32>
  %t = math.tanh %rows : tensor<1x8x8xf32>
  %s = rota.reduce sum %t dims [0, 1] : tensor<1x8x8xf32> -> tensor<8xf32>
  %gain = rota.all_reduce sum %s axes [<sequence>] reason "gain" : tensor<8xf32>
  %part = rota.reduce_scatter %t dim = 1 axes [<sequence>] reason "length" : tensor<1x8x8xf32> -> tensor<1x4x8xf32>
  return %part, %gain : tensor<1x4x8xf32>, tensor<8xf32>
}
