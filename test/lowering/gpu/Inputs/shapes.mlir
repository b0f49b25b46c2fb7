// The kernels of models of 768, 4096, 8192 and 16384 columns; attention of heads of
// 32, 64, 80, 96, 128, 252 and 256, with sinks and with a cap in a window.

func.func @norm_768(%x: tensor<8192x768xbf16>, %g: tensor<768xbf16>) -> (tensor<8192x768xbf16>) {
  %y = rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<8192x768xbf16>, tensor<768xbf16>
  return %y : tensor<8192x768xbf16>
}

func.func @add_norm_768(%a: tensor<8192x768xbf16>, %b: tensor<8192x768xbf16>, %g: tensor<768xbf16>) -> (tensor<8192x768xbf16>, tensor<8192x768xbf16>) {
  %x = arith.addf %a, %b : tensor<8192x768xbf16>
  %y = rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<8192x768xbf16>, tensor<768xbf16>
  return %x, %y : tensor<8192x768xbf16>, tensor<8192x768xbf16>
}

func.func @norm_grad_768(%d: tensor<8192x768xbf16>, %x: tensor<8192x768xbf16>, %g: tensor<768xbf16>, %r: tensor<8192x768xbf16>) -> (tensor<8192x768xbf16>, tensor<768xf32>) {
  %dx, %dg = rota.rms_norm_grad %d, %x, %g epsilon = 1.0e-05 : (tensor<8192x768xbf16>, tensor<8192x768xbf16>, tensor<768xbf16>) -> (tensor<8192x768xbf16>, tensor<768xf32>)
  %s = arith.addf %dx, %r : tensor<8192x768xbf16>
  return %s, %dg : tensor<8192x768xbf16>, tensor<768xf32>
}

func.func @norm_4096(%x: tensor<8192x4096xbf16>, %g: tensor<4096xbf16>) -> (tensor<8192x4096xbf16>) {
  %y = rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<8192x4096xbf16>, tensor<4096xbf16>
  return %y : tensor<8192x4096xbf16>
}

func.func @add_norm_4096(%a: tensor<8192x4096xbf16>, %b: tensor<8192x4096xbf16>, %g: tensor<4096xbf16>) -> (tensor<8192x4096xbf16>, tensor<8192x4096xbf16>) {
  %x = arith.addf %a, %b : tensor<8192x4096xbf16>
  %y = rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<8192x4096xbf16>, tensor<4096xbf16>
  return %x, %y : tensor<8192x4096xbf16>, tensor<8192x4096xbf16>
}

func.func @norm_grad_4096(%d: tensor<8192x4096xbf16>, %x: tensor<8192x4096xbf16>, %g: tensor<4096xbf16>, %r: tensor<8192x4096xbf16>) -> (tensor<8192x4096xbf16>, tensor<4096xf32>) {
  %dx, %dg = rota.rms_norm_grad %d, %x, %g epsilon = 1.0e-05 : (tensor<8192x4096xbf16>, tensor<8192x4096xbf16>, tensor<4096xbf16>) -> (tensor<8192x4096xbf16>, tensor<4096xf32>)
  %s = arith.addf %dx, %r : tensor<8192x4096xbf16>
  return %s, %dg : tensor<8192x4096xbf16>, tensor<4096xf32>
}

func.func @norm_8192(%x: tensor<8192x8192xbf16>, %g: tensor<8192xbf16>) -> (tensor<8192x8192xbf16>) {
  %y = rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<8192x8192xbf16>, tensor<8192xbf16>
  return %y : tensor<8192x8192xbf16>
}

func.func @add_norm_8192(%a: tensor<8192x8192xbf16>, %b: tensor<8192x8192xbf16>, %g: tensor<8192xbf16>) -> (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) {
  %x = arith.addf %a, %b : tensor<8192x8192xbf16>
  %y = rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<8192x8192xbf16>, tensor<8192xbf16>
  return %x, %y : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>
}

func.func @norm_grad_8192(%d: tensor<8192x8192xbf16>, %x: tensor<8192x8192xbf16>, %g: tensor<8192xbf16>, %r: tensor<8192x8192xbf16>) -> (tensor<8192x8192xbf16>, tensor<8192xf32>) {
  %dx, %dg = rota.rms_norm_grad %d, %x, %g epsilon = 1.0e-05 : (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>, tensor<8192xbf16>) -> (tensor<8192x8192xbf16>, tensor<8192xf32>)
  %s = arith.addf %dx, %r : tensor<8192x8192xbf16>
  return %s, %dg : tensor<8192x8192xbf16>, tensor<8192xf32>
}

func.func @norm_16384(%x: tensor<4096x16384xbf16>, %g: tensor<16384xbf16>) -> (tensor<4096x16384xbf16>) {
  %y = rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<4096x16384xbf16>, tensor<16384xbf16>
  return %y : tensor<4096x16384xbf16>
}

func.func @add_norm_16384(%a: tensor<4096x16384xbf16>, %b: tensor<4096x16384xbf16>, %g: tensor<16384xbf16>) -> (tensor<4096x16384xbf16>, tensor<4096x16384xbf16>) {
  %x = arith.addf %a, %b : tensor<4096x16384xbf16>
  %y = rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<4096x16384xbf16>, tensor<16384xbf16>
  return %x, %y : tensor<4096x16384xbf16>, tensor<4096x16384xbf16>
}

func.func @norm_grad_16384(%d: tensor<4096x16384xbf16>, %x: tensor<4096x16384xbf16>, %g: tensor<16384xbf16>, %r: tensor<4096x16384xbf16>) -> (tensor<4096x16384xbf16>, tensor<16384xf32>) {
  %dx, %dg = rota.rms_norm_grad %d, %x, %g epsilon = 1.0e-05 : (tensor<4096x16384xbf16>, tensor<4096x16384xbf16>, tensor<16384xbf16>) -> (tensor<4096x16384xbf16>, tensor<16384xf32>)
  %s = arith.addf %dx, %r : tensor<4096x16384xbf16>
  return %s, %dg : tensor<4096x16384xbf16>, tensor<16384xf32>
}

func.func @wide_norm_grad_256(%d: tensor<8192x256xf32>, %x: tensor<8192x256xf32>, %g: tensor<256xf32>) -> (tensor<8192x256xf32>, tensor<256xf32>) {
  %dx, %dg = rota.rms_norm_grad %d, %x, %g epsilon = 1.0e-05 : (tensor<8192x256xf32>, tensor<8192x256xf32>, tensor<256xf32>) -> (tensor<8192x256xf32>, tensor<256xf32>)
  return %dx, %dg : tensor<8192x256xf32>, tensor<256xf32>
}

func.func @wide_norm_grad_4096(%d: tensor<8192x4096xf32>, %x: tensor<8192x4096xf32>, %g: tensor<4096xf32>) -> (tensor<8192x4096xf32>, tensor<4096xf32>) {
  %dx, %dg = rota.rms_norm_grad %d, %x, %g epsilon = 1.0e-05 : (tensor<8192x4096xf32>, tensor<8192x4096xf32>, tensor<4096xf32>) -> (tensor<8192x4096xf32>, tensor<4096xf32>)
  return %dx, %dg : tensor<8192x4096xf32>, tensor<4096xf32>
}

func.func @wide_norm_grad_16384(%d: tensor<4096x16384xf32>, %x: tensor<4096x16384xf32>, %g: tensor<16384xf32>) -> (tensor<4096x16384xf32>, tensor<16384xf32>) {
  %dx, %dg = rota.rms_norm_grad %d, %x, %g epsilon = 1.0e-05 : (tensor<4096x16384xf32>, tensor<4096x16384xf32>, tensor<16384xf32>) -> (tensor<4096x16384xf32>, tensor<16384xf32>)
  return %dx, %dg : tensor<4096x16384xf32>, tensor<16384xf32>
}

func.func @head_norm(%x: tensor<8192x32x128xbf16>, %g: tensor<128xbf16>) -> (tensor<8192x32x128xbf16>) {
  %y = rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<8192x32x128xbf16>, tensor<128xbf16>
  return %y : tensor<8192x32x128xbf16>
}

func.func @head_norm_grad(%d: tensor<8192x32x128xbf16>, %x: tensor<8192x32x128xbf16>, %g: tensor<128xbf16>) -> (tensor<8192x32x128xbf16>, tensor<128xf32>) {
  %dx, %dg = rota.rms_norm_grad %d, %x, %g epsilon = 1.0e-05 : (tensor<8192x32x128xbf16>, tensor<8192x32x128xbf16>, tensor<128xbf16>) -> (tensor<8192x32x128xbf16>, tensor<128xf32>)
  return %dx, %dg : tensor<8192x32x128xbf16>, tensor<128xf32>
}

func.func @swiglu(%a: tensor<8192x14336xbf16>, %b: tensor<8192x14336xbf16>) -> (tensor<8192x14336xbf16>) {
  %y = rota.activation silu %a, %b : tensor<8192x14336xbf16>
  return %y : tensor<8192x14336xbf16>
}

func.func @swiglu_grad(%d: tensor<8192x14336xbf16>, %a: tensor<8192x14336xbf16>, %b: tensor<8192x14336xbf16>) -> (tensor<8192x14336xbf16>, tensor<8192x14336xbf16>) {
  %da, %db = rota.activation_grad silu %d, %a, %b : (tensor<8192x14336xbf16>, tensor<8192x14336xbf16>, tensor<8192x14336xbf16>) -> (tensor<8192x14336xbf16>, tensor<8192x14336xbf16>)
  return %da, %db : tensor<8192x14336xbf16>, tensor<8192x14336xbf16>
}

func.func @softmax(%x: tensor<8192x1000xf32>) -> (tensor<8192x1000xf32>) {
  %m = rota.reduce max %x dims [1] : tensor<8192x1000xf32> -> tensor<8192xf32>
  %b = rota.broadcast %m dims [0] : tensor<8192xf32> -> tensor<8192x1000xf32>
  %d = arith.subf %x, %b : tensor<8192x1000xf32>
  %e = math.exp %d : tensor<8192x1000xf32>
  %s = rota.reduce sum %e dims [1] : tensor<8192x1000xf32> -> tensor<8192xf32>
  %t = rota.broadcast %s dims [0] : tensor<8192xf32> -> tensor<8192x1000xf32>
  %y = arith.divf %e, %t : tensor<8192x1000xf32>
  return %y : tensor<8192x1000xf32>
}

func.func @loss_32000_bf16(%l: tensor<4x2048x32000xbf16>, %t: tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>) {
  %s, %w, %e = rota.cross_entropy %l, %t : (tensor<4x2048x32000xbf16>, tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>)
  return %s, %w, %e : tensor<f32>, tensor<f32>, tensor<4x2048xf32>
}

func.func @loss_grad_32000_bf16(%d: tensor<f32>, %l: tensor<4x2048x32000xbf16>, %t: tensor<4x2048xi32>, %e: tensor<4x2048xf32>) -> (tensor<4x2048x32000xbf16>) {
  %g = rota.cross_entropy_grad %d, %l, %t, %e : (tensor<f32>, tensor<4x2048x32000xbf16>, tensor<4x2048xi32>, tensor<4x2048xf32>) -> tensor<4x2048x32000xbf16>
  return %g : tensor<4x2048x32000xbf16>
}

func.func @loss_128256_bf16(%l: tensor<4x2048x128256xbf16>, %t: tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>) {
  %s, %w, %e = rota.cross_entropy %l, %t : (tensor<4x2048x128256xbf16>, tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>)
  return %s, %w, %e : tensor<f32>, tensor<f32>, tensor<4x2048xf32>
}

func.func @loss_grad_128256_bf16(%d: tensor<f32>, %l: tensor<4x2048x128256xbf16>, %t: tensor<4x2048xi32>, %e: tensor<4x2048xf32>) -> (tensor<4x2048x128256xbf16>) {
  %g = rota.cross_entropy_grad %d, %l, %t, %e : (tensor<f32>, tensor<4x2048x128256xbf16>, tensor<4x2048xi32>, tensor<4x2048xf32>) -> tensor<4x2048x128256xbf16>
  return %g : tensor<4x2048x128256xbf16>
}

func.func @loss_50257_bf16(%l: tensor<4x2048x50257xbf16>, %t: tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>) {
  %s, %w, %e = rota.cross_entropy %l, %t : (tensor<4x2048x50257xbf16>, tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>)
  return %s, %w, %e : tensor<f32>, tensor<f32>, tensor<4x2048xf32>
}

func.func @loss_grad_50257_bf16(%d: tensor<f32>, %l: tensor<4x2048x50257xbf16>, %t: tensor<4x2048xi32>, %e: tensor<4x2048xf32>) -> (tensor<4x2048x50257xbf16>) {
  %g = rota.cross_entropy_grad %d, %l, %t, %e : (tensor<f32>, tensor<4x2048x50257xbf16>, tensor<4x2048xi32>, tensor<4x2048xf32>) -> tensor<4x2048x50257xbf16>
  return %g : tensor<4x2048x50257xbf16>
}

func.func @loss_32000_f32(%l: tensor<4x2048x32000xf32>, %t: tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>) {
  %s, %w, %e = rota.cross_entropy %l, %t : (tensor<4x2048x32000xf32>, tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>)
  return %s, %w, %e : tensor<f32>, tensor<f32>, tensor<4x2048xf32>
}

func.func @loss_grad_32000_f32(%d: tensor<f32>, %l: tensor<4x2048x32000xf32>, %t: tensor<4x2048xi32>, %e: tensor<4x2048xf32>) -> (tensor<4x2048x32000xf32>) {
  %g = rota.cross_entropy_grad %d, %l, %t, %e : (tensor<f32>, tensor<4x2048x32000xf32>, tensor<4x2048xi32>, tensor<4x2048xf32>) -> tensor<4x2048x32000xf32>
  return %g : tensor<4x2048x32000xf32>
}

func.func @loss_part(%l: tensor<4x2048x16032xbf16>, %t: tensor<4x2048xi32>, %o: tensor<i32>) -> (tensor<4x2048x2xf32>) {
  %p = rota.cross_entropy_shard %l, %t offset %o of 128256 : (tensor<4x2048x16032xbf16>, tensor<4x2048xi32>, tensor<i32>) -> tensor<4x2048x2xf32>
  return %p : tensor<4x2048x2xf32>
}

func.func @loss_merge(%p: tensor<4x2048x16xf32>, %t: tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>) {
  %s, %w, %e = rota.cross_entropy_merge %p, %t : (tensor<4x2048x16xf32>, tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>)
  return %s, %w, %e : tensor<f32>, tensor<f32>, tensor<4x2048xf32>
}

func.func @loss_part_grad(%d: tensor<f32>, %l: tensor<4x2048x16032xbf16>, %t: tensor<4x2048xi32>, %e: tensor<4x2048xf32>, %o: tensor<i32>) -> (tensor<4x2048x16032xbf16>) {
  %g = rota.cross_entropy_grad %d, %l, %t, %e offset %o of 128256 : (tensor<f32>, tensor<4x2048x16032xbf16>, tensor<4x2048xi32>, tensor<4x2048xf32>, tensor<i32>) -> tensor<4x2048x16032xbf16>
  return %g : tensor<4x2048x16032xbf16>
}

func.func @pair_loss_32000_bf16(%d: tensor<f32>, %l: tensor<4x2048x32000xbf16>, %t: tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048x32000xbf16>) {
  %s, %w, %e = rota.cross_entropy %l, %t : (tensor<4x2048x32000xbf16>, tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>)
  %g = rota.cross_entropy_grad %d, %l, %t, %e : (tensor<f32>, tensor<4x2048x32000xbf16>, tensor<4x2048xi32>, tensor<4x2048xf32>) -> tensor<4x2048x32000xbf16>
  return %s, %w, %g : tensor<f32>, tensor<f32>, tensor<4x2048x32000xbf16>
}

func.func @pair_loss_50257_bf16(%d: tensor<f32>, %l: tensor<4x2048x50257xbf16>, %t: tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048x50257xbf16>) {
  %s, %w, %e = rota.cross_entropy %l, %t : (tensor<4x2048x50257xbf16>, tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>)
  %g = rota.cross_entropy_grad %d, %l, %t, %e : (tensor<f32>, tensor<4x2048x50257xbf16>, tensor<4x2048xi32>, tensor<4x2048xf32>) -> tensor<4x2048x50257xbf16>
  return %s, %w, %g : tensor<f32>, tensor<f32>, tensor<4x2048x50257xbf16>
}

func.func @pair_loss_128256_bf16(%d: tensor<f32>, %l: tensor<4x2048x128256xbf16>, %t: tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048x128256xbf16>) {
  %s, %w, %e = rota.cross_entropy %l, %t : (tensor<4x2048x128256xbf16>, tensor<4x2048xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x2048xf32>)
  %g = rota.cross_entropy_grad %d, %l, %t, %e : (tensor<f32>, tensor<4x2048x128256xbf16>, tensor<4x2048xi32>, tensor<4x2048xf32>) -> tensor<4x2048x128256xbf16>
  return %s, %w, %g : tensor<f32>, tensor<f32>, tensor<4x2048x128256xbf16>
}

func.func @pair_rope_64(%q: tensor<4x2048x12x64xbf16>, %k: tensor<4x2048x12x64xbf16>, %a: tensor<2048x32x2xf32>) -> (tensor<4x2048x12x64xbf16>, tensor<4x2048x12x64xbf16>) {
  %y = rota.rope %q, %a : tensor<4x2048x12x64xbf16>, tensor<2048x32x2xf32>
  %z = rota.rope %k, %a : tensor<4x2048x12x64xbf16>, tensor<2048x32x2xf32>
  return %y, %z : tensor<4x2048x12x64xbf16>, tensor<4x2048x12x64xbf16>
}

func.func @pair_rope_128(%q: tensor<4x2048x32x128xbf16>, %k: tensor<4x2048x8x128xbf16>, %a: tensor<2048x64x2xf32>) -> (tensor<4x2048x32x128xbf16>, tensor<4x2048x8x128xbf16>) {
  %y = rota.rope %q, %a : tensor<4x2048x32x128xbf16>, tensor<2048x64x2xf32>
  %z = rota.rope %k, %a : tensor<4x2048x8x128xbf16>, tensor<2048x64x2xf32>
  return %y, %z : tensor<4x2048x32x128xbf16>, tensor<4x2048x8x128xbf16>
}

func.func @rope_64(%x: tensor<4x2048x12x64xbf16>, %a: tensor<2048x32x2xf32>) -> (tensor<4x2048x12x64xbf16>) {
  %y = rota.rope %x, %a : tensor<4x2048x12x64xbf16>, tensor<2048x32x2xf32>
  %z = rota.rope inverse %y, %a : tensor<4x2048x12x64xbf16>, tensor<2048x32x2xf32>
  return %z : tensor<4x2048x12x64xbf16>
}

func.func @rope_128(%x: tensor<4x2048x32x128xbf16>, %a: tensor<2048x64x2xf32>) -> (tensor<4x2048x32x128xbf16>) {
  %y = rota.rope %x, %a : tensor<4x2048x32x128xbf16>, tensor<2048x64x2xf32>
  %z = rota.rope inverse %y, %a : tensor<4x2048x32x128xbf16>, tensor<2048x64x2xf32>
  return %z : tensor<4x2048x32x128xbf16>
}

func.func @embed_4096(%t: tensor<4x2048xi32>, %w: tensor<32000x4096xbf16>) -> (tensor<4x2048x4096xbf16>) {
  %y = rota.embedding %t, %w : (tensor<4x2048xi32>, tensor<32000x4096xbf16>) -> tensor<4x2048x4096xbf16>
  return %y : tensor<4x2048x4096xbf16>
}

func.func @embed_grad_4096(%t: tensor<4x2048xi32>, %d: tensor<4x2048x4096xbf16>) -> (tensor<32000x4096xf32>) {
  %w = rota.embedding_grad %t, %d : (tensor<4x2048xi32>, tensor<4x2048x4096xbf16>) -> tensor<32000x4096xf32>
  return %w : tensor<32000x4096xf32>
}

func.func @embed_768(%t: tensor<4x2048xi32>, %w: tensor<50257x768xbf16>) -> (tensor<4x2048x768xbf16>) {
  %y = rota.embedding %t, %w : (tensor<4x2048xi32>, tensor<50257x768xbf16>) -> tensor<4x2048x768xbf16>
  return %y : tensor<4x2048x768xbf16>
}

func.func @embed_grad_768(%t: tensor<4x2048xi32>, %d: tensor<4x2048x768xbf16>) -> (tensor<50257x768xf32>) {
  %w = rota.embedding_grad %t, %d : (tensor<4x2048xi32>, tensor<4x2048x768xbf16>) -> tensor<50257x768xf32>
  return %w : tensor<50257x768xf32>
}

// Updates of parameters that are read in bf16 and in f32.
rota.param @up : tensor<4096x14336xf32> axes ["embed", "mlp"] init #rota.constant<value = 1.0>
rota.param @gain : tensor<4096xf32> axes ["embed"] init #rota.constant<value = 1.0>
func.func @read() -> (tensor<4096x14336xbf16>, tensor<4096xf32>) {
  %up = rota.read @up : tensor<4096x14336xbf16>
  %gain = rota.read @gain : tensor<4096xf32>
  return %up, %gain : tensor<4096x14336xbf16>, tensor<4096xf32>
}

func.func @attention_64_bf16_4096(%d: tensor<2x4096x8x64xbf16>, %q: tensor<2x4096x8x64xbf16>, %k: tensor<2x4096x2x64xbf16>, %v: tensor<2x4096x2x64xbf16>) -> (tensor<2x4096x8x64xbf16>, tensor<2x4096x8x64xbf16>, tensor<2x4096x2x64xbf16>, tensor<2x4096x2x64xbf16>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x4096x8x64xbf16>, tensor<2x4096x2x64xbf16>, tensor<2x4096x2x64xbf16>) -> (tensor<2x4096x8x64xbf16>, tensor<2x8x4096xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x4096x8x64xbf16>, tensor<2x4096x8x64xbf16>, tensor<2x4096x2x64xbf16>, tensor<2x4096x2x64xbf16>, tensor<2x4096x8x64xbf16>, tensor<2x8x4096xf32>) -> (tensor<2x4096x8x64xbf16>, tensor<2x4096x2x64xbf16>, tensor<2x4096x2x64xbf16>)
  return %o, %dq, %dk, %dv : tensor<2x4096x8x64xbf16>, tensor<2x4096x8x64xbf16>, tensor<2x4096x2x64xbf16>, tensor<2x4096x2x64xbf16>
}

func.func @attention_64_f32_1000(%d: tensor<2x1000x8x64xf32>, %q: tensor<2x1000x8x64xf32>, %k: tensor<2x1000x2x64xf32>, %v: tensor<2x1000x2x64xf32>) -> (tensor<2x1000x8x64xf32>, tensor<2x1000x8x64xf32>, tensor<2x1000x2x64xf32>, tensor<2x1000x2x64xf32>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x1000x8x64xf32>, tensor<2x1000x2x64xf32>, tensor<2x1000x2x64xf32>) -> (tensor<2x1000x8x64xf32>, tensor<2x8x1000xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x1000x8x64xf32>, tensor<2x1000x8x64xf32>, tensor<2x1000x2x64xf32>, tensor<2x1000x2x64xf32>, tensor<2x1000x8x64xf32>, tensor<2x8x1000xf32>) -> (tensor<2x1000x8x64xf32>, tensor<2x1000x2x64xf32>, tensor<2x1000x2x64xf32>)
  return %o, %dq, %dk, %dv : tensor<2x1000x8x64xf32>, tensor<2x1000x8x64xf32>, tensor<2x1000x2x64xf32>, tensor<2x1000x2x64xf32>
}

func.func @attention_32_bf16_1000(%d: tensor<2x1000x8x32xbf16>, %q: tensor<2x1000x8x32xbf16>, %k: tensor<2x1000x2x32xbf16>, %v: tensor<2x1000x2x32xbf16>) -> (tensor<2x1000x8x32xbf16>, tensor<2x1000x8x32xbf16>, tensor<2x1000x2x32xbf16>, tensor<2x1000x2x32xbf16>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x1000x8x32xbf16>, tensor<2x1000x2x32xbf16>, tensor<2x1000x2x32xbf16>) -> (tensor<2x1000x8x32xbf16>, tensor<2x8x1000xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x1000x8x32xbf16>, tensor<2x1000x8x32xbf16>, tensor<2x1000x2x32xbf16>, tensor<2x1000x2x32xbf16>, tensor<2x1000x8x32xbf16>, tensor<2x8x1000xf32>) -> (tensor<2x1000x8x32xbf16>, tensor<2x1000x2x32xbf16>, tensor<2x1000x2x32xbf16>)
  return %o, %dq, %dk, %dv : tensor<2x1000x8x32xbf16>, tensor<2x1000x8x32xbf16>, tensor<2x1000x2x32xbf16>, tensor<2x1000x2x32xbf16>
}

func.func @attention_80_bf16_1000(%d: tensor<2x1000x8x80xbf16>, %q: tensor<2x1000x8x80xbf16>, %k: tensor<2x1000x2x80xbf16>, %v: tensor<2x1000x2x80xbf16>) -> (tensor<2x1000x8x80xbf16>, tensor<2x1000x8x80xbf16>, tensor<2x1000x2x80xbf16>, tensor<2x1000x2x80xbf16>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x1000x8x80xbf16>, tensor<2x1000x2x80xbf16>, tensor<2x1000x2x80xbf16>) -> (tensor<2x1000x8x80xbf16>, tensor<2x8x1000xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x1000x8x80xbf16>, tensor<2x1000x8x80xbf16>, tensor<2x1000x2x80xbf16>, tensor<2x1000x2x80xbf16>, tensor<2x1000x8x80xbf16>, tensor<2x8x1000xf32>) -> (tensor<2x1000x8x80xbf16>, tensor<2x1000x2x80xbf16>, tensor<2x1000x2x80xbf16>)
  return %o, %dq, %dk, %dv : tensor<2x1000x8x80xbf16>, tensor<2x1000x8x80xbf16>, tensor<2x1000x2x80xbf16>, tensor<2x1000x2x80xbf16>
}

func.func @attention_96_bf16_1000(%d: tensor<2x1000x8x96xbf16>, %q: tensor<2x1000x8x96xbf16>, %k: tensor<2x1000x2x96xbf16>, %v: tensor<2x1000x2x96xbf16>) -> (tensor<2x1000x8x96xbf16>, tensor<2x1000x8x96xbf16>, tensor<2x1000x2x96xbf16>, tensor<2x1000x2x96xbf16>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x1000x8x96xbf16>, tensor<2x1000x2x96xbf16>, tensor<2x1000x2x96xbf16>) -> (tensor<2x1000x8x96xbf16>, tensor<2x8x1000xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x1000x8x96xbf16>, tensor<2x1000x8x96xbf16>, tensor<2x1000x2x96xbf16>, tensor<2x1000x2x96xbf16>, tensor<2x1000x8x96xbf16>, tensor<2x8x1000xf32>) -> (tensor<2x1000x8x96xbf16>, tensor<2x1000x2x96xbf16>, tensor<2x1000x2x96xbf16>)
  return %o, %dq, %dk, %dv : tensor<2x1000x8x96xbf16>, tensor<2x1000x8x96xbf16>, tensor<2x1000x2x96xbf16>, tensor<2x1000x2x96xbf16>
}

func.func @attention_128_bf16_4096(%d: tensor<2x4096x8x128xbf16>, %q: tensor<2x4096x8x128xbf16>, %k: tensor<2x4096x2x128xbf16>, %v: tensor<2x4096x2x128xbf16>) -> (tensor<2x4096x8x128xbf16>, tensor<2x4096x8x128xbf16>, tensor<2x4096x2x128xbf16>, tensor<2x4096x2x128xbf16>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x4096x8x128xbf16>, tensor<2x4096x2x128xbf16>, tensor<2x4096x2x128xbf16>) -> (tensor<2x4096x8x128xbf16>, tensor<2x8x4096xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x4096x8x128xbf16>, tensor<2x4096x8x128xbf16>, tensor<2x4096x2x128xbf16>, tensor<2x4096x2x128xbf16>, tensor<2x4096x8x128xbf16>, tensor<2x8x4096xf32>) -> (tensor<2x4096x8x128xbf16>, tensor<2x4096x2x128xbf16>, tensor<2x4096x2x128xbf16>)
  return %o, %dq, %dk, %dv : tensor<2x4096x8x128xbf16>, tensor<2x4096x8x128xbf16>, tensor<2x4096x2x128xbf16>, tensor<2x4096x2x128xbf16>
}

func.func @attention_128_bf16_1000(%d: tensor<2x1000x8x128xbf16>, %q: tensor<2x1000x8x128xbf16>, %k: tensor<2x1000x2x128xbf16>, %v: tensor<2x1000x2x128xbf16>) -> (tensor<2x1000x8x128xbf16>, tensor<2x1000x8x128xbf16>, tensor<2x1000x2x128xbf16>, tensor<2x1000x2x128xbf16>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x1000x8x128xbf16>, tensor<2x1000x2x128xbf16>, tensor<2x1000x2x128xbf16>) -> (tensor<2x1000x8x128xbf16>, tensor<2x8x1000xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x1000x8x128xbf16>, tensor<2x1000x8x128xbf16>, tensor<2x1000x2x128xbf16>, tensor<2x1000x2x128xbf16>, tensor<2x1000x8x128xbf16>, tensor<2x8x1000xf32>) -> (tensor<2x1000x8x128xbf16>, tensor<2x1000x2x128xbf16>, tensor<2x1000x2x128xbf16>)
  return %o, %dq, %dk, %dv : tensor<2x1000x8x128xbf16>, tensor<2x1000x8x128xbf16>, tensor<2x1000x2x128xbf16>, tensor<2x1000x2x128xbf16>
}

func.func @attention_128_f32_4096(%d: tensor<2x4096x8x128xf32>, %q: tensor<2x4096x8x128xf32>, %k: tensor<2x4096x2x128xf32>, %v: tensor<2x4096x2x128xf32>) -> (tensor<2x4096x8x128xf32>, tensor<2x4096x8x128xf32>, tensor<2x4096x2x128xf32>, tensor<2x4096x2x128xf32>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x4096x8x128xf32>, tensor<2x4096x2x128xf32>, tensor<2x4096x2x128xf32>) -> (tensor<2x4096x8x128xf32>, tensor<2x8x4096xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x4096x8x128xf32>, tensor<2x4096x8x128xf32>, tensor<2x4096x2x128xf32>, tensor<2x4096x2x128xf32>, tensor<2x4096x8x128xf32>, tensor<2x8x4096xf32>) -> (tensor<2x4096x8x128xf32>, tensor<2x4096x2x128xf32>, tensor<2x4096x2x128xf32>)
  return %o, %dq, %dk, %dv : tensor<2x4096x8x128xf32>, tensor<2x4096x8x128xf32>, tensor<2x4096x2x128xf32>, tensor<2x4096x2x128xf32>
}

func.func @attention_256_f32_4096(%d: tensor<2x4096x8x256xf32>, %q: tensor<2x4096x8x256xf32>, %k: tensor<2x4096x2x256xf32>, %v: tensor<2x4096x2x256xf32>) -> (tensor<2x4096x8x256xf32>, tensor<2x4096x8x256xf32>, tensor<2x4096x2x256xf32>, tensor<2x4096x2x256xf32>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x4096x8x256xf32>, tensor<2x4096x2x256xf32>, tensor<2x4096x2x256xf32>) -> (tensor<2x4096x8x256xf32>, tensor<2x8x4096xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x4096x8x256xf32>, tensor<2x4096x8x256xf32>, tensor<2x4096x2x256xf32>, tensor<2x4096x2x256xf32>, tensor<2x4096x8x256xf32>, tensor<2x8x4096xf32>) -> (tensor<2x4096x8x256xf32>, tensor<2x4096x2x256xf32>, tensor<2x4096x2x256xf32>)
  return %o, %dq, %dk, %dv : tensor<2x4096x8x256xf32>, tensor<2x4096x8x256xf32>, tensor<2x4096x2x256xf32>, tensor<2x4096x2x256xf32>
}

func.func @attention_256_bf16_1000(%d: tensor<2x1000x8x256xbf16>, %q: tensor<2x1000x8x256xbf16>, %k: tensor<2x1000x2x256xbf16>, %v: tensor<2x1000x2x256xbf16>) -> (tensor<2x1000x8x256xbf16>, tensor<2x1000x8x256xbf16>, tensor<2x1000x2x256xbf16>, tensor<2x1000x2x256xbf16>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x1000x8x256xbf16>, tensor<2x1000x2x256xbf16>, tensor<2x1000x2x256xbf16>) -> (tensor<2x1000x8x256xbf16>, tensor<2x8x1000xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x1000x8x256xbf16>, tensor<2x1000x8x256xbf16>, tensor<2x1000x2x256xbf16>, tensor<2x1000x2x256xbf16>, tensor<2x1000x8x256xbf16>, tensor<2x8x1000xf32>) -> (tensor<2x1000x8x256xbf16>, tensor<2x1000x2x256xbf16>, tensor<2x1000x2x256xbf16>)
  return %o, %dq, %dk, %dv : tensor<2x1000x8x256xbf16>, tensor<2x1000x8x256xbf16>, tensor<2x1000x2x256xbf16>, tensor<2x1000x2x256xbf16>
}

func.func @attention_252_bf16_1000(%d: tensor<2x1000x8x252xbf16>, %q: tensor<2x1000x8x252xbf16>, %k: tensor<2x1000x2x252xbf16>, %v: tensor<2x1000x2x252xbf16>) -> (tensor<2x1000x8x252xbf16>, tensor<2x1000x8x252xbf16>, tensor<2x1000x2x252xbf16>, tensor<2x1000x2x252xbf16>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x1000x8x252xbf16>, tensor<2x1000x2x252xbf16>, tensor<2x1000x2x252xbf16>) -> (tensor<2x1000x8x252xbf16>, tensor<2x8x1000xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x1000x8x252xbf16>, tensor<2x1000x8x252xbf16>, tensor<2x1000x2x252xbf16>, tensor<2x1000x2x252xbf16>, tensor<2x1000x8x252xbf16>, tensor<2x8x1000xf32>) -> (tensor<2x1000x8x252xbf16>, tensor<2x1000x2x252xbf16>, tensor<2x1000x2x252xbf16>)
  return %o, %dq, %dk, %dv : tensor<2x1000x8x252xbf16>, tensor<2x1000x8x252xbf16>, tensor<2x1000x2x252xbf16>, tensor<2x1000x2x252xbf16>
}

func.func @attention_window_64_bf16_4096(%d: tensor<1x4096x8x64xbf16>, %q: tensor<1x4096x8x64xbf16>, %k: tensor<1x4096x2x64xbf16>, %v: tensor<1x4096x2x64xbf16>, %s: tensor<8xf32>) -> (tensor<1x4096x8x64xbf16>, tensor<1x4096x8x64xbf16>, tensor<1x4096x2x64xbf16>, tensor<1x4096x2x64xbf16>, tensor<8xf32>) {
  %o, %lse = rota.attention %q, %k, %v sinks %s scale = 0.125 window = 1024 : (tensor<1x4096x8x64xbf16>, tensor<1x4096x2x64xbf16>, tensor<1x4096x2x64xbf16>, tensor<8xf32>) -> (tensor<1x4096x8x64xbf16>, tensor<1x8x4096xf32>)
  %dq, %dk, %dv, %ds = rota.attention_grad %d, %q, %k, %v, %o, %lse sinks %s scale = 0.125 window = 1024 : (tensor<1x4096x8x64xbf16>, tensor<1x4096x8x64xbf16>, tensor<1x4096x2x64xbf16>, tensor<1x4096x2x64xbf16>, tensor<1x4096x8x64xbf16>, tensor<1x8x4096xf32>, tensor<8xf32>) -> (tensor<1x4096x8x64xbf16>, tensor<1x4096x2x64xbf16>, tensor<1x4096x2x64xbf16>, tensor<8xf32>)
  return %o, %dq, %dk, %dv, %ds : tensor<1x4096x8x64xbf16>, tensor<1x4096x8x64xbf16>, tensor<1x4096x2x64xbf16>, tensor<1x4096x2x64xbf16>, tensor<8xf32>
}

func.func @attention_window_cap_256_bf16_4096(%d: tensor<1x4096x8x256xbf16>, %q: tensor<1x4096x8x256xbf16>, %k: tensor<1x4096x4x256xbf16>, %v: tensor<1x4096x4x256xbf16>) -> (tensor<1x4096x8x256xbf16>, tensor<1x4096x8x256xbf16>, tensor<1x4096x4x256xbf16>, tensor<1x4096x4x256xbf16>) {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 window = 1024 soft_cap = 50.0 : (tensor<1x4096x8x256xbf16>, tensor<1x4096x4x256xbf16>, tensor<1x4096x4x256xbf16>) -> (tensor<1x4096x8x256xbf16>, tensor<1x8x4096xf32>)
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %v, %o, %lse scale = 0.125 window = 1024 soft_cap = 50.0 : (tensor<1x4096x8x256xbf16>, tensor<1x4096x8x256xbf16>, tensor<1x4096x4x256xbf16>, tensor<1x4096x4x256xbf16>, tensor<1x4096x8x256xbf16>, tensor<1x8x4096xf32>) -> (tensor<1x4096x8x256xbf16>, tensor<1x4096x4x256xbf16>, tensor<1x4096x4x256xbf16>)
  return %o, %dq, %dk, %dv : tensor<1x4096x8x256xbf16>, tensor<1x4096x8x256xbf16>, tensor<1x4096x4x256xbf16>, tensor<1x4096x4x256xbf16>
}

// Experts: 8 of 256 for each of 4096 tokens, in groups, in f32 and bf16.

func.func @route(%l: tensor<2x4096x256xf32>, %b: tensor<256xf32>, %d: tensor<2x4096x8xf32>) -> (tensor<2x4096x8xf32>, tensor<2x4096x256xf32>) {
  %w, %e = rota.route %l bias %b sigmoid normalize groups = 8 top_groups = 4 scaling = 2.5 : (tensor<2x4096x256xf32>, tensor<256xf32>) -> (tensor<2x4096x8xf32>, tensor<2x4096x8xi32>)
  %g = rota.route_grad %d, %l, %e sigmoid normalize scaling = 2.5 : (tensor<2x4096x8xf32>, tensor<2x4096x256xf32>, tensor<2x4096x8xi32>) -> tensor<2x4096x256xf32>
  return %w, %g : tensor<2x4096x8xf32>, tensor<2x4096x256xf32>
}

func.func @experts(%x: tensor<2x4096x2048xbf16>, %e: tensor<2x4096x8xi32>, %s: tensor<2x4096x8xf32>, %w: tensor<256x768x2048xbf16>, %b: tensor<256x768xf32>) -> (tensor<2x4096x2048xbf16>, tensor<256x768x2048xf32>, tensor<256x768xf32>, tensor<2x4096x8xf32>) {
  %p, %c = rota.expert_places %e rows = 32768 capacity = 200 parts = 1 : tensor<2x4096x8xi32> -> tensor<2x256xi32>
  %r = rota.dispatch %x, %p : (tensor<2x4096x2048xbf16>, tensor<2x4096x8xi32>) -> tensor<2x32768x2048xbf16>
  %h = rota.grouped_product %r, %w, %c transposed : (tensor<2x32768x2048xbf16>, tensor<256x768x2048xbf16>, tensor<2x256xi32>) -> tensor<2x32768x768xbf16>
  %a = rota.grouped_bias %h, %b, %c : tensor<2x32768x768xbf16>, tensor<256x768xf32>, tensor<2x256xi32>
  %o = rota.grouped_product %a, %w, %c : (tensor<2x32768x768xbf16>, tensor<256x768x2048xbf16>, tensor<2x256xi32>) -> tensor<2x32768x2048xbf16>
  %y = rota.combine %o, %p weights %s : (tensor<2x32768x2048xbf16>, tensor<2x4096x8xi32>, tensor<2x4096x8xf32>) -> tensor<2x4096x2048xbf16>
  %dw = rota.grouped_product_grad %a, %o, %c : (tensor<2x32768x768xbf16>, tensor<2x32768x2048xbf16>, tensor<2x256xi32>) -> tensor<256x768x2048xf32>
  %db = rota.grouped_bias_grad %h, %c : (tensor<2x32768x768xbf16>, tensor<2x256xi32>) -> tensor<256x768xf32>
  %ds = rota.choice_dot %y, %o, %p : (tensor<2x4096x2048xbf16>, tensor<2x32768x2048xbf16>, tensor<2x4096x8xi32>) -> tensor<2x4096x8xf32>
  return %y, %dw, %db, %ds : tensor<2x4096x2048xbf16>, tensor<256x768x2048xf32>, tensor<256x768xf32>, tensor<2x4096x8xf32>
}

func.func @experts_f32(%r: tensor<1x8192x512xf32>, %w: tensor<8x512x768xf32>, %c: tensor<1x8xi32>) -> (tensor<1x8192x768xf32>, tensor<8x512x768xf32>) {
  %h = rota.grouped_product %r, %w, %c : (tensor<1x8192x512xf32>, tensor<8x512x768xf32>, tensor<1x8xi32>) -> tensor<1x8192x768xf32>
  %dw = rota.grouped_product_grad %r, %h, %c : (tensor<1x8192x512xf32>, tensor<1x8192x768xf32>, tensor<1x8xi32>) -> tensor<8x512x768xf32>
  return %h, %dw : tensor<1x8192x768xf32>, tensor<8x512x768xf32>
}
