// RUN: rota-opt %s -split-input-file -build-updates=optimizer=adamw | FileCheck %s
// RUN: rota-opt %s -split-input-file -build-updates=optimizer=adamw | rota-opt -split-input-file | FileCheck %s

// The documentation's example: a vector does not decay.
// CHECK: module attributes {rota.options = [#rota.option<name = "beta1", value = 9.0
// CHECK: rota.param @gain {{.*}} {rota.squares = @squares_0, rota.update = @update_0}
// CHECK: func.func @update_0(
// CHECK-SAME: %[[P:[^:]*]]: tensor<8xf32>, %[[G:[^:]*]]: tensor<8xf32>
// CHECK-SAME: {rota.scalar = #rota.scalar<gradient_scale>}
// CHECK-SAME: {rota.state = #rota.state<name = "first_moment", initial = 0.000000e+00>}
// CHECK-SAME: {rota.scalar = #rota.scalar<complement of "beta1">}
// CHECK-NOT: weight-decay
// CHECK-SAME: %[[SKIP:[^: ]*]]: tensor<f32> {rota.scalar = #rota.scalar<skip>}
// CHECK-SAME: -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
// CHECK: %[[WIDE:.*]] = rota.broadcast %[[SKIP]]
// CHECK: %[[NONE:.*]] = arith.constant dense<0.0
// CHECK: %[[SKIPS:.*]] = arith.cmpf ogt, %[[WIDE]], %[[NONE]]
// CHECK: %[[NEW:.*]] = arith.select %[[SKIPS]], %[[P]], %{{.*}}
// CHECK: %[[M:.*]] = arith.select %[[SKIPS]]
// CHECK: %[[V:.*]] = arith.select %[[SKIPS]]
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.0
// CHECK: return %[[NEW]], %[[M]], %[[V]], %[[ZERO]]
// CHECK: func.func @squares_0(%[[G:.*]]: tensor<8xf32>) -> tensor<f32>
// CHECK-NEXT: %[[S:.*]] = arith.mulf %[[G]], %[[G]]
// CHECK-NEXT: %[[SUM:.*]] = rota.reduce sum %[[S]] dims [0]
// CHECK-NEXT: return %[[SUM]]
rota.param @gain : tensor<8xf32> axes ["embed"] init #rota.constant<value = 1.0>
func.func @f() -> tensor<8xf32> {
  %w = rota.read @gain : tensor<8xf32>
  return %w : tensor<8xf32>
}

// -----

// Nothing updates what is frozen.
// CHECK: rota.param @kept {{.*}} frozen{{$}}
// CHECK-NOT: func.func @update
rota.param @kept : tensor<8xf32> axes ["embed"] init #rota.constant<value = 1.0> frozen
func.func @f() -> tensor<8xf32> {
  %w = rota.read @kept : tensor<8xf32>
  return %w : tensor<8xf32>
}

// -----

// One form, one function, in layers too; another type of reads, another one. A
// bf16 copy leaves last.
// CHECK: rota.param @a {{.*}} rota.update = @update_0}
// CHECK: rota.param @b {{.*}} rota.update = @update_1}
// CHECK: rota.param @c {{.*}} rota.update = @update_0}
// CHECK: func.func @update_0({{.*}}"weight-decay"{{.*}} -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK: func.func @squares_0
// CHECK: func.func @update_1({{.*}} -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xbf16>)
// CHECK: %[[P:.*]] = arith.subf %arg0
// CHECK: %[[NEW:.*]] = arith.select %{{.*}}, %arg0, %[[P]]
// CHECK: %[[COPY:.*]] = arith.truncf %[[NEW]]
// CHECK: return %[[NEW]], {{.*}}, %[[COPY]]
// CHECK-NOT: update_2
rota.param @a : tensor<4x8xf32> axes ["x", "y"] init #rota.constant<value = 1.0>
rota.param @b : tensor<4x8xf32> axes ["x", "y"] init #rota.constant<value = 1.0>
func.func @f() -> (tensor<4x8xf32>, tensor<4x8xbf16>) {
  %a = rota.read @a : tensor<4x8xf32>
  %b = rota.read @b : tensor<4x8xbf16>
  return %a, %b : tensor<4x8xf32>, tensor<4x8xbf16>
}
rota.stack @layers layers = 4 pattern [@linear] {
  rota.layer @linear {
    rota.param @c : tensor<4x8xf32> axes ["x", "y"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %c = rota.read @c : tensor<4x8xf32>
      %y = arith.mulf %x, %c : tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
  }
}

// -----

// Borders have the optimizer's sharding; 10 rows in 4 parts are 12 with their
// padding. Along columns, ranks have parts of a row's sum.
// CHECK: func.func @update_0(%{{.*}}: tensor<12x8xf32> {rota.sharding = #rota.sharding<{{\[}}[data, fsdp], [tensor]]>}
// CHECK: func.func @squares_0(%{{.*}}: tensor<12x8xf32> {rota.sharding = #rota.sharding<{{\[}}[data, fsdp], [tensor]]>}) -> (tensor<12xf32> {rota.sharding = #rota.sharding<{{\[}}[data, fsdp]] unreduced [tensor]>})
rota.mesh <data = 2, fsdp = 2, tensor = 2>
rota.param @w : tensor<10x8xf32> axes ["x", "y"] init #rota.constant<value = 1.0> placement <whole [10, 8] compute <[[], [tensor]]> storage <[[data], [tensor]]> optimizer <[[data, fsdp], [tensor]]>>
func.func @f() -> tensor<10x8xf32> {
  %w = rota.read @w : tensor<10x8xf32>
  return %w : tensor<10x8xf32>
}

// -----

// What has an update keeps it.
// CHECK: rota.param @w {{.*}} {rota.squares = @own, rota.update = @own}
// CHECK-NOT: func.func @update_0
rota.param @w : tensor<8xf32> axes ["x"] init #rota.constant<value = 1.0> {rota.squares = @own, rota.update = @own}
func.func private @own()
