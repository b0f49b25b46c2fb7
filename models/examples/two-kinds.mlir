// SPDX-License-Identifier: Apache-2.0
//
// A byte-level language model written by hand. Its eight layers are of two
// kinds in turn: one mixes positions by attention, one mixes features with a
// gated feed-forward. Two sequences of 32 bytes make a microbatch. The head is
// the embedding table: one parameter, used in `embed` and in `loss`.

rota.param @tokens.weight : tensor<256x64xf32> axes ["vocab", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
rota.param @norm.weight : tensor<64xf32> axes ["norm"] init #rota.constant<value = 1.0>

rota.stack @layers layers = 8 pattern [@attention, @feed_forward] {
  rota.layer @attention {
    rota.param @norm.weight : tensor<64xf32> axes ["norm"] init #rota.constant<value = 1.0>
    rota.param @query.weight : tensor<64x64xf32> axes ["heads", "embed"] init #rota.normal<mean = 0.0, deviation = 0.05>
    rota.param @key.weight : tensor<32x64xf32> axes ["kv_heads", "embed"] init #rota.normal<mean = 0.0, deviation = 0.05>
    rota.param @value.weight : tensor<32x64xf32> axes ["kv_heads", "embed"] init #rota.normal<mean = 0.0, deviation = 0.05>
    rota.param @out.weight : tensor<64x64xf32> axes ["embed", "heads"] init #rota.normal<mean = 0.0, deviation = 0.05>
    func.func @forward(%x: tensor<2x32x64xf32>) -> tensor<2x32x64xf32> {
      %gain = rota.read @norm.weight : tensor<64xf32>
      %h = rota.rms_norm %x, %gain epsilon = 1.0e-05 : tensor<2x32x64xf32>, tensor<64xf32>
      %wq = rota.read @query.weight : tensor<64x64xf32>
      %q = rota.einsum "bsk,nk->bsn" %h, %wq : (tensor<2x32x64xf32>, tensor<64x64xf32>) -> tensor<2x32x64xf32>
      %wk = rota.read @key.weight : tensor<32x64xf32>
      %k = rota.einsum "bsk,nk->bsn" %h, %wk : (tensor<2x32x64xf32>, tensor<32x64xf32>) -> tensor<2x32x32xf32>
      %wv = rota.read @value.weight : tensor<32x64xf32>
      %v = rota.einsum "bsk,nk->bsn" %h, %wv : (tensor<2x32x64xf32>, tensor<32x64xf32>) -> tensor<2x32x32xf32>
      // Four query heads and two key-value heads of 16.
      %qh = rota.reshape %q : tensor<2x32x64xf32> -> tensor<2x32x4x16xf32>
      %kh = rota.reshape %k : tensor<2x32x32xf32> -> tensor<2x32x2x16xf32>
      %vh = rota.reshape %v : tensor<2x32x32xf32> -> tensor<2x32x2x16xf32>
      %table = rota.rotary_table frequencies [1.0, 0.31622776601683794, 0.1, 0.031622776601683791, 0.01, 0.0031622776601683794, 0.001, 3.1622776601683794e-4] scale = 1.0 : tensor<32x8x2xf32>
      %qr = rota.rope %qh, %table : tensor<2x32x4x16xf32>, tensor<32x8x2xf32>
      %kr = rota.rope %kh, %table : tensor<2x32x2x16xf32>, tensor<32x8x2xf32>
      %qn = rota.name "query_proj" %qr : tensor<2x32x4x16xf32>
      %kn = rota.name "key_proj" %kr : tensor<2x32x2x16xf32>
      %vn = rota.name "value_proj" %vh : tensor<2x32x2x16xf32>
      %o, %lse = rota.attention %qn, %kn, %vn scale = 0.25 : (tensor<2x32x4x16xf32>, tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>) -> (tensor<2x32x4x16xf32>, tensor<2x4x32xf32>)
      %flat = rota.reshape %o : tensor<2x32x4x16xf32> -> tensor<2x32x64xf32>
      %wo = rota.read @out.weight : tensor<64x64xf32>
      %a = rota.einsum "bsk,nk->bsn" %flat, %wo : (tensor<2x32x64xf32>, tensor<64x64xf32>) -> tensor<2x32x64xf32>
      %an = rota.name "out_proj" %a : tensor<2x32x64xf32>
      %y = arith.addf %x, %an : tensor<2x32x64xf32>
      return %y : tensor<2x32x64xf32>
    }
  }
  rota.layer @feed_forward {
    rota.param @norm.weight : tensor<64xf32> axes ["norm"] init #rota.constant<value = 1.0>
    rota.param @gate.weight : tensor<160x64xf32> axes ["mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.05>
    rota.param @up.weight : tensor<160x64xf32> axes ["mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.05>
    rota.param @down.weight : tensor<64x160xf32> axes ["embed", "mlp"] init #rota.normal<mean = 0.0, deviation = 0.05>
    func.func @forward(%x: tensor<2x32x64xf32>) -> tensor<2x32x64xf32> {
      %gain = rota.read @norm.weight : tensor<64xf32>
      %h = rota.rms_norm %x, %gain epsilon = 1.0e-05 : tensor<2x32x64xf32>, tensor<64xf32>
      %wg = rota.read @gate.weight : tensor<160x64xf32>
      %g = rota.einsum "bsk,nk->bsn" %h, %wg : (tensor<2x32x64xf32>, tensor<160x64xf32>) -> tensor<2x32x160xf32>
      %gn = rota.name "mlpwi_0" %g : tensor<2x32x160xf32>
      %wu = rota.read @up.weight : tensor<160x64xf32>
      %u = rota.einsum "bsk,nk->bsn" %h, %wu : (tensor<2x32x64xf32>, tensor<160x64xf32>) -> tensor<2x32x160xf32>
      %un = rota.name "mlpwi_1" %u : tensor<2x32x160xf32>
      %m = rota.activation silu %gn, %un : tensor<2x32x160xf32>
      %wd = rota.read @down.weight : tensor<64x160xf32>
      %d = rota.einsum "bsk,nk->bsn" %m, %wd : (tensor<2x32x160xf32>, tensor<64x160xf32>) -> tensor<2x32x64xf32>
      %dn = rota.name "mlpwo" %d : tensor<2x32x64xf32>
      %y = arith.addf %x, %dn : tensor<2x32x64xf32>
      return %y : tensor<2x32x64xf32>
    }
  }
}

func.func @embed(%tokens: tensor<2x32xi32>) -> tensor<2x32x64xf32> {
  %table = rota.read @tokens.weight : tensor<256x64xf32>
  %x = rota.embedding %tokens, %table : (tensor<2x32xi32>, tensor<256x64xf32>) -> tensor<2x32x64xf32>
  return %x : tensor<2x32x64xf32>
}

func.func @loss(%x: tensor<2x32x64xf32>, %targets: tensor<2x32xi32>) -> (tensor<f32>, tensor<f32>) {
  %gain = rota.read @norm.weight : tensor<64xf32>
  %h = rota.rms_norm %x, %gain epsilon = 1.0e-05 : tensor<2x32x64xf32>, tensor<64xf32>
  %head = rota.read @tokens.weight : tensor<256x64xf32>
  %logits = rota.einsum "bsk,nk->bsn" %h, %head : (tensor<2x32x64xf32>, tensor<256x64xf32>) -> tensor<2x32x256xf32>
  %named = rota.name "logits" %logits : tensor<2x32x256xf32>
  %sum, %weight, %lse = rota.cross_entropy %named, %targets : (tensor<2x32x256xf32>, tensor<2x32xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x32xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}
