// Experts over the mesh axis `expert`: a rank has the matrices of its experts
// and the rows of their blocks, and tokens are gathered before dispatch and
// summed, each for its rank, after combine.
// RUN: rota-opt %source/models/examples/experts.mlir --differentiate --shard=mesh=expert=2 | FileCheck %s
// RUN: rota-opt %source/models/examples/experts.mlir --differentiate --shard=mesh=tensor=2 | FileCheck %s --check-prefix=TENSOR

// CHECK: rota.layer @experts
// CHECK: rota.param @"experts.{expert}.gate.weight" : tensor<2x96x64xf32>
// CHECK: func.func @forward
// CHECK-SAME: %arg0: tensor<1x32x64xf32>
// CHECK: rota.route {{.*}} : (tensor<1x32x4xf32>)
// CHECK: rota.expert_places {{.*}} rows = 128 blocks = 2 : tensor<1x32x2xi32> -> tensor<1x4xi32>
// CHECK: rota.dispatch {{.*}} offset {{.*}} -> tensor<2x64x64xf32>
// CHECK: rota.grouped_product {{.*}} transposed : (tensor<2x64x64xf32>, tensor<2x96x64xf32>, tensor<2x2xi32>)
// CHECK: rota.combine {{.*}} weights {{.*}} offset
// CHECK-NEXT: rota.reduce_scatter {{.*}} axes [<expert>]

// TENSOR: rota.layer @experts
// TENSOR: func.func @forward
// TENSOR: rota.grouped_product {{.*}} transposed blocks = 2 : (tensor<2x128x64xf32>, tensor<4x48x64xf32>, tensor<2x4xi32>)
// TENSOR: rota.grouped_product {{.*}} transposed blocks = 2 : (tensor<2x128x48xf32>, tensor<4x64x48xf32>, tensor<2x4xi32>)
// TENSOR: rota.all_reduce sum
