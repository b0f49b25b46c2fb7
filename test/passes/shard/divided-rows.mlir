// Norms over all heads, which tensor divides: the sum of squares of a row is
// summed up over ranks, forward and backward, and nothing is gathered.
// RUN: rota-opt %s --split-input-file --propagate-shardings --insert-reshards --partition | FileCheck %s
// RUN: rota-opt %s --split-input-file --propagate-shardings=mode=explicit --insert-reshards=mode=explicit --partition -o /dev/null
// RUN: rota-opt %s --split-input-file --propagate-shardings --remarks-filter=shard -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: func.func @divided
// CHECK: %[[X:.*]] = rota.einsum {{.*}} -> tensor<1x8x32xf32>
// CHECK: %[[SQUARES:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: rota.reduce sum %[[SQUARES]] dims [2] : tensor<1x8x32xf32> -> tensor<1x8xf32>
// The mean is over the whole row.
// CHECK: arith.constant dense<1.280000e+02>
// CHECK: rota.all_reduce sum {{.*}} axes [<tensor>] {{.*}} : tensor<1x8xf32>
// CHECK-NOT: rota.{{all_|shard_}}
// CHECK: rota.einsum {{.*}} -> tensor<1x8x64xf32>
// REMARK: divided-row {{.*}}Reason="'rota.rms_norm' is written as its parts
rota.mesh <tensor = 4>
rota.param @up : tensor<128x64xf32> axes ["heads", "embed"] init #rota.constant<value = 1.0> placement <whole [128, 64] compute <[[tensor], []]> storage <[[tensor], []]> optimizer <[[tensor], []]>>
rota.param @gain : tensor<128xf32> axes ["heads"] init #rota.constant<value = 1.0> placement <whole [128] compute <[[tensor]]> storage <[[tensor]]> optimizer <[[tensor]]>>
rota.param @down : tensor<64x128xf32> axes ["embed", "heads"] init #rota.constant<value = 1.0> placement <whole [64, 128] compute <[[], [tensor]]> storage <[[], [tensor]]> optimizer <[[], [tensor]]>>
func.func @divided(%x: tensor<1x8x64xf32> {rota.sharding = #rota.sharding<[[], [], []]>}) -> (tensor<1x8x64xf32> {rota.sharding = #rota.sharding<[[], [], []]>}) {
  %up = rota.read @up : tensor<128x64xf32>
  %gain = rota.read @gain : tensor<128xf32>
  %down = rota.read @down : tensor<64x128xf32>
  %q = rota.einsum "bsk,nk->bsn" %x, %up : (tensor<1x8x64xf32>, tensor<128x64xf32>) -> tensor<1x8x128xf32>
  %n = rota.rms_norm %q, %gain epsilon = 1.0e-05 : tensor<1x8x128xf32>, tensor<128xf32>
  %y = rota.einsum "bsn,kn->bsk" %n, %down : (tensor<1x8x128xf32>, tensor<64x128xf32>) -> tensor<1x8x64xf32>
  return %y : tensor<1x8x64xf32>
}

// -----

// Backward has two sums of a row; the gain's gradient stays with its heads.
// CHECK-LABEL: func.func @backward
// CHECK-COUNT-2: rota.all_reduce sum {{.*}} axes [<tensor>] {{.*}} : tensor<1x8xf32>
// CHECK-NOT: rota.{{all_|shard_}}
// CHECK: rota.accumulate @gain, {{.*}} : tensor<32xf32>
// REMARK: divided-row {{.*}}Reason="'rota.rms_norm_grad' is written as its parts
rota.mesh <tensor = 4>
rota.param @gain : tensor<128xf32> axes ["heads"] init #rota.constant<value = 1.0> placement <whole [128] compute <[[tensor]]> storage <[[tensor]]> optimizer <[[tensor]]>>
func.func @backward(%dy: tensor<1x8x128xf32> {rota.sharding = #rota.sharding<[[], [], [tensor]]>}, %x: tensor<1x8x128xf32> {rota.sharding = #rota.sharding<[[], [], [tensor]]>}) -> (tensor<1x8x128xf32> {rota.sharding = #rota.sharding<[[], [], [tensor]]>}) {
  %gain = rota.read @gain : tensor<128xf32>
  %dx, %dgain = rota.rms_norm_grad %dy, %x, %gain epsilon = 1.0e-05 : (tensor<1x8x128xf32>, tensor<1x8x128xf32>, tensor<128xf32>) -> (tensor<1x8x128xf32>, tensor<128xf32>)
  rota.accumulate @gain, %dgain : tensor<128xf32>
  return %dx : tensor<1x8x128xf32>
}

// -----

// A row that nothing divides stays in one op.
// CHECK-LABEL: func.func @whole
// CHECK: rota.rms_norm {{.*}} : tensor<1x2x64xf32>, tensor<64xf32>
// REMARK-NOT: divided-row
rota.mesh <tensor = 4>
func.func @whole(%x: tensor<1x8x64xf32> {rota.sharding = #rota.sharding<[[], [tensor], []]>}, %gain: tensor<64xf32>) -> (tensor<1x8x64xf32> {rota.sharding = #rota.sharding<[[], [tensor], []]>}) {
  %y = rota.rms_norm %x, %gain epsilon = 1.0e-05 : tensor<1x8x64xf32>, tensor<64xf32>
  return %y : tensor<1x8x64xf32>
}
