// RUN: rota-opt %s --canonicalize | FileCheck %s

// A reshape to its own type is its operand.
// CHECK-LABEL: func @reshape_to_itself
//  CHECK-SAME: %[[x:.*]]: tensor<2x8xf32>
//  CHECK-NEXT: return %[[x]]
func.func @reshape_to_itself(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = rota.reshape %x : tensor<2x8xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// There and back is the first operand.
// CHECK-LABEL: func @reshape_and_back
//  CHECK-SAME: %[[x:.*]]: tensor<2x8xf32>
//  CHECK-NEXT: return %[[x]]
func.func @reshape_and_back(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = rota.reshape %x : tensor<2x8xf32> -> tensor<16xf32>
  %z = rota.reshape %y : tensor<16xf32> -> tensor<2x8xf32>
  return %z : tensor<2x8xf32>
}

// Two reshapes to a third shape stay.
// CHECK-LABEL: func @reshape_onward
//   CHECK-DAG: rota.reshape %{{.*}} : tensor<2x8xf32> -> tensor<16xf32>
//   CHECK-DAG: rota.reshape %{{.*}} : tensor<16xf32> -> tensor<4x4xf32>
func.func @reshape_onward(%x: tensor<2x8xf32>) -> tensor<4x4xf32> {
  %y = rota.reshape %x : tensor<2x8xf32> -> tensor<16xf32>
  %z = rota.reshape %y : tensor<16xf32> -> tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}

// Pure ops without users go; an accumulation stays.
// CHECK-LABEL: func @unused
//       CHECK-NEXT: rota.accumulate
//       CHECK-NEXT: return
rota.param @gain : tensor<8xf32> axes ["embed"] init #rota.constant<value = 1.0>
func.func @unused(%g: tensor<8xf32>) {
  %gain = rota.read @gain : tensor<8xf32>
  %named = rota.name "g" %gain : tensor<8xf32>
  rota.accumulate @gain, %g : tensor<8xf32>
  return
}
