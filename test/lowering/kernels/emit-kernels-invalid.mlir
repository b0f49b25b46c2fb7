// RUN: rota-opt %s --emit-kernels --split-input-file --verify-diagnostics

// expected-error @below {{'rota.kernel' op expected a kernel of f32, bf16 and i32 values, got 'tensor<8xf64>'}}
rota.kernel @wide operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf64>):
  rota.yield %x : tensor<8xf64>
}
func.func @f(%x: tensor<2x8xf64>) -> tensor<2x8xf64> {
  %y = rota.launch @wide rows = 2 (%x) : (tensor<2x8xf64>) -> tensor<2x8xf64>
  return %y : tensor<2x8xf64>
}

// -----

// expected-error @below {{'rota.kernel' op expected rows of one length, got 8 and 4}}
rota.kernel @lengths operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>, %y: tensor<4xf32>):
  rota.yield %x : tensor<8xf32>
}
func.func @f(%x: tensor<2x8xf32>, %y: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %z = rota.launch @lengths rows = 2 (%x, %y) : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  return %z : tensor<2x8xf32>
}

// -----

rota.kernel @constant operands [] results [#rota.result<row>] {
  // expected-error @below {{'arith.constant' op expected a constant with one value for all elements}}
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  rota.yield %c : tensor<2xf32>
}
func.func @f() -> tensor<3x2xf32> {
  %z = rota.launch @constant rows = 3 () : () -> tensor<3x2xf32>
  return %z : tensor<3x2xf32>
}
