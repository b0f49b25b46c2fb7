// RUN: rota-opt %s --split-input-file | FileCheck %s

// The example of every op's description parses, verifies and prints.

// CHECK-LABEL: module
// CHECK: rota.param @kept : tensor<8xf32> {{.*}}e+00> frozen{{$}}
rota.param @kept : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0> frozen

// CHECK: rota.param @tok_embeddings : tensor<256x64xf32> axes ["vocab", "embed"] init #rota.normal<mean = 0.000000e+00, deviation = 2.000000e-02>
rota.param @tok_embeddings : tensor<256x64xf32> axes ["vocab", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>

// CHECK: rota.param @key : tensor<64x64xf32> {{.*}} init {{.*}} joined <tensor = "c_attn.weight", dimension = 1, begin = 64, size = 192>{{$}}
rota.param @key : tensor<64x64xf32> axes ["embed", "kv_heads"] init #rota.constant<value = 1.0> joined <tensor = "c_attn.weight", dimension = 1, begin = 64, size = 192>

// The range is that of the whole parameter; functions see two of eight columns.
// CHECK: rota.param @value : tensor<64x32xf32> {{.*}} joined <{{.*}}> placement
rota.mesh <tensor = 2>
rota.param @value : tensor<64x32xf32> axes ["embed", "kv_heads"] init #rota.constant<value = 1.0> joined <tensor = "c_attn.weight", dimension = 1, begin = 128, size = 192> placement <whole [64, 64] compute <[[], [tensor]]> storage <[[], [tensor]]> optimizer <[[], [tensor]]>>

// -----

// CHECK-LABEL: module
// CHECK: rota.layer @linear {
rota.stack @layers layers = 4 pattern [@linear] {
  rota.layer @linear {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.normal<mean = 0.0, deviation = 0.1>
    func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
      return %y : tensor<2x4x8xf32>
    }
  }
}

// -----

// CHECK-LABEL: module
// CHECK: rota.stack @layers layers = 4 pattern [@a, @b] {
rota.stack @layers layers = 4 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = arith.addf %x, %x : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
  }
}

// -----

// CHECK-LABEL: module
// CHECK: rota.read @weight : tensor<8x8xbf16>
rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
func.func @f() -> tensor<8x8xbf16> {
  %w = rota.read @weight : tensor<8x8xbf16>
  return %w : tensor<8x8xbf16>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.accumulate @gain, %{{.*}} : tensor<8xf32>
rota.param @gain : tensor<8xf32> axes ["embed"] init #rota.constant<value = 1.0>
func.func @f(%gradient: tensor<8xf32>) {
  rota.accumulate @gain, %gradient : tensor<8xf32>
  return
}

// -----

// CHECK-LABEL: module
// CHECK: rota.auxiliary_loss "activation" %{{.*}} weight = 1.600000e+01 coefficient = 1.000000e-02 : tensor<f32>
// CHECK: rota.auxiliary_cotangent "activation" : tensor<f32>
rota.stack @layers layers = 4 pattern [@squares] {
  rota.layer @squares {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %square = arith.mulf %x, %x : tensor<2x8xf32>
      %sum = rota.reduce sum %square dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
      rota.auxiliary_loss "activation" %sum weight = 16.0 coefficient = 0.01 : tensor<f32>
      return %x : tensor<2x8xf32>
    }
    func.func @cotangent() -> tensor<f32> {
      %cotangent = rota.auxiliary_cotangent "activation" : tensor<f32>
      return %cotangent : tensor<f32>
    }
  }
}

// -----

// CHECK-LABEL: module
// CHECK: rota.name "query_proj" %{{.*}} : tensor<2x8xf32>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = rota.name "query_proj" %x : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.einsum "bsk,nk->bsn" %{{.*}}, %{{.*}} : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<16x8xf32>) -> tensor<2x4x16xf32> {
  %y = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
  return %y : tensor<2x4x16xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.reshape %{{.*}} : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x2x4xf32> {
  %y = rota.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  return %y : tensor<2x4x2x4xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.reduce sum %{{.*}} dims [2] : tensor<2x4x8xf32> -> tensor<2x4xf32>
func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4xf32> {
  %y = rota.reduce sum %x dims [2] : tensor<2x4x8xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.broadcast %{{.*}} dims [2] : tensor<8xf32> -> tensor<2x4x8xf32>
func.func @f(%x: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %y = rota.broadcast %x dims [2] : tensor<8xf32> -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.rms_norm %{{.*}}, %{{.*}} epsilon = 1.000000e-05 : tensor<2x4x8xf32>, tensor<8xf32>
func.func @f(%x: tensor<2x4x8xf32>, %gain: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %y = rota.rms_norm %x, %gain epsilon = 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.rms_norm_grad %{{.*}}, %{{.*}}, %{{.*}} epsilon = 1.000000e-05 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
func.func @f(%dy: tensor<2x4x8xf32>, %x: tensor<2x4x8xf32>, %gain: tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>) {
  %dx, %dgain = rota.rms_norm_grad %dy, %x, %gain epsilon = 1.0e-05 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
  return %dx, %dgain : tensor<2x4x8xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.activation silu %{{.*}}, %{{.*}} : tensor<2x8xf32>
func.func @f(%gate: tensor<2x8xf32>, %up: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = rota.activation silu %gate, %up : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.activation_grad silu %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
func.func @f(%dy: tensor<2x8xf32>, %gate: tensor<2x8xf32>, %up: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %dgate, %dup = rota.activation_grad silu %dy, %gate, %up : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  return %dgate, %dup : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.activation gelu_tanh %{{.*}} : tensor<2x8xf32>
// CHECK: rota.activation_grad gelu %{{.*}}, %{{.*}} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
func.func @f(%dy: tensor<2x8xf32>, %x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %y = rota.activation gelu_tanh %x : tensor<2x8xf32>
  %dx = rota.activation_grad gelu %dy, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y, %dx : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.rms_norm centered %{{.*}}, %{{.*}} epsilon
// CHECK: rota.rms_norm_grad centered %{{.*}}, %{{.*}}, %{{.*}} epsilon
func.func @f(%x: tensor<4x8xf32>, %gain: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %y = rota.rms_norm centered %x, %gain epsilon = 1.0e-05 : tensor<4x8xf32>, tensor<8xf32>
  %dx, %dgain = rota.rms_norm_grad centered %y, %x, %gain epsilon = 1.0e-05 : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return %dx, %dgain : tensor<4x8xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.split %{{.*}} dim = 1 : (tensor<2x8xf32>) -> (tensor<2x5xf32>, tensor<2x3xf32>)
// CHECK: rota.concat %{{.*}}, %{{.*}} dim = 1 : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %a, %b = rota.split %x dim = 1 : (tensor<2x8xf32>) -> (tensor<2x5xf32>, tensor<2x3xf32>)
  %y = rota.concat %b, %a dim = 1 : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.rotary_table frequencies [1.000000e+00, 1.000000e-02] scale = 1.000000e+00 : tensor<16x2x2xf32>
func.func @f() -> tensor<16x2x2xf32> {
  %table = rota.rotary_table frequencies [1.0, 0.01] scale = 1.0 : tensor<16x2x2xf32>
  return %table : tensor<16x2x2xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.rope %{{.*}}, %{{.*}} : tensor<2x16x3x4xf32>, tensor<16x2x2xf32>
func.func @f(%x: tensor<2x16x3x4xf32>, %table: tensor<16x2x2xf32>) -> tensor<2x16x3x4xf32> {
  %y = rota.rope %x, %table : tensor<2x16x3x4xf32>, tensor<16x2x2xf32>
  %z = rota.rope inverse %y, %table : tensor<2x16x3x4xf32>, tensor<16x2x2xf32>
  return %z : tensor<2x16x3x4xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 3.500000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>) -> tensor<2x16x4x8xf32> {
  %o, %lse = rota.attention %q, %k, %v scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return %o : tensor<2x16x4x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale = 3.500000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)
func.func @f(%do: tensor<2x16x4x8xf32>, %q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>, %o: tensor<2x16x4x8xf32>, %lse: tensor<2x4x16xf32>) -> tensor<2x16x4x8xf32> {
  %dq, %dk, %dv = rota.attention_grad %do, %q, %k, %v, %o, %lse scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)
  return %dq : tensor<2x16x4x8xf32>
}

// -----

// Attention within documents, and rotation by positions in them.
// CHECK-LABEL: module
// CHECK: %[[P:.*]] = rota.document_positions end = 2 : tensor<2x16xi32>
// CHECK: rota.rope %{{.*}}, %{{.*}} at %[[P]] : tensor<2x16x4x8xf32>, tensor<16x4x2xf32>, tensor<2x16xi32>
// CHECK: rota.attention %{{.*}}, %{{.*}}, %{{.*}} documents %[[P]] scale = 3.500000e-01 window = 5
// CHECK: rota.attention_grad {{.*}} documents %[[P]] scale = 3.500000e-01 window = 5
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %table: tensor<16x4x2xf32>) -> tensor<2x16x4x8xf32> {
  %p = rota.document_positions end = 2 : tensor<2x16xi32>
  %r = rota.rope %q, %table at %p : tensor<2x16x4x8xf32>, tensor<16x4x2xf32>, tensor<2x16xi32>
  %o, %lse = rota.attention %r, %k, %k documents %p scale = 0.35 window = 5 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16xi32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  %dq, %dk, %dv = rota.attention_grad %o, %r, %k, %k, %o, %lse documents %p scale = 0.35 window = 5 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<2x16xi32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)
  return %dq : tensor<2x16x4x8xf32>
}

// -----

// All of attention's form.
// CHECK-LABEL: module
// CHECK: rota.attention %{{.*}}, %{{.*}}, %{{.*}} sinks %{{.*}} scale = 3.500000e-01 window = 5 soft_cap = 5.000000e+01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x6xf32>, tensor<4xf32>) -> (tensor<2x16x4x6xf32>, tensor<2x4x16xf32>)
// CHECK: rota.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 3.500000e-01 window = 5 bidirectional : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x6xf32>) -> (tensor<2x16x4x6xf32>, tensor<2x4x16xf32>)
// CHECK: rota.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} sinks %{{.*}} scale = 3.500000e-01 window = 5 soft_cap = 5.000000e+01 bidirectional : (tensor<2x16x4x6xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x6xf32>, tensor<2x16x4x6xf32>, tensor<2x4x16xf32>, tensor<4xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x6xf32>, tensor<4xf32>)
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x6xf32>, %sinks: tensor<4xf32>) -> tensor<4xf32> {
  %o0, %l0 = rota.attention %q, %k, %v sinks %sinks scale = 0.35 window = 5 soft_cap = 50.0 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x6xf32>, tensor<4xf32>) -> (tensor<2x16x4x6xf32>, tensor<2x4x16xf32>)
  %o1, %l1 = rota.attention %q, %k, %v scale = 0.35 window = 5 bidirectional : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x6xf32>) -> (tensor<2x16x4x6xf32>, tensor<2x4x16xf32>)
  %dq, %dk, %dv, %ds = rota.attention_grad %o0, %q, %k, %v, %o1, %l1 sinks %sinks scale = 0.35 window = 5 soft_cap = 50.0 bidirectional : (tensor<2x16x4x6xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x6xf32>, tensor<2x16x4x6xf32>, tensor<2x4x16xf32>, tensor<4xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x6xf32>, tensor<4xf32>)
  return %ds : tensor<4xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.embedding %{{.*}}, %{{.*}} : (tensor<2x16xi32>, tensor<256x8xf32>) -> tensor<2x16x8xf32>
func.func @f(%tokens: tensor<2x16xi32>, %table: tensor<256x8xf32>) -> tensor<2x16x8xf32> {
  %x = rota.embedding %tokens, %table : (tensor<2x16xi32>, tensor<256x8xf32>) -> tensor<2x16x8xf32>
  return %x : tensor<2x16x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.embedding_grad %{{.*}}, %{{.*}} : (tensor<2x16xi32>, tensor<2x16x8xf32>) -> tensor<256x8xf32>
func.func @f(%tokens: tensor<2x16xi32>, %dy: tensor<2x16x8xf32>) -> tensor<256x8xf32> {
  %dtable = rota.embedding_grad %tokens, %dy : (tensor<2x16xi32>, tensor<2x16x8xf32>) -> tensor<256x8xf32>
  return %dtable : tensor<256x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.cross_entropy %{{.*}}, %{{.*}} : (tensor<2x16x256xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
func.func @f(%logits: tensor<2x16x256xf32>, %targets: tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x256xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<f32>, tensor<2x16x256xf32>, tensor<2x16xi32>, tensor<2x16xf32>) -> tensor<2x16x256xf32>
func.func @f(%dsum: tensor<f32>, %logits: tensor<2x16x256xf32>, %targets: tensor<2x16xi32>, %lse: tensor<2x16xf32>) -> tensor<2x16x256xf32> {
  %dlogits = rota.cross_entropy_grad %dsum, %logits, %targets, %lse : (tensor<f32>, tensor<2x16x256xf32>, tensor<2x16xi32>, tensor<2x16xf32>) -> tensor<2x16x256xf32>
  return %dlogits : tensor<2x16x256xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[LSE:.*]] rows %[[LSE]] : (tensor<f32>, tensor<2x16x256xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<2x16xf32>)
// CHECK: rota.cross_entropy_grad %{{.*}} offset %[[OFFSET:.*]] of 250 rows %[[LSE]] : (tensor<f32>, tensor<2x16x256xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<i32>, tensor<2x16xf32>)
func.func @f(%dsum: tensor<f32>, %logits: tensor<2x16x256xf32>, %targets: tensor<2x16xi32>, %lse: tensor<2x16xf32>, %offset: tensor<i32>) -> (tensor<2x16x256xf32>, tensor<2x16x256xf32>) {
  %whole = rota.cross_entropy_grad %dsum, %logits, %targets, %lse rows %lse : (tensor<f32>, tensor<2x16x256xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16x256xf32>
  %part = rota.cross_entropy_grad %dsum, %logits, %targets, %lse offset %offset of 250 rows %lse : (tensor<f32>, tensor<2x16x256xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<i32>, tensor<2x16xf32>) -> tensor<2x16x256xf32>
  return %whole, %part : tensor<2x16x256xf32>, tensor<2x16x256xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: func.func private @loss({{.*}}) -> (tensor<f32>, tensor<f32>, tensor<f32> {rota.loss_term = #rota.loss_term<name = "z_loss", coefficient = 1.000000e-04>})
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32> {rota.loss_term = #rota.loss_term<name = "z_loss", coefficient = 1.0e-04>})

// -----

// CHECK-LABEL: module
// CHECK: rota.embedding %{{.*}}, %{{.*}} offset %{{.*}} : (tensor<2x16xi32>, tensor<128x8xf32>, tensor<i32>) -> tensor<2x16x8xf32>
// CHECK: rota.embedding %{{.*}}, %{{.*}} offset %{{.*}} of 250 : (tensor<2x16xi32>, tensor<128x8xf32>, tensor<i32>) -> tensor<2x16x8xf32>
// CHECK: rota.embedding_grad %{{.*}}, %{{.*}} offset %{{.*}} : (tensor<2x16xi32>, tensor<2x16x8xf32>, tensor<i32>) -> tensor<128x8xf32>
func.func @f(%tokens: tensor<2x16xi32>, %table: tensor<128x8xf32>, %offset: tensor<i32>) -> tensor<128x8xf32> {
  %x = rota.embedding %tokens, %table offset %offset : (tensor<2x16xi32>, tensor<128x8xf32>, tensor<i32>) -> tensor<2x16x8xf32>
  %y = rota.embedding %tokens, %table offset %offset of 250 : (tensor<2x16xi32>, tensor<128x8xf32>, tensor<i32>) -> tensor<2x16x8xf32>
  %dtable = rota.embedding_grad %tokens, %x offset %offset : (tensor<2x16xi32>, tensor<2x16x8xf32>, tensor<i32>) -> tensor<128x8xf32>
  return %dtable : tensor<128x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.cross_entropy_shard %{{.*}}, %{{.*}} offset %{{.*}} of 250 : (tensor<2x16x128xf32>, tensor<2x16xi32>, tensor<i32>) -> tensor<2x16x2xf32>
// CHECK: rota.cross_entropy_merge %{{.*}}, %{{.*}} : (tensor<2x16x2xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
// CHECK: rota.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} offset %{{.*}} of 250 : (tensor<f32>, tensor<2x16x128xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<i32>) -> tensor<2x16x128xf32>
func.func @f(%logits: tensor<2x16x128xf32>, %targets: tensor<2x16xi32>, %offset: tensor<i32>) -> tensor<2x16x128xf32> {
  %parts = rota.cross_entropy_shard %logits, %targets offset %offset of 250 : (tensor<2x16x128xf32>, tensor<2x16xi32>, tensor<i32>) -> tensor<2x16x2xf32>
  %sum, %weight, %lse = rota.cross_entropy_merge %parts, %targets : (tensor<2x16x2xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  %dlogits = rota.cross_entropy_grad %sum, %logits, %targets, %lse offset %offset of 250 : (tensor<f32>, tensor<2x16x128xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<i32>) -> tensor<2x16x128xf32>
  return %dlogits : tensor<2x16x128xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.kernel @scale operands [#map, #map1] results [#rota.result<row>] {
rota.kernel @scale operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>, %gain: tensor<8xf32>):
  %y = arith.mulf %x, %gain : tensor<8xf32>
  rota.yield %y : tensor<8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.yield %{{.*}} : tensor<8xf32>
rota.kernel @identity operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  rota.yield %x : tensor<8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.launch @twice rows = 6(%{{.*}}) : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
rota.kernel @twice operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  %y = arith.addf %x, %x : tensor<8xf32>
  rota.yield %y : tensor<8xf32>
}
func.func @f(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %y = rota.launch @twice rows = 6 (%x) : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.mesh <data = 2, stage = 4, tensor = 2>
rota.mesh <tensor = 2, data = 2, expert = 1, stage = 4>

// -----

// One rank: every axis has size 1.
// CHECK-LABEL: module
// CHECK: rota.mesh <>
rota.mesh <>

// -----

// A parameter as a whole, then one rank's part of it.
// CHECK-LABEL: module
// CHECK: rota.param @whole : tensor<64x64xf32> {{.*}} placement <whole[64, 64] compute<{{\[\[}}tensor], []] unreduced [data, fsdp]> storage<{{\[\[}}tensor], [fsdp]]> optimizer<{{\[\[}}tensor], [fsdp, data]]>>
// CHECK: rota.param @part : tensor<32x64xf32>
rota.mesh <data = 2, fsdp = 2, tensor = 2>
rota.param @whole : tensor<64x64xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> placement <whole [64, 64] compute <[[tensor], []] unreduced [data, fsdp]> storage <[[tensor], [fsdp]]> optimizer <[[tensor], [fsdp, data]]>>
rota.param @part : tensor<32x64xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> placement <whole [64, 64] compute <[[tensor], []] unreduced [data, fsdp]> storage <[[tensor], [fsdp]]> optimizer <[[tensor], [fsdp, data]]>>

// -----

// Parts of axes, open dimensions, sums and copies.
// CHECK-LABEL: module
// CHECK: func.func @f(%{{.*}}: tensor<2x8xf32> {rota.sharding = #rota.sharding<{{\[\[}}data], [?]]>}) -> (tensor<2x8xf32> {rota.sharding = #rota.sharding<{{\[\[}}data, ?], [tensor:(1)2]] unreduced [fsdp]>})
// CHECK: rota.constrain %{{.*}} <{{\[\[}}data], [tensor:(2)4, ?]] unreduced [fsdp, tensor:(1)2] replicated [context]> : tensor<2x8xf32>
rota.mesh <data = 2, fsdp = 2, context = 2, tensor = 8>
func.func @f(%x: tensor<2x8xf32> {rota.sharding = #rota.sharding<[[data], [?]]>}) -> (tensor<2x8xf32> {rota.sharding = #rota.sharding<[[data, ?], [tensor:(1)2]] unreduced [fsdp]>}) {
  %y = rota.constrain %x <[[data], [tensor:(2)4, ?]] unreduced [fsdp, tensor:(1)2] replicated [context]> : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.reshard %{{.*}} from <{{\[\[}}data], []]> to <{{\[\[}}], [data]]> reason "test" : tensor<2x8xf32>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = rota.reshard %x from <[[data], []]> to <[[], [data]]> reason "test" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.all_gather %{{.*}} dim = 1 axes [<tensor>] reason "test" : tensor<2x4xf32> -> tensor<2x8xf32>
// The last of three parts of 8 is short.
// CHECK: rota.shard_slice %{{.*}} dim = 1 axes [<data>] reason "test" : tensor<2x8xf32> -> tensor<2x3xf32>
// CHECK: rota.all_gather %{{.*}} dim = 1 axes [<data>] reason "test" : tensor<2x3xf32> -> tensor<2x8xf32>
rota.mesh <data = 3, tensor = 2>
func.func @f(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %y = rota.all_gather %x dim = 1 axes [<tensor>] reason "test" : tensor<2x4xf32> -> tensor<2x8xf32>
  %part = rota.shard_slice %y dim = 1 axes [<data>] reason "test" : tensor<2x8xf32> -> tensor<2x3xf32>
  %z = rota.all_gather %part dim = 1 axes [<data>] reason "test" : tensor<2x3xf32> -> tensor<2x8xf32>
  return %z : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.reduce_scatter %{{.*}} dim = 1 axes [<data>, <tensor:(1)2>] reason "test" : tensor<2x8xf32> -> tensor<2x2xf32>
rota.mesh <data = 2, tensor = 4>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x2xf32> {
  %y = rota.reduce_scatter %x dim = 1 axes [<data>, <tensor:(1)2>] reason "test" : tensor<2x8xf32> -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.all_reduce sum %{{.*}} axes [<tensor>] reason "test" : tensor<2x8xf32>
// CHECK: rota.all_reduce max %{{.*}} axes [<tensor>] reason "test" : tensor<2x8xf32>
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = rota.all_reduce sum %x axes [<tensor>] reason "test" : tensor<2x8xf32>
  %z = rota.all_reduce max %y axes [<tensor>] reason "test" : tensor<2x8xf32>
  return %z : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.all_to_all %{{.*}} gather = 0 split = 1 axes [<tensor>] reason "test" : tensor<2x8xf32> -> tensor<4x4xf32>
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<4x4xf32> {
  %y = rota.all_to_all %x gather = 0 split = 1 axes [<tensor>] reason "test" : tensor<2x8xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.permute %{{.*}} axes [<tensor>] order [<tensor>] shift = 1 reason "test" : tensor<2x8xf32>
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = rota.permute %x axes [<tensor>] order [<tensor>] shift = 1 reason "test" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.permute %{{.*}} axes [<data>, <tensor>] order [<tensor>, <data>] reason "test" : tensor<2x8xf32>
rota.mesh <data = 2, tensor = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = rota.permute %x axes [<data>, <tensor>] order [<tensor>, <data>] reason "test" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.permute %{{.*}} axes [<tensor>] order [<tensor>] mirrored reason "test" : tensor<2x8xf32>
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = rota.permute %x axes [<tensor>] order [<tensor>] mirrored reason "test" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.shard_offset axes [<tensor>] shift = 1 factor = -2 start = 3 : tensor<i32>
rota.mesh <tensor = 2>
func.func @f() -> tensor<i32> {
  %o = rota.shard_offset axes [<tensor>] shift = 1 factor = -2 start = 3 : tensor<i32>
  return %o : tensor<i32>
}

// -----

// CHECK-LABEL: module
// CHECK: rota.shard_offset axes [<tensor>] factor = 128 : tensor<i32>
rota.mesh <tensor = 2>
func.func @f() -> tensor<i32> {
  %o = rota.shard_offset axes [<tensor>] factor = 128 : tensor<i32>
  return %o : tensor<i32>
}
