// RUN: rota-opt %s --verify-diagnostics --partition

rota.mesh <tensor = 2>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected none here, 'insert-reshards' comes first}}
  %y = rota.constrain %x <[[tensor]]> : tensor<4xf32>
  return %y : tensor<4xf32>
}
