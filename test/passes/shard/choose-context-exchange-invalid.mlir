// RUN: rota-opt %s --split-input-file --verify-diagnostics --choose-context-exchange=exchange=balanced-ring

// A block of one rank has three positions, half of it no whole number.
rota.mesh <context = 4>
func.func @odd(%q: tensor<1x12x4x8xf32>) -> tensor<1x12x4x8xf32> {
  // expected-error @below {{expected a sequence of a multiple of 8 positions, two halves for each of the 4 ranks of a balanced ring, got 12}}
  %o, %lse = rota.attention %q, %q, %q scale = 0.35 : (tensor<1x12x4x8xf32>, tensor<1x12x4x8xf32>, tensor<1x12x4x8xf32>) -> (tensor<1x12x4x8xf32>, tensor<1x4x12xf32>)
  return %o : tensor<1x12x4x8xf32>
}
