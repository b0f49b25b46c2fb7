// Experts over the mesh axis `expert`: a rank has the matrices of its experts
// and the rows of their blocks. Rows travel to the ranks of their experts and
// back, those that are filled. Where they are many, tokens are gathered before
// dispatch and summed, each for its rank, after combine.
// RUN: rota-opt %source/models/examples/experts.mlir --differentiate --shard=mesh=expert=2 | FileCheck %s --check-prefixes=CHECK,TRAVEL
// RUN: sed 's/rows = 128/rows = 8192/; s/2x128x/2x8192x/g' %source/models/examples/experts.mlir | rota-opt --differentiate --shard=mesh=expert=2 | FileCheck %s --check-prefixes=CHECK,GATHER
// RUN: rota-opt %source/models/examples/experts.mlir --differentiate --shard=mesh=tensor=2 | FileCheck %s --check-prefix=TENSOR

// CHECK: rota.layer @experts
// CHECK: rota.param @"experts.{expert}.gate.weight" : tensor<2x96x64xf32>
// CHECK: func.func @forward
// CHECK-SAME: %arg0: tensor<1x32x64xf32>
// CHECK: rota.route {{.*}} : (tensor<1x32x4xf32>)
// TRAVEL: %[[PLACES:.*]], %[[COUNTS:.*]] = rota.expert_places {{.*}} rows = 128 blocks = 2 : tensor<1x32x2xi32> -> tensor<1x4xi32>
// TRAVEL: %[[ROWS:.*]] = rota.dispatch %{{[^,]*}}, %[[PLACES]] counts %[[COUNTS]] {{.*}} -> tensor<1x128x64xf32>
// TRAVEL: %[[THEIRS:.*]] = rota.all_to_all %[[COUNTS]] gather = 0 split = 1 axes [<expert>] {{.*}} : tensor<1x4xi32> -> tensor<2x2xi32>
// TRAVEL: rota.ragged_all_to_all %[[ROWS]] sent %[[COUNTS]] received %[[THEIRS]] fill = 5.000000e-01 gather = 0 axes [<expert>] {{.*}} -> tensor<2x64x64xf32>
// GATHER: rota.expert_places {{.*}} rows = 8192 blocks = 2 : tensor<1x32x2xi32> -> tensor<1x4xi32>
// GATHER: rota.dispatch {{.*}} offset {{.*}} -> tensor<2x4096x64xf32>
// CHECK: %[[FIRST:.*]] = rota.shard_offset axes [<expert>] factor = 2 : tensor<i32>
// CHECK: rota.grouped_product {{.*}} offset %[[FIRST]] transposed : (tensor<2x{{64|4096}}x64xf32>, tensor<2x96x64xf32>, tensor<2x2xi32>, tensor<i32>)
// TRAVEL: rota.ragged_all_to_all {{.*}} sent %[[THEIRS]] received %[[COUNTS]] fill = 5.000000e-01 gather = 1 axes [<expert>] {{.*}} -> tensor<1x128x64xf32>
// TRAVEL-NEXT: rota.combine {{.*}} weights {{.*}} -> tensor<1x32x64xf32>
// GATHER: rota.combine {{.*}} weights {{.*}} offset
// GATHER-NEXT: rota.reduce_scatter {{.*}} axes [<expert>]

// The gradients: cotangents of rows travel, too, and rows to the cotangents.
// TRAVEL: func.func @backward
// TRAVEL-NOT: rota.all_gather
// TRAVEL-NOT: rota.all_to_all {{.*}}f32
// TRAVEL: rota.dispatch {{.*}} weights {{.*}} -> tensor<1x128x64xf32>
// TRAVEL: rota.choice_dot {{.*}} -> tensor<1x32x2xf32>
// TRAVEL: rota.combine {{.*}} -> tensor<1x32x64xf32>
// TRAVEL-NOT: rota.all_gather
// TRAVEL-NOT: rota.all_to_all {{.*}}f32
// TRAVEL: return
// GATHER: func.func @backward
// GATHER: rota.dispatch {{.*}} offset {{.*}} -> tensor<2x4096x64xf32>
// GATHER: rota.choice_dot {{.*}} offset
// GATHER: rota.combine {{.*}} offset {{.*}} -> tensor<2x32x64xf32>

// TENSOR: rota.layer @experts
// TENSOR: func.func @forward
// TENSOR: rota.grouped_product {{.*}} transposed blocks = 2 : (tensor<2x128x64xf32>, tensor<4x48x64xf32>, tensor<2x4xi32>)
// TENSOR: rota.grouped_product {{.*}} transposed blocks = 2 : (tensor<2x128x48xf32>, tensor<4x64x48xf32>, tensor<2x4xi32>)
// TENSOR: rota.all_reduce sum
