// RUN: rota-opt %s --split-input-file --verify-diagnostics --verify-lowered

func.func @loose(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
  // expected-error @below {{'math.tanh' op expected to be in a kernel}}
  %y = math.tanh %x : tensor<6x32xf32>
  return %y : tensor<6x32xf32>
}

// -----

func.func @composite(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
  // expected-error @below {{'rota.activation' op expected to be decomposed before kernels are formed}}
  %y = rota.activation silu %x, %x : tensor<6x32xf32>
  return %y : tensor<6x32xf32>
}

// -----

func.func @named(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
  // expected-error @below {{'rota.name' op expected no names once kernels are formed}}
  %y = rota.name "y" %x : tensor<6x32xf32>
  return %y : tensor<6x32xf32>
}

// -----

// expected-error @below {{'func.func' op expected f32, bf16 or i32 values, got 'tensor<6xf64>'}}
func.func @argument(%x: tensor<6xf64>) {
  return
}

// -----

func.func @wide() {
  // expected-error @below {{'arith.constant' op expected f32, bf16 or i32 values, got 'tensor<2xf64>'}}
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf64>
  return
}

// -----

// expected-error @below {{'rota.kernel' op expected a launch of 'twice', got none}}
rota.kernel @twice operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<32xf32>):
  %y = arith.addf %x, %x : tensor<32xf32>
  rota.yield %y : tensor<32xf32>
}
