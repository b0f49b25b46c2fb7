// RUN: rota-opt %s -build-updates=optimizer=sgd | FileCheck %s --check-prefix=SGD
// RUN: rota-opt %s -build-updates='optimizer=sgd values=momentum=0.9 nesterov=true state-dtype=bf16' | FileCheck %s --check-prefix=MOMENTUM
// RUN: rota-opt %s -build-updates='optimizer=muon muon-dtype=bf16' | FileCheck %s --check-prefix=MUON
// RUN: rota-opt %s -build-updates='optimizer=adamw groups=out=lr:0.5,decay:0;gain=decay:1' | FileCheck %s --check-prefix=GROUP

// Without momentum there is no state, and the trainer takes no momentum.
// SGD: rota.options = [#rota.option<name = "momentum", value = 0.0{{.*}}, least = 0.0{{[^,]*}}, most = 0.0
// SGD: func.func @update_0(
// SGD-NOT: rota.state
// SGD: return

// States are widened when they are read and rounded when they leave.
// MOMENTUM: func.func @update_0({{.*}} %[[STATE:[a-z0-9]+]]: tensor<8x4xbf16> {{[{].*}}rota.state<name = "momentum"
// MOMENTUM-SAME: -> (tensor<8x4xf32> {{.*}}, tensor<8x4xbf16> {{.*}}, tensor<8x4xf32> {{.*}})
// MOMENTUM: arith.extf %[[STATE]]
// MOMENTUM: %[[NEW:.*]] = arith.addf
// MOMENTUM: %[[OLD:.*]] = arith.extf %[[STATE]]
// MOMENTUM: %[[KEPT:.*]] = arith.select %{{.*}}, %[[OLD]], %[[NEW]]
// MOMENTUM: %[[ROUNDED:.*]] = arith.truncf %[[KEPT]]
// MOMENTUM: return %{{.*}}, %[[ROUNDED]], %{{.*}}

// Muon's matrices are those of layers; the others are AdamW's. Borders and the
// optimizer's axes divide the 8 rows; between the constraints they are whole.
// MUON: rota.param @table {{.*}} rota.update = @update_0}
// MUON: rota.param @gain {{.*}} rota.update = @update_1}
// MUON: rota.param @up {{.*}} rota.update = @update_2}
// MUON: rota.param @"{{.*}}out" {{.*}} rota.update = @update_3}
// MUON: func.func @update_0({{.*}}"first_moment"{{.*}}"second_moment"
// MUON: func.func @update_1({{.*}}"first_moment"{{.*}}"second_moment"
// MUON: func.func @update_2({{.*}}"momentum"
// MUON: %[[U:.*]] = arith.truncf
// MUON-NEXT: %[[WHOLE:.*]] = rota.constrain %[[U]] <{{\[}}[], []]> : tensor<8x4xbf16>
// MUON: rota.einsum "ki,kj->ij" %[[X:.*]], %[[X]] : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
// MUON-COUNT-14: rota.einsum
// MUON-NOT: rota.einsum
// MUON: rota.constrain %{{.*}} <{{\[}}[], []]> : tensor<8x4xf32>
// MUON-NEXT: rota.constrain %{{.*}} <{{\[}}[fsdp], []]> : tensor<8x4xf32>
// MUON: func.func @update_3(
// MUON: rota.einsum "aik,ajk->aij" {{.*}} -> tensor<3x2x2xf32>

// The first group wins; factors of 1 are not written.
// GROUP: rota.param @up {{.*}} rota.update = @update_0}
// GROUP: rota.param @"{{.*}}out" {{.*}} rota.update = @update_2}
// GROUP: func.func @update_0({{.*}}#rota.scalar<option of "weight-decay">}{{.*}}#rota.scalar<learning_rate>}
// GROUP: func.func @update_1({{.*}}#rota.scalar<option of "weight-decay">}
// GROUP: func.func @update_2(
// GROUP-NOT: weight-decay
// GROUP-SAME: #rota.scalar<learning_rate times 5.000000e-01 : f64>
rota.mesh <fsdp = 2>
rota.param @table : tensor<8x4xf32> axes ["x", "y"] init #rota.constant<value = 1.0> placement <whole [8, 4] compute <[[], []]> storage <[[fsdp], []]> optimizer <[[fsdp], []]>>
func.func @f() -> tensor<8x4xf32> {
  %w = rota.read @table : tensor<8x4xf32>
  return %w : tensor<8x4xf32>
}
rota.stack @layers layers = 4 pattern [@a] {
  rota.layer @a {
    rota.param @gain : tensor<8xf32> axes ["x"] init #rota.constant<value = 1.0> placement <whole [8] compute <[[]]> storage <[[fsdp]]> optimizer <[[fsdp]]>>
    rota.param @up : tensor<8x4xf32> axes ["x", "y"] init #rota.constant<value = 1.0> placement <whole [8, 4] compute <[[], []]> storage <[[fsdp], []]> optimizer <[[fsdp], []]>>
    rota.param @"experts.{expert}.out" : tensor<3x2x4xf32> axes ["e", "x", "y"] init #rota.constant<value = 1.0> placement <whole [3, 2, 4] compute <[[], [], []]> storage <[[], [], [fsdp]]> optimizer <[[], [], [fsdp]]>>
    func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
      %a = rota.read @gain : tensor<8xf32>
      %b = rota.read @up : tensor<8x4xf32>
      %c = rota.read @"experts.{expert}.out" : tensor<3x2x4xf32>
      return %x : tensor<4xf32>
    }
  }
}
