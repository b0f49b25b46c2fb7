// RUN: rota-opt %s --erase-names | FileCheck %s

// The description's example, and a name that is returned.
// CHECK-LABEL: func @named
//  CHECK-SAME: (%[[P:.*]]: tensor<2x8xf32>)
//  CHECK-NEXT:   %[[Y:.*]] = math.tanh %[[P]]
//  CHECK-NEXT:   return %[[Y]], %[[P]]
func.func @named(%p: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %q = rota.name "query_proj" %p : tensor<2x8xf32>
  %r = rota.name "second" %q : tensor<2x8xf32>
  %y = math.tanh %q : tensor<2x8xf32>
  %z = rota.name "out_proj" %y : tensor<2x8xf32>
  return %z, %r : tensor<2x8xf32>, tensor<2x8xf32>
}
