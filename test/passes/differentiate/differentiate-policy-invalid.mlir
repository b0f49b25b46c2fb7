// RUN: not rota-opt %s --differentiate=remat=minimum 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not rota-opt %s --differentiate=remat=sparse 2>&1 | FileCheck %s --check-prefix=FAR
// RUN: not rota-opt %s --differentiate=remat=mlpwi=disk 2>&1 | FileCheck %s --check-prefix=DECISION
// RUN: not rota-opt %s --differentiate=remat==device 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not rota-opt %s --differentiate=remat=mlpwi=device,mlpwi=remat 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not rota-opt %s --differentiate=remat=decoder_layer_input=remat 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: not rota-opt %s --differentiate=remat=none,decoder_layer_input=remat 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: not rota-opt %s --differentiate=remat=mlpwj=device 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not rota-opt %s --differentiate=remat=full,mlpwi=offload 2>&1 | FileCheck %s --check-prefix=OFFLOAD
// RUN: not rota-opt %s --differentiate=remat=save_qkv_proj,mlpwi=offload 2>&1 | FileCheck %s --check-prefix=LISTED

// Remat policies that mean nothing.
// UNKNOWN: error: 'remat': expected a policy ('none', 'minimal_with_context', 'minimal', {{.*}}, 'full', or a table 'name=remat|device|offload,...'), got 'minimum'; did you mean 'minimal'?
// FAR: error: 'remat': expected a policy ({{.*}}), got 'sparse'{{$}}
// DECISION: error: 'remat': expected 'remat', 'device' or 'offload' for 'mlpwi', got 'disk'
// EMPTY: error: 'remat': expected 'name=remat|device|offload', got '=device'
// TWICE: error: 'remat': expected one decision for 'mlpwi', got 'device' and 'remat'
// INPUT: error: 'remat': expected 'device' or 'offload' for 'decoder_layer_input', got 'remat': a layer's input is always kept
// NAME: error: 'remat': expected a value named 'mlpwj' in a layer, got none; did you mean 'mlpwi'?
// NAME: note: the layers name 'decoder_layer_input', 'mlpwi', 'mlpwo'
// OFFLOAD: error: 'remat': expected 'remat' or 'device' for 'mlpwi', got 'offload': 'full' rematerializes it, and only what is kept can be offloaded
// LISTED: error: 'remat': expected 'remat' or 'device' for 'mlpwi', got 'offload': 'save_qkv_proj' rematerializes it, and only what is kept can be offloaded

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
