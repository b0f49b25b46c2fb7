// RUN: rota-opt %s --split-collectives=tensor-exchange=ring --split-input-file | FileCheck %s
// RUN: rota-opt %s --split-collectives --split-input-file | FileCheck %s --check-prefix=AUTO
// RUN: rota-opt %s --split-collectives=tensor-exchange=gather --split-input-file | FileCheck %s --check-prefix=GATHER
// GATHER-NOT: rota.split

// The documentation's example, in four pieces: rows of the left operand, which lie
// one after the other. So small a product is not cut without being asked.
// CHECK-LABEL: func.func @f
// CHECK: %[[X:.*]]:4 = rota.split %arg0 dim = 0 : (tensor<4x8xf32>) -> (tensor<1x8xf32>,
// CHECK-NEXT: %[[P0:.*]] = rota.einsum "sk,nk->sn" %[[X]]#0, %arg1 : (tensor<1x8xf32>, tensor<16x8xf32>) -> tensor<1x16xf32>
// CHECK-NEXT: %[[Y0:.*]] = rota.all_reduce sum %[[P0]] axes [<tensor>] reason "partial products" : tensor<1x16xf32>
// CHECK-NEXT: %[[P1:.*]] = rota.einsum "sk,nk->sn" %[[X]]#1, %arg1
// CHECK-NEXT: %[[Y1:.*]] = rota.all_reduce sum %[[P1]]
// CHECK: %[[Y:.*]] = rota.concat %[[Y0]], %[[Y1]], %{{.*}}, %{{.*}} dim = 0
// CHECK-NEXT: return %[[Y]]
// AUTO-LABEL: func.func @f
// AUTO-NOT: rota.split
rota.mesh <tensor = 2>
func.func @f(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) -> tensor<4x16xf32> {
  %part = rota.einsum "sk,nk->sn" %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %y = rota.all_reduce sum %part axes [<tensor>] reason "partial products" : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

// Of a reduce-scatter of tokens, rows of the weight lie one after the other: the
// result, which is smaller, is copied. By costs, in 8 pieces.
// CHECK-LABEL: func.func @scatter
// CHECK: %[[W:.*]]:8 = rota.split %arg1 dim = 0 : (tensor<1024x512xbf16>) -> (tensor<128x512xbf16>,
// CHECK-NEXT: %[[P:.*]] = rota.einsum "bsk,nk->bsn" %arg0, %[[W]]#0 : (tensor<1x1024x512xbf16>, tensor<128x512xbf16>) -> tensor<1x1024x128xbf16>
// CHECK-NEXT: rota.reduce_scatter %[[P]] dim = 1 axes [<sequence>] {{.*}} : tensor<1x1024x128xbf16> -> tensor<1x256x128xbf16>
// CHECK: rota.concat {{.*}} dim = 2 : {{.*}} -> tensor<1x256x1024xbf16>
// AUTO-LABEL: func.func @scatter
// AUTO: rota.split
rota.mesh <sequence = 4>
func.func @scatter(%x: tensor<1x1024x512xbf16>, %w: tensor<1024x512xbf16>) -> tensor<1x256x1024xbf16> {
  %part = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<1x1024x512xbf16>, tensor<1024x512xbf16>) -> tensor<1x1024x1024xbf16>
  %y = rota.reduce_scatter %part dim = 1 axes [<sequence>] reason "partial products" : tensor<1x1024x1024xbf16> -> tensor<1x256x1024xbf16>
  return %y : tensor<1x256x1024xbf16>
}

// -----

// No other dimension has pieces: each takes a stretch of each rank's part.
// CHECK-LABEL: func.func @stretches
// CHECK: %[[R:.*]] = rota.reshape %arg0 : tensor<16x3xf32> -> tensor<4x4x3xf32>
// CHECK-NEXT: %[[X:.*]]:4 = rota.split %[[R]] dim = 1 : (tensor<4x4x3xf32>) -> (tensor<4x1x3xf32>,
// CHECK: %[[X0:.*]] = rota.reshape %[[X]]#0 : tensor<4x1x3xf32> -> tensor<4x3xf32>
// CHECK: %[[P:.*]] = rota.einsum "sk,nk->sn" %[[X0]], %arg1 : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
// CHECK-NEXT: rota.reduce_scatter %[[P]] dim = 0 {{.*}} : tensor<4x5xf32> -> tensor<1x5xf32>
// CHECK: rota.concat {{.*}} dim = 0 : {{.*}} -> tensor<4x5xf32>
rota.mesh <tensor = 4>
func.func @stretches(%x: tensor<16x3xf32>, %w: tensor<5x3xf32>) -> tensor<4x5xf32> {
  %part = rota.einsum "sk,nk->sn" %x, %w : (tensor<16x3xf32>, tensor<5x3xf32>) -> tensor<16x5xf32>
  %y = rota.reduce_scatter %part dim = 0 axes [<tensor>] reason "a" : tensor<16x5xf32> -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

// Left alone: sums with another reader, maxima, sums of two products, padded parts.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: rota.split
rota.mesh <tensor = 4>
func.func @whole(%x: tensor<16x4xf32>, %w: tensor<8x4xf32>, %u: tensor<6x4xf32>, %t: tensor<3x4xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<2x3xf32>) {
  %a = rota.einsum "sk,nk->sn" %x, %w : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %b = rota.all_reduce sum %a axes [<tensor>] reason "a" : tensor<16x8xf32>
  %c = rota.einsum "sk,nk->sn" %x, %w : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %d = rota.all_reduce max %c axes [<tensor>] reason "b" : tensor<16x8xf32>
  %e = rota.einsum "sk,nk->sn" %x, %w : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %f = rota.einsum "sk,nk->sn" %x, %w : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %g = arith.addf %e, %f : tensor<16x8xf32>
  %h = rota.all_reduce sum %g axes [<tensor>] reason "c" : tensor<16x8xf32>
  %v = rota.einsum "sk,nk->sn" %u, %t : (tensor<6x4xf32>, tensor<3x4xf32>) -> tensor<6x3xf32>
  %i = rota.reduce_scatter %v dim = 0 axes [<tensor>] reason "d" : tensor<6x3xf32> -> tensor<2x3xf32>
  return %a, %b, %d, %h, %i : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<2x3xf32>
}

// -----

// Sequences of a gather lie one after the other, and so do those of the products.
// The gradient sums over tokens: it reads the pieces put together. Of the products
// the narrow one does not take less time in pieces.
// CHECK-LABEL: func.func @gather
// CHECK: %[[X:.*]]:2 = rota.split %arg0 dim = 0 : (tensor<2x128x512xbf16>) -> (tensor<1x128x512xbf16>,
// CHECK-NEXT: %[[G0:.*]] = rota.all_gather %[[X]]#0 dim = 1 axes [<sequence>] {{.*}} -> tensor<1x512x512xbf16>
// CHECK-NEXT: %[[G1:.*]] = rota.all_gather %[[X]]#1
// CHECK-NEXT: %[[Y0:.*]] = rota.einsum "bsk,nk->bsn" %[[G0]], %arg1 : {{.*}} -> tensor<1x512x512xbf16>
// CHECK-NEXT: %[[Y1:.*]] = rota.einsum "bsk,nk->bsn" %[[G1]], %arg1
// CHECK-NEXT: %[[Y:.*]] = rota.concat %[[Y0]], %[[Y1]] dim = 0
// CHECK: %[[W:.*]] = rota.concat %[[G0]], %[[G1]] dim = 0
// CHECK-NEXT: %[[DW:.*]] = rota.einsum "bsn,bsk->nk" %arg3, %[[W]]
// CHECK-NEXT: return %[[Y]], %{{.*}}, %[[DW]]
// AUTO-LABEL: func.func @gather
// AUTO: rota.split
// AUTO: rota.concat {{.*}} dim = 0 : (tensor<1x512x512xbf16>
// AUTO: %[[W:.*]] = rota.concat
// AUTO-NEXT: rota.einsum "bsk,nk->bsn" %[[W]], %arg2
rota.mesh <sequence = 4>
func.func @gather(%x: tensor<2x128x512xbf16>, %w: tensor<512x512xbf16>, %narrow: tensor<1x512xbf16>, %dy: tensor<2x512x512xbf16>) -> (tensor<2x512x512xbf16>, tensor<2x512x1xbf16>, tensor<512x512xf32>) {
  %g = rota.all_gather %x dim = 1 axes [<sequence>] reason "a" : tensor<2x128x512xbf16> -> tensor<2x512x512xbf16>
  %y = rota.einsum "bsk,nk->bsn" %g, %w : (tensor<2x512x512xbf16>, tensor<512x512xbf16>) -> tensor<2x512x512xbf16>
  %z = rota.einsum "bsk,nk->bsn" %g, %narrow : (tensor<2x512x512xbf16>, tensor<1x512xbf16>) -> tensor<2x512x1xbf16>
  %dw = rota.einsum "bsn,bsk->nk" %dy, %g : (tensor<2x512x512xbf16>, tensor<2x512x512xbf16>) -> tensor<512x512xf32>
  return %y, %z, %dw : tensor<2x512x512xbf16>, tensor<2x512x1xbf16>, tensor<512x512xf32>
}
