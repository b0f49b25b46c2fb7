// RUN: rota-opt %s --emit-gpu-kernels --split-input-file --verify-diagnostics

func.func @forward(%q: tensor<1x4x1x257xf32>) {
  // expected-error @below {{expected a head size of at most 256 on a GPU, got 257}}
  %o, %lse = rota.attention %q, %q, %q scale = 0.25 : (tensor<1x4x1x257xf32>, tensor<1x4x1x257xf32>, tensor<1x4x1x257xf32>) -> (tensor<1x4x1x257xf32>, tensor<1x1x4xf32>)
  return
}

// -----

func.func @backward(%q: tensor<1x4x1x512xf32>, %lse: tensor<1x1x4xf32>) {
  // expected-error @below {{expected a head size of at most 256 on a GPU, got 512}}
  %dq, %dk, %dv = rota.attention_grad %q, %q, %q, %q, %q, %lse scale = 0.25 : (tensor<1x4x1x512xf32>, tensor<1x4x1x512xf32>, tensor<1x4x1x512xf32>, tensor<1x4x1x512xf32>, tensor<1x4x1x512xf32>, tensor<1x1x4xf32>) -> (tensor<1x4x1x512xf32>, tensor<1x4x1x512xf32>, tensor<1x4x1x512xf32>)
  return
}
