// RUN: rota-opt %s --schedule-collectives --split-input-file | FileCheck %s

// The documentation's example: a product that does not feed the sum comes after it.
// CHECK-LABEL: func.func @f
// CHECK: %[[PART:.*]] = rota.einsum "bn,nk->bk"
// CHECK-NEXT: %[[DX:.*]] = rota.all_reduce sum %[[PART]]
// CHECK-NEXT: %[[DW:.*]] = rota.einsum "bn,bk->nk"
// CHECK-NEXT: return %[[DX]], %[[DW]]
rota.mesh <tensor = 2>
func.func @f(%x: tensor<64x256xf32>, %dy: tensor<64x256xf32>, %w: tensor<256x256xf32>) -> (tensor<64x256xf32>, tensor<256x256xf32>) {
  %part = rota.einsum "bn,nk->bk" %dy, %w : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %dw = rota.einsum "bn,bk->nk" %dy, %x : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<256x256xf32>
  %dx = rota.all_reduce sum %part axes [<tensor>] reason "partial products" : tensor<64x256xf32>
  return %dx, %dw : tensor<64x256xf32>, tensor<256x256xf32>
}

// -----

// A gather starts as early as hides it, and no earlier: after the first product.
// CHECK-LABEL: func.func @gather_starts_earlier
// CHECK: rota.einsum "bk,kn->bn" %arg0
// CHECK-NEXT: %[[WHOLE:.*]] = rota.all_gather %arg2
// CHECK-NEXT: %[[B:.*]] = rota.einsum "bk,kn->bn" %{{.*}}, %arg1
// CHECK-NEXT: rota.einsum "bk,kn->bn" %[[B]], %[[WHOLE]]
rota.mesh <tensor = 2>
func.func @gather_starts_earlier(%x: tensor<64x256xf32>, %w: tensor<256x256xf32>, %part: tensor<128x128xf32>) -> tensor<64x128xf32> {
  %a = rota.einsum "bk,kn->bn" %x, %w : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %b = rota.einsum "bk,kn->bn" %a, %w : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %whole = rota.all_gather %part dim = 0 axes [<tensor>] reason "a" : tensor<128x128xf32> -> tensor<256x128xf32>
  %c = rota.einsum "bk,kn->bn" %b, %whole : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  return %c : tensor<64x128xf32>
}

// -----

// The other branch comes before the first use, which a view is not. Its product
// may add to the gradient where it stands, so it stays after what is added before.
// CHECK-LABEL: func.func @other_branch
// CHECK-NEXT: %[[SUM:.*]] = rota.all_reduce sum %arg0
// CHECK-NEXT: %[[VIEW:.*]] = rota.reshape %[[SUM]]
// CHECK-NEXT: rota.accumulate @w, %arg3
// CHECK-NEXT: %[[DW:.*]] = rota.einsum "bn,bk->nk"
// CHECK-NEXT: arith.addf %[[VIEW]], %[[VIEW]]
// CHECK-NEXT: rota.accumulate @w, %[[DW]]
rota.mesh <tensor = 2>
rota.param @w : tensor<256x256xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
func.func @other_branch(%part: tensor<64x256xf32>, %x: tensor<64x256xf32>, %dy: tensor<64x256xf32>, %other: tensor<256x256xf32>) -> tensor<2x32x256xf32> {
  %sum = rota.all_reduce sum %part axes [<tensor>] reason "a" : tensor<64x256xf32>
  %view = rota.reshape %sum : tensor<64x256xf32> -> tensor<2x32x256xf32>
  %y = arith.addf %view, %view : tensor<2x32x256xf32>
  rota.accumulate @w, %other : tensor<256x256xf32>
  %dw = rota.einsum "bn,bk->nk" %dy, %x : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<256x256xf32>
  rota.accumulate @w, %dw : tensor<256x256xf32>
  return %y : tensor<2x32x256xf32>
}

// -----

// Work that hides one transfer is not taken for another; no work, no move.
// CHECK-LABEL: func.func @nothing_to_gain
// CHECK: rota.all_reduce sum %arg0
// CHECK-NEXT: rota.einsum
// CHECK-NEXT: arith.addf
// CHECK-NEXT: rota.all_reduce
// CHECK-NEXT: return
rota.mesh <tensor = 2>
func.func @nothing_to_gain(%part: tensor<64x256xf32>, %x: tensor<64x256xf32>, %w: tensor<256x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>) {
  %sum = rota.all_reduce sum %part axes [<tensor>] reason "a" : tensor<64x256xf32>
  %a = rota.einsum "bk,kn->bn" %x, %w : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %y = arith.addf %sum, %sum : tensor<64x256xf32>
  %z = rota.all_reduce sum %y axes [<tensor>] reason "b" : tensor<64x256xf32>
  return %z, %a : tensor<64x256xf32>, tensor<64x256xf32>
}
