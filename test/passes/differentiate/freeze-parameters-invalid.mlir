// RUN: not rota-opt %s --freeze-parameters="freeze=gian,table" 2>&1 | FileCheck %s --check-prefix=NEAR
// RUN: not rota-opt %s --freeze-parameters="freeze=layers.4.gain" 2>&1 | FileCheck %s --check-prefix=LAYER
// RUN: not rota-opt %s --freeze-parameters="freeze=table,,gain" 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not rota-opt %s --freeze-parameters="freeze=table,gain" 2>&1 | FileCheck %s --check-prefix=ALL

// NEAR: error: 'freeze': expected a part of a parameter's name, got 'gian'; the nearest names are 'layers.{layer}.gain', 'table'
// LAYER: error: 'freeze': expected a part of a parameter's name, got 'layers.4.gain'; the nearest names are 'layers.{layer}.gain', 'table'
// EMPTY: error: 'freeze': expected PATTERN,..., got 'table,,gain'
// ALL: error: 'freeze': expected patterns that leave a parameter to train, got 'table,gain', which are in the names of all
rota.param @table : tensor<16x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0>
rota.stack @layers layers = 4 pattern [@a] {
  rota.layer @a {
    rota.param @gain : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      %g = rota.read @gain : tensor<8xf32>
      %y = arith.mulf %x, %g : tensor<8xf32>
      return %y : tensor<8xf32>
    }
  }
}
func.func @embed(%tokens: tensor<8xi32>) -> tensor<8xf32> {
  %x = arith.constant dense<1.0> : tensor<8xf32>
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %targets: tensor<8xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
