// Experts over the mesh axis `expert`: a rank has the matrices of its experts
// and the rows of their blocks. Rows travel to the ranks of their experts and
// back, those that are filled. Where they are many, tokens are gathered before
// dispatch and summed, each for its rank, after combine.
// RUN: rota-opt %source/models/examples/experts.mlir --differentiate --shard=mesh=expert=2 | FileCheck %s --check-prefixes=CHECK,TRAVEL
// RUN: sed 's/rows = 128/rows = 8192/; s/2x128x/2x8192x/g' %source/models/examples/experts.mlir | rota-opt --differentiate --shard=mesh=expert=2 | FileCheck %s --check-prefixes=CHECK,GATHER
// RUN: rota-opt %source/models/examples/experts.mlir --differentiate --shard=mesh=tensor=2 | FileCheck %s --check-prefix=TENSOR
// RUN: sed 's/rows = 128 blocks = 2/rows = 64 blocks = 2 capacity = 8 parts = 2/; s/fill = 0.5 : (\(tensor<2x32x64xf32>, tensor<2x32x2xi32>, tensor<2x4\|tensor<2x128x64xf32>, tensor<2x32\)/fill = 0.5 parts = 2 : (\1/; s/2x128x/4x64x/g; s/2x4xi32/4x4xi32/g' %source/models/examples/experts.mlir | rota-opt --differentiate --shard=mesh=expert=2,context=2 | FileCheck %s --check-prefix=PARTS

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

// The gradients: cotangents of rows travel, too, with a weight a row. They go
// back through the last product, where the dot product with what it read gives
// the weight's cotangent; that goes back, not the row.
// TRAVEL: func.func @backward
// TRAVEL-NOT: rota.all_gather
// TRAVEL-NOT: rota.all_to_all {{.*}}f32
// TRAVEL: %[[MOVED:.*]] = rota.dispatch %{{[^ ]*}}, %{{[^ ]*}} counts {{.*}} -> tensor<1x128x64xf32>
// TRAVEL: %[[OWN:.*]] = rota.ragged_all_to_all %[[MOVED]] {{.*}} -> tensor<2x64x64xf32>
// TRAVEL: %[[WEIGHTS:.*]] = rota.dispatch {{.*}} weights {{.*}} -> tensor<1x128x1xf32>
// TRAVEL: rota.ragged_all_to_all %[[WEIGHTS]] {{.*}} -> tensor<2x64x1xf32>
// TRAVEL: %[[BEFORE:.*]] = rota.grouped_product %[[OWN]], {{.*}} -> tensor<2x64x96xf32>
// TRAVEL-DAG: arith.mulf %[[OWN]]
// TRAVEL-DAG: arith.mulf %[[BEFORE]]
// TRAVEL-DAG: %[[DOTS:.*]] = rota.row_dot %[[BEFORE]], {{.*}} -> tensor<2x64x1xf32>
// TRAVEL-DAG: %[[BACK:.*]] = rota.ragged_all_to_all %[[DOTS]] {{.*}} -> tensor<1x128x1xf32>
// TRAVEL: rota.choice_dot %{{[^ ]*}}, %[[BACK]], {{.*}} -> tensor<1x32x2xf32>
// TRAVEL: rota.combine {{.*}} -> tensor<1x32x64xf32>
// TRAVEL-NOT: rota.all_gather
// TRAVEL-NOT: rota.all_to_all {{.*}}f32
// TRAVEL: return
// GATHER: func.func @backward
// GATHER: rota.dispatch {{.*}} offset {{.*}} -> tensor<2x4096x64xf32>
// GATHER: rota.choice_dot {{.*}} offset
// GATHER: rota.combine {{.*}} offset {{.*}} -> tensor<2x32x64xf32>

// Parts of sequences: a rank has the rows of its own tokens, and the first choices
// of the whole sequence keep their rows.
// PARTS: rota.layer @experts
// PARTS: func.func @forward
// PARTS: %[[OF:.*]], %[[OWN:.*]] = rota.expert_places %[[E:[^ ]*]] rows = 64 blocks = 2 : tensor<1x16x2xi32> -> tensor<1x4xi32>
// PARTS: %[[ALL:.*]] = rota.all_gather %[[OWN]] dim = 0 axes [<context>] reason "choices of all parts of a sequence" : tensor<1x4xi32> -> tensor<2x4xi32>
// PARTS: %[[FIRST:.*]] = rota.shard_offset axes [<context>] factor = 1
// PARTS: rota.expert_places %[[E]] others %[[ALL]] offset %[[FIRST]] rows = 64 blocks = 2 capacity = 8 :
// PARTS: rota.dispatch {{.*}} -> tensor<1x64x64xf32>
// PARTS: rota.ragged_all_to_all {{.*}} axes [<expert>] {{.*}} -> tensor<2x32x64xf32>
// PARTS: rota.combine {{.*}} -> tensor<1x16x64xf32>
// PARTS-NOT: all_gather {{.*}}f32

// TENSOR: rota.layer @experts
// TENSOR: func.func @forward
// TENSOR: rota.grouped_product {{.*}} transposed blocks = 2 : (tensor<2x128x64xf32>, tensor<4x48x64xf32>, tensor<2x4xi32>)
// TENSOR: rota.grouped_product {{.*}} transposed blocks = 2 : (tensor<2x128x48xf32>, tensor<4x64x48xf32>, tensor<2x4xi32>)
// TENSOR: rota.all_reduce sum
