// SPDX-License-Identifier: Apache-2.0
//
// A byte-level language model with experts. Layers of attention and of experts
// take turns. Each token chooses 2 of 4 experts, gated feed-forwards. The rows
// of a sequence are 2 blocks of 64, so that all choices of its 32 tokens fit in
// one; `--mesh expert=2` gives each rank a block and its 2 experts. Half of the
// rows are filled: with counts, only these travel.

rota.param @tokens.weight : tensor<256x64xf32> axes ["vocab", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
rota.param @norm.weight : tensor<64xf32> axes ["norm"] init #rota.constant<value = 1.0>

rota.stack @layers layers = 4 pattern [@attention, @experts] {
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
  rota.layer @experts {
    rota.param @norm.weight : tensor<64xf32> axes ["norm"] init #rota.constant<value = 1.0>
    rota.param @router.weight : tensor<4x64xf32> axes ["router", "embed"] init #rota.normal<mean = 0.0, deviation = 0.05>
    rota.param @"experts.{expert}.gate.weight" : tensor<4x96x64xf32> axes ["experts", "mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.05>
    rota.param @"experts.{expert}.up.weight" : tensor<4x96x64xf32> axes ["experts", "mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.05>
    rota.param @"experts.{expert}.down.weight" : tensor<4x64x96xf32> axes ["experts", "embed", "mlp"] init #rota.normal<mean = 0.0, deviation = 0.05>
    func.func @forward(%x: tensor<2x32x64xf32>) -> tensor<2x32x64xf32> {
      %gain = rota.read @norm.weight : tensor<64xf32>
      %h = rota.rms_norm %x, %gain epsilon = 1.0e-05 : tensor<2x32x64xf32>, tensor<64xf32>
      %wr = rota.read @router.weight : tensor<4x64xf32>
      %logits = rota.einsum "bsk,nk->bsn" %h, %wr : (tensor<2x32x64xf32>, tensor<4x64xf32>) -> tensor<2x32x4xf32>
      %weights, %chosen = rota.route %logits normalize scaling = 1.0 : (tensor<2x32x4xf32>) -> (tensor<2x32x2xf32>, tensor<2x32x2xi32>)
      %places, %counts = rota.expert_places %chosen rows = 128 blocks = 2 : tensor<2x32x2xi32> -> tensor<2x4xi32>
      %rows = rota.dispatch %h, %places counts %counts blocks = 2 fill = 0.5 : (tensor<2x32x64xf32>, tensor<2x32x2xi32>, tensor<2x4xi32>) -> tensor<2x128x64xf32>
      %wg = rota.read @"experts.{expert}.gate.weight" : tensor<4x96x64xf32>
      %g = rota.grouped_product %rows, %wg, %counts transposed blocks = 2 : (tensor<2x128x64xf32>, tensor<4x96x64xf32>, tensor<2x4xi32>) -> tensor<2x128x96xf32>
      %gn = rota.name "moe_mlpwi_0" %g : tensor<2x128x96xf32>
      %wu = rota.read @"experts.{expert}.up.weight" : tensor<4x96x64xf32>
      %u = rota.grouped_product %rows, %wu, %counts transposed blocks = 2 : (tensor<2x128x64xf32>, tensor<4x96x64xf32>, tensor<2x4xi32>) -> tensor<2x128x96xf32>
      %un = rota.name "moe_mlpwi_1" %u : tensor<2x128x96xf32>
      %m = rota.activation silu %gn, %un : tensor<2x128x96xf32>
      %wd = rota.read @"experts.{expert}.down.weight" : tensor<4x64x96xf32>
      %d = rota.grouped_product %m, %wd, %counts transposed blocks = 2 : (tensor<2x128x96xf32>, tensor<4x64x96xf32>, tensor<2x4xi32>) -> tensor<2x128x64xf32>
      %dn = rota.name "moe_mlpwo" %d : tensor<2x128x64xf32>
      %o = rota.combine %dn, %places weights %weights counts %counts blocks = 2 fill = 0.5 : (tensor<2x128x64xf32>, tensor<2x32x2xi32>, tensor<2x32x2xf32>, tensor<2x4xi32>) -> tensor<2x32x64xf32>
      %y = arith.addf %x, %o : tensor<2x32x64xf32>
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
