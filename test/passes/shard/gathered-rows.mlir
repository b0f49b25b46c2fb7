// A centered norm takes two sums of a row, one after the other: gathering a
// short row, one message, costs less.
// RUN: rota-opt %s --propagate-shardings --insert-reshards --partition | FileCheck %s
// RUN: rota-opt %s --propagate-shardings --remarks-filter=shard -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: func.func @f
// CHECK: rota.all_gather {{.*}} : tensor<1x8x2xf32> -> tensor<1x8x8xf32>
// CHECK: rota.rms_norm centered {{.*}} : tensor<1x8x8xf32>, tensor<8xf32>
// CHECK: rota.shard_slice {{.*}} : tensor<1x8x8xf32> -> tensor<1x8x2xf32>
// REMARK: divided-row {{.*}}Gathers={{[1-9][0-9]*}}, Reason="'rota.rms_norm' works on gathered rows", Sums={{[1-9][0-9]*}}
rota.mesh <tensor = 4>
func.func @f(%x: tensor<1x8x8xf32> {rota.sharding = #rota.sharding<[[], [], [tensor]]>}, %gain: tensor<8xf32> {rota.sharding = #rota.sharding<[[]]>}) -> (tensor<1x8x8xf32> {rota.sharding = #rota.sharding<[[], [], [tensor]]>}) {
  %y = rota.rms_norm centered %x, %gain epsilon = 1.0e-05 : tensor<1x8x8xf32>, tensor<8xf32>
  return %y : tensor<1x8x8xf32>
}
