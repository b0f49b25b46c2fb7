// RUN: rota-opt %s --split-input-file --verify-diagnostics --approximate-math
// RUN: rota-opt %s --split-input-file --verify-diagnostics --gpu-math

func.func @function(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'math.exp' op expected a scalar or a vector, got 'tensor<8xf32>'}}
  %y = math.exp %x : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Of no dimension; within other code, too.
func.func @inner(%n: index, %x: tensor<f32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    // expected-error @below {{'arith.divf' op expected a scalar or a vector, got 'tensor<f32>'}}
    %y = arith.divf %x, %x : tensor<f32>
  }
  return
}
