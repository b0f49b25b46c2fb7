// RUN: rota-opt %s --decompose --form-kernels --verify-lowered | FileCheck %s

// What form-kernels makes of a decomposed function is legal, in a layer and in
// the module; so are products, views and constant tables.
// CHECK-LABEL: func.func @forward
// CHECK: rota.einsum
// CHECK: rota.launch @
// CHECK-LABEL: func.func @table
// CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK: rota.reshape
// CHECK: rota.kernel @
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = rota.swiglu %y, %x : tensor<4x8xf32>
      return %z : tensor<4x8xf32>
    }
  }
}
func.func @table() -> tensor<1x2xf32> {
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = rota.reshape %0 : tensor<2xf32> -> tensor<1x2xf32>
  return %1 : tensor<1x2xf32>
}
