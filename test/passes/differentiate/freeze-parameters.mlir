// RUN: rota-opt %s --split-input-file --freeze-parameters="freeze=layers.0,table" | FileCheck %s
// RUN: rota-opt %s --split-input-file --freeze-parameters="freeze=layers.{layer}.gain" | FileCheck %s --check-prefix=ALL
// RUN: rota-opt %s --split-input-file --freeze-parameters="freeze=layers.1" | FileCheck %s --check-prefix=ONE
// RUN: rota-opt %s --split-input-file --freeze-parameters | FileCheck %s --check-prefix=NONE
// NONE-NOT: frozen

// The doc example: one layer of a kind has a kind of its own.
// CHECK: rota.param @table {{.*}} frozen
// CHECK: rota.stack @layers layers = 4 pattern [@a, @a_layer1, @a_layer2, @a_layer2] {
// CHECK:   rota.layer @a frozen_input {
// CHECK:     rota.param @gain {{.*}} frozen
// CHECK:   rota.layer @a_layer1 frozen_input {
// CHECK:     rota.param @gain {{.*}}e+00>{{$}}
// CHECK:   rota.layer @a_layer2 {
// CHECK:     rota.param @gain {{.*}}e+00>{{$}}
// A name as messages have it means all layers, which stay one kind.
// ALL: rota.param @table {{.*}}e+00>{{$}}
// ALL: rota.stack @layers layers = 4 pattern [@a] {
// ALL:     rota.param @gain {{.*}} frozen
// ALL-NOT: rota.layer
// ALL: func.func @embed
// The embedding has nothing that trains: the input of layer 0 is frozen.
// ONE: rota.stack @layers layers = 4 pattern [@a, @a_layer1, @a_layer2, @a_layer2] {
// ONE:   rota.layer @a frozen_input {
// ONE:   rota.layer @a_layer1 {
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

// -----

// Two kinds in turn, and a layer 10, which 'layers.1' does not name. A pattern
// may pick one of the two parameters of a layer.
// ONE: rota.stack @layers layers = 12 pattern [@a, @b, @a_layer2, @b_layer3, @a_layer2, @b_layer3, @a_layer2, @b_layer3, @a_layer2, @b_layer3, @a_layer2, @b_layer3] {
// CHECK: rota.stack @layers layers = 12 pattern [@a, @b, @a_layer2, @b_layer3, @a_layer2, @b_layer3, @a_layer2, @b_layer3, @a_layer2, @b_layer3, @a_layer2, @b_layer3] {
// CHECK:   rota.layer @a frozen_input {
// CHECK:     rota.param @gain {{.*}} frozen
// CHECK:   rota.layer @b frozen_input {
// CHECK:     rota.param @table {{.*}} frozen
// CHECK:     rota.param @gain {{.*}}e+00>{{$}}
rota.stack @layers layers = 12 pattern [@a, @b] {
  rota.layer @a {
    rota.param @gain : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
  rota.layer @b {
    rota.param @table : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0>
    rota.param @gain : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
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
