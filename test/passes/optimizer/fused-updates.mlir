// RUN: rota-opt %s -build-updates=optimizer=adamw -form-kernels | FileCheck %s

// An update is one kernel, and so are the squares. Parameters with rows of one
// length have one kernel, unless they are read in other types.
// CHECK-LABEL: func.func @update_0(
// CHECK-NEXT: %{{.*}}:5 = rota.launch @[[BF16:adamw[_0-9]*]] rows = 3(
// CHECK-NEXT: return
// CHECK-LABEL: func.func @squares_0(
// CHECK-NEXT: rota.launch @[[SQUARES:squares[_0-9]*]] rows = 3(
// CHECK-NEXT: return
// CHECK-LABEL: func.func @update_1(
// CHECK-NEXT: rota.launch @[[BF16]] rows = 5(
// CHECK-LABEL: func.func @squares_1(
// CHECK-NEXT: rota.launch @[[SQUARES]] rows = 5(
// CHECK-LABEL: func.func @update_2(
// CHECK-NOT: @[[BF16]] rows
// CHECK: %{{.*}}:4 = rota.launch @adamw{{.*}} rows = 5(
// CHECK-LABEL: func.func @squares_2(
// CHECK-NEXT: rota.launch @[[SQUARES]] rows = 5(
rota.param @a : tensor<3x8xf32> axes ["x", "y"] init #rota.constant<value = 1.0>
rota.param @b : tensor<5x8xf32> axes ["x", "y"] init #rota.constant<value = 1.0>
rota.param @c : tensor<5x8xf32> axes ["x", "y"] init #rota.constant<value = 1.0>
func.func @f() -> (tensor<3x8xbf16>, tensor<5x8xbf16>, tensor<5x8xf32>) {
  %a = rota.read @a : tensor<3x8xbf16>
  %b = rota.read @b : tensor<5x8xbf16>
  %c = rota.read @c : tensor<5x8xf32>
  return %a, %b, %c : tensor<3x8xbf16>, tensor<5x8xbf16>, tensor<5x8xf32>
}
