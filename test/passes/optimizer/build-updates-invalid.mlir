// RUN: rota-opt %s -split-input-file -build-updates=optimizer=adamw -verify-diagnostics

// expected-error@+1 {{expected a function that reads parameter 'w'}}
rota.param @w : tensor<8xf32> axes ["x"] init #rota.constant<value = 1.0>

// -----

rota.param @w : tensor<8xf32> axes ["x"] init #rota.constant<value = 1.0>
func.func @f() -> (tensor<8xf32>, tensor<8xbf16>) {
  %a = rota.read @w : tensor<8xf32>
  // expected-error@+1 {{expected parameter 'w' to be read in one type, got 'f32' and 'bf16'}}
  %b = rota.read @w : tensor<8xbf16>
  return %a, %b : tensor<8xf32>, tensor<8xbf16>
}
