// RUN: rota-opt %s --differentiate=remat=none | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: rota-opt %s --differentiate=remat=full | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: rota-opt %s --differentiate=remat=minimal | FileCheck %s --check-prefixes=CHECK,NAMED
// RUN: rota-opt %s --differentiate=remat=mlpwi=device,mlpwo=remat,decoder_layer_input=device | FileCheck %s --check-prefixes=CHECK,NAMED
// RUN: rota-opt %s --differentiate=remat=minimal,mlpwo=remat,decoder_layer_input=device | FileCheck %s --check-prefixes=CHECK,NAMED
// RUN: rota-opt %s --differentiate=remat=save_dot_except_mlp | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: rota-opt %s --differentiate=remat=none,mlpwi=remat | FileCheck %s --check-prefix=MIXED
// RUN: rota-opt %s --differentiate=remat=minimal --remarks-filter=differentiate 2>&1 >%t | FileCheck %s --check-prefix=REMARK

// The values that wait for the backward. Everything: what derivatives read, the
// results of exp and tanh. Nothing: all of that is computed again. By name: the
// product named "mlpwi", in the shape of the product and not of its view; what
// follows it is computed again; "mlpwo" is not saved, since no derivative reads
// it.

// NONE:      func @forward({{.*}}) -> (tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
// NONE:        %[[A:.*]] = math.exp
// NONE:        %[[T:.*]] = math.tanh
// NONE:        return %{{.*}}, %[[A]], %[[T]]
// NONE:      func @backward(%[[X:.*]]: tensor<2x4x8xf32>, %[[A:.*]]: tensor<8x16xf32>, %[[T:.*]]: tensor<8x16xf32>, %[[DY:.*]]: tensor<2x4x8xf32>)
// NONE:        %[[V:.*]] = rota.reshape %[[T]]
// NONE-NOT:    math.

// FULL:      func @forward({{.*}}) -> tensor<2x4x8xf32>
// FULL:      func @backward(%[[X:.*]]: tensor<2x4x8xf32>, %[[DY:.*]]: tensor<2x4x8xf32>)
// FULL:        %[[U:.*]] = rota.einsum "bsk,nk->bsn" %[[X]]
// FULL:        %[[ROWS:.*]] = rota.reshape %[[U]]
// FULL-NEXT:   %[[A:.*]] = math.exp %[[ROWS]]
// FULL-NEXT:   %[[T:.*]] = math.tanh %[[A]]
// FULL-NEXT:   %[[V:.*]] = rota.reshape %[[T]]
// FULL-NOT:    rota.einsum "bsk,nk->bsn"

// NAMED:     func @forward({{.*}}) -> (tensor<2x4x8xf32>, tensor<2x4x16xf32>)
// NAMED:       %[[U:.*]] = rota.einsum "bsk,nk->bsn"
// NAMED:       return %{{.*}}, %[[U]]
// NAMED:     func @backward(%[[X:.*]]: tensor<2x4x8xf32>, %[[U:.*]]: tensor<2x4x16xf32>, %[[DY:.*]]: tensor<2x4x8xf32>)
// NAMED-NOT:   rota.einsum "bsk,nk->bsn"
// NAMED:       %[[ROWS:.*]] = rota.reshape %[[U]]
// NAMED-NEXT:  %[[A:.*]] = math.exp %[[ROWS]]
// NAMED-NEXT:  %[[T:.*]] = math.tanh %[[A]]
// NAMED-NEXT:  %[[V:.*]] = rota.reshape %[[T]]

// Everything but one name: exp is computed again from what it is made of.
// MIXED:     func @forward({{.*}}) -> (tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
// MIXED:       %[[A:.*]] = math.exp
// MIXED:       %[[T:.*]] = math.tanh
// MIXED:       return %{{.*}}, %[[A]], %[[T]]

// The rest is the same whatever was saved, and no name is left in it.
// CHECK-NOT: rota.name
// CHECK:       rota.einsum "bsn,bsk->nk" %[[DY]], %[[V]]
// CHECK:       %[[SQUARE:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK:       %[[SLOPE:.*]] = arith.subf %{{.*}}, %[[SQUARE]]
// CHECK:       %[[DA:.*]] = arith.mulf %{{.*}}, %[[SLOPE]]
// CHECK:       arith.mulf %[[DA]], %[[A]]
// CHECK:       rota.einsum "bsn,bsk->nk" %{{.*}}, %[[X]]
// CHECK:       return

// REMARK: saved{{.*}}Function=mlp.forward{{.*}}Bytes=512, Name=mlpwi
// REMARK-NEXT: %u = rota.einsum
// REMARK: recomputed{{.*}}Op=math.exp
// REMARK: recomputed{{.*}}Op=math.tanh
// REMARK-NOT: {{saved|recomputed}}

rota.stack @layers layers = 2 pattern [@mlp] {
  rota.layer @mlp {
    rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0>
    rota.param @down : tensor<8x16xf32> axes ["embed", "mlp"] init #rota.constant<value = 1.0>
    func.func @forward(%input: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %x = rota.name "decoder_layer_input" %input : tensor<2x4x8xf32>
      %wup = rota.read @up : tensor<16x8xf32>
      %u = rota.einsum "bsk,nk->bsn" %x, %wup : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
      %rows = rota.reshape %u : tensor<2x4x16xf32> -> tensor<8x16xf32>
      %named = rota.name "mlpwi" %rows : tensor<8x16xf32>
      %a = math.exp %named : tensor<8x16xf32>
      %t = math.tanh %a : tensor<8x16xf32>
      %v = rota.reshape %t : tensor<8x16xf32> -> tensor<2x4x16xf32>
      %wdown = rota.read @down : tensor<8x16xf32>
      %d = rota.einsum "bsk,nk->bsn" %v, %wdown : (tensor<2x4x16xf32>, tensor<8x16xf32>) -> tensor<2x4x8xf32>
      %o = rota.name "mlpwo" %d : tensor<2x4x8xf32>
      %y = arith.addf %x, %o : tensor<2x4x8xf32>
      return %y : tensor<2x4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  return %x : tensor<2x4x8xf32>
}
func.func @loss(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
  %z = math.tanh %x : tensor<2x4x8xf32>
  %logits = rota.name "logits" %z : tensor<2x4x8xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}
