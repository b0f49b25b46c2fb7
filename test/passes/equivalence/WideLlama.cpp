// SPDX-License-Identifier: Apache-2.0
//
// A Llama decoder whose sizes many meshes divide.
#include "test/passes/equivalence/TestModels.h"

using namespace rota::interpreter;

/// Batch 4, length 8, hidden 8, 4 query heads of 2 over 2 key-value heads,
/// feed-forward 16, vocabulary 16, tied embeddings.
static const char *wide = R"(
rota.param @model.embed_tokens.weight : tensor<16x8x$W> axes ["vocab", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
rota.param @model.norm.weight : tensor<8x$W> axes ["embed"] init #rota.constant<value = 1.0>
rota.stack @model.layers layers = 2 pattern [@decoder] {
  rota.layer @decoder {
    rota.param @input_layernorm.weight : tensor<8x$W> axes ["embed"] init #rota.constant<value = 1.0>
    rota.param @self_attn.q_proj.weight : tensor<8x8x$W> axes ["heads", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @self_attn.k_proj.weight : tensor<4x8x$W> axes ["kv_heads", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @self_attn.v_proj.weight : tensor<4x8x$W> axes ["kv_heads", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @self_attn.o_proj.weight : tensor<8x8x$W> axes ["embed", "heads"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @post_attention_layernorm.weight : tensor<8x$W> axes ["embed"] init #rota.constant<value = 1.0>
    rota.param @mlp.gate_proj.weight : tensor<16x8x$W> axes ["mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @mlp.up_proj.weight : tensor<16x8x$W> axes ["mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @mlp.down_proj.weight : tensor<8x16x$W> axes ["embed", "mlp"] init #rota.normal<mean = 0.0, deviation = 0.02>
    func.func @forward(%x: tensor<4x8x8x$T>) -> tensor<4x8x8x$T> {
      %table = rota.rotary_table frequencies [0.5] scale = 1.0 : tensor<8x1x2x$W>
      %g1 = rota.read @input_layernorm.weight : tensor<8x$T>
      %n1 = rota.rms_norm %x, %g1 epsilon = 0.0078125 : tensor<4x8x8x$T>, tensor<8x$T>
      %wq = rota.read @self_attn.q_proj.weight : tensor<8x8x$T>
      %q0 = rota.einsum "bsk,nk->bsn" %n1, %wq : (tensor<4x8x8x$T>, tensor<8x8x$T>) -> tensor<4x8x8x$T>
      %q1 = rota.name "query_proj" %q0 : tensor<4x8x8x$T>
      %q2 = rota.reshape %q1 : tensor<4x8x8x$T> -> tensor<4x8x4x2x$T>
      %q = rota.rope %q2, %table : tensor<4x8x4x2x$T>, tensor<8x1x2x$W>
      %wk = rota.read @self_attn.k_proj.weight : tensor<4x8x$T>
      %k0 = rota.einsum "bsk,nk->bsn" %n1, %wk : (tensor<4x8x8x$T>, tensor<4x8x$T>) -> tensor<4x8x4x$T>
      %k1 = rota.name "key_proj" %k0 : tensor<4x8x4x$T>
      %k2 = rota.reshape %k1 : tensor<4x8x4x$T> -> tensor<4x8x2x2x$T>
      %k = rota.rope %k2, %table : tensor<4x8x2x2x$T>, tensor<8x1x2x$W>
      %wv = rota.read @self_attn.v_proj.weight : tensor<4x8x$T>
      %v0 = rota.einsum "bsk,nk->bsn" %n1, %wv : (tensor<4x8x8x$T>, tensor<4x8x$T>) -> tensor<4x8x4x$T>
      %v1 = rota.name "value_proj" %v0 : tensor<4x8x4x$T>
      %v = rota.reshape %v1 : tensor<4x8x4x$T> -> tensor<4x8x2x2x$T>
      %a, %lse = rota.attention %q, %k, %v scale = 0.5 : (tensor<4x8x4x2x$T>, tensor<4x8x2x2x$T>, tensor<4x8x2x2x$T>) -> (tensor<4x8x4x2x$T>, tensor<4x4x8x$W>)
      %a1 = rota.name "context" %a : tensor<4x8x4x2x$T>
      %a2 = rota.reshape %a1 : tensor<4x8x4x2x$T> -> tensor<4x8x8x$T>
      %wo = rota.read @self_attn.o_proj.weight : tensor<8x8x$T>
      %o0 = rota.einsum "bsk,nk->bsn" %a2, %wo : (tensor<4x8x8x$T>, tensor<8x8x$T>) -> tensor<4x8x8x$T>
      %o = rota.name "out_proj" %o0 : tensor<4x8x8x$T>
      %r = arith.addf %x, %o : tensor<4x8x8x$T>
      %g2 = rota.read @post_attention_layernorm.weight : tensor<8x$T>
      %n2 = rota.rms_norm %r, %g2 epsilon = 0.0078125 : tensor<4x8x8x$T>, tensor<8x$T>
      %wg = rota.read @mlp.gate_proj.weight : tensor<16x8x$T>
      %h0 = rota.einsum "bsk,nk->bsn" %n2, %wg : (tensor<4x8x8x$T>, tensor<16x8x$T>) -> tensor<4x8x16x$T>
      %gate = rota.name "mlpwi_0" %h0 : tensor<4x8x16x$T>
      %wu = rota.read @mlp.up_proj.weight : tensor<16x8x$T>
      %u0 = rota.einsum "bsk,nk->bsn" %n2, %wu : (tensor<4x8x8x$T>, tensor<16x8x$T>) -> tensor<4x8x16x$T>
      %up = rota.name "mlpwi_1" %u0 : tensor<4x8x16x$T>
      %h = rota.activation silu %gate, %up : tensor<4x8x16x$T>
      %wd = rota.read @mlp.down_proj.weight : tensor<8x16x$T>
      %d0 = rota.einsum "bsk,nk->bsn" %h, %wd : (tensor<4x8x16x$T>, tensor<8x16x$T>) -> tensor<4x8x8x$T>
      %d = rota.name "mlpwo" %d0 : tensor<4x8x8x$T>
      %y = arith.addf %r, %d : tensor<4x8x8x$T>
      return %y : tensor<4x8x8x$T>
    }
  }
}
func.func @embed(%tokens: tensor<4x8xi32>) -> tensor<4x8x8x$T> {
  %w = rota.read @model.embed_tokens.weight : tensor<16x8x$T>
  %x = rota.embedding %tokens, %w : (tensor<4x8xi32>, tensor<16x8x$T>) -> tensor<4x8x8x$T>
  return %x : tensor<4x8x8x$T>
}
func.func @loss(%x: tensor<4x8x8x$T>, %targets: tensor<4x8xi32>) -> (tensor<$W>, tensor<$W>) {
  %g = rota.read @model.norm.weight : tensor<8x$T>
  %n = rota.rms_norm %x, %g epsilon = 0.0078125 : tensor<4x8x8x$T>, tensor<8x$T>
  %w = rota.read @model.embed_tokens.weight : tensor<16x8x$T>
  %l0 = rota.einsum "bsk,nk->bsn" %n, %w : (tensor<4x8x8x$T>, tensor<16x8x$T>) -> tensor<4x8x16x$T>
  %l = rota.name "logits" %l0 : tensor<4x8x16x$T>
  %sum, %weight, %lse = rota.cross_entropy %l, %targets : (tensor<4x8x16x$T>, tensor<4x8xi32>) -> (tensor<$W>, tensor<$W>, tensor<4x8x$W>)
  return %sum, %weight : tensor<$W>, tensor<$W>
}
)";
const TestModel &rota::interpreter::wideLlama() {
  static const TestModel model = {"wide_llama", wide, 16,
                                  "query_proj=device,mlpwi_0=remat"};
  return model;
}
