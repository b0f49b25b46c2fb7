// RUN: rota-opt %s --emit-gpu-kernels --split-input-file | FileCheck %s
// RUN: rota-opt %s --emit-gpu-kernels --print-ptx --split-input-file -o /dev/null | FileCheck %s --check-prefix=PTX --implicit-check-not="{{\.extern \.func|atom\.|red\.(global|shared)|ld\.global\.nc}}"

// No kernel calls a library or adds with atomics, and none reads through the
// cache of constants, which does not see stores: --implicit-check-not.

// The doc example: 48 chunks of 4 elements, one a thread, in accesses of 16 bytes.
// CHECK-LABEL: gpu.func @kernel_twice_0
// CHECK-SAME: (%{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 1, 1, 1>}
// CHECK: scf.if
// CHECK: %[[X:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: %[[Y:.*]] = arith.addf %[[X]], %[[X]] : vector<4xf32>
// CHECK: llvm.store %[[Y]], %{{.*}} {alignment = 16 : i64}
// PTX-LABEL: .entry kernel_twice_0
// PTX: ld.global.v{{4.b32|2.b64}}
// PTX: st.global.v{{4.b32|2.b64}}
rota.kernel @twice operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<32xf32>):
  %y = arith.addf %x, %x : tensor<32xf32>
  rota.yield %y : tensor<32xf32>
}
func.func @f(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
  %y = rota.launch @twice rows = 6 (%x) : (tensor<6x32xf32>) -> tensor<6x32xf32>
  return %y : tensor<6x32xf32>
}

// -----

// Rows of 30 elements that are 64 apart: 9 threads a row, 7 with a chunk and 2
// with an element.
// CHECK-LABEL: gpu.func @kernel_twice_0
// CHECK: arith.constant 54 : i32
// CHECK: scf.if
// CHECK: arith.constant 9 : i32
// CHECK: scf.if
// CHECK: arith.constant 64 : i64
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: llvm.store
// CHECK: } else {
// CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK: llvm.store
// PTX-LABEL: .entry kernel_twice_0
rota.kernel @twice operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<30xf32>):
  %y = arith.addf %x, %x : tensor<30xf32>
  rota.yield %y : tensor<30xf32>
}
func.func @f(%x: tensor<6x30xf32, #rota.row_stride<64>>) -> tensor<6x30xf32, #rota.row_stride<64>> {
  %y = rota.launch @twice rows = 6 (%x) : (tensor<6x30xf32, #rota.row_stride<64>>) -> tensor<6x30xf32, #rota.row_stride<64>>
  return %y : tensor<6x30xf32, #rota.row_stride<64>>
}

// -----

// 100 columns are 25 chunks of 4, one for each of 32 threads. Four rows are a
// block; there are 6.
// CHECK-LABEL: gpu.func @kernel_share_0
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xbf16>
// CHECK-NOT: llvm.load
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.barrier
// PTX-LABEL: .entry kernel_share_0
// PTX: ld.global.v4.b16
// PTX-COUNT-5: shfl.sync.bfly.b32
// PTX: st.global.v2.b32
rota.kernel @share operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<100xbf16>):
  %w = arith.extf %x : tensor<100xbf16> to tensor<100xf32>
  %s = rota.reduce sum %w dims [0] : tensor<100xf32> -> tensor<f32>
  %b = rota.broadcast %s dims [] : tensor<f32> -> tensor<100xf32>
  %q = arith.divf %w, %b : tensor<100xf32>
  %y = arith.truncf %q : tensor<100xf32> to tensor<100xbf16>
  rota.yield %y : tensor<100xbf16>
}
func.func @f(%x: tensor<6x100xbf16>) -> tensor<6x100xbf16> {
  %y = rota.launch @share rows = 6 (%x) : (tensor<6x100xbf16>) -> tensor<6x100xbf16>
  return %y : tensor<6x100xbf16>
}

// -----

// Rows of several warps: two chunks of x and of the gain a thread, one barrier.
// CHECK-LABEL: gpu.func @kernel_norm_0
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 10, 1, 1>
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// PTX-LABEL: .entry kernel_norm_0
// PTX-COUNT-2: ld.global.v4.b32
// PTX-COUNT-5: shfl.sync.bfly.b32
// PTX: bar.sync
// PTX-NOT: bar.sync
// PTX-COUNT-2: ld.global.v4.b32
// PTX-COUNT-2: st.global.v4.b32
rota.kernel @norm operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>] results [#rota.result<row>] {
^bb0(%x: tensor<4096xbf16>, %gain: tensor<4096xbf16>):
  %w = arith.extf %x : tensor<4096xbf16> to tensor<4096xf32>
  %q = arith.mulf %w, %w : tensor<4096xf32>
  %s = rota.reduce sum %q dims [0] : tensor<4096xf32> -> tensor<f32>
  %r = math.rsqrt %s : tensor<f32>
  %b = rota.broadcast %r dims [] : tensor<f32> -> tensor<4096xf32>
  %n = arith.mulf %w, %b : tensor<4096xf32>
  %g = arith.extf %gain : tensor<4096xbf16> to tensor<4096xf32>
  %m = arith.mulf %n, %g : tensor<4096xf32>
  %y = arith.truncf %m : tensor<4096xf32> to tensor<4096xbf16>
  rota.yield %y : tensor<4096xbf16>
}
func.func @f(%x: tensor<10x4096xbf16>, %gain: tensor<4096xbf16>) -> tensor<10x4096xbf16> {
  %y = rota.launch @norm rows = 10 (%x, %gain) : (tensor<10x4096xbf16>, tensor<4096xbf16>) -> tensor<10x4096xbf16>
  return %y : tensor<10x4096xbf16>
}

// -----

// Rows that do not fit in registers are read again.
// CHECK-LABEL: gpu.func @kernel_wide_0
// CHECK-SAME: known_block_size = array<i32: 512, 1, 1>, known_grid_size = array<i32: 10, 1, 1>
// CHECK: scf.for
// CHECK: llvm.load {{.*}} -> vector<8xf32>
// CHECK: nvvm.barrier
// CHECK: scf.for
// CHECK: llvm.load {{.*}} -> vector<8xf32>
// CHECK: llvm.store {{.*}} vector<8xf32>
// PTX-LABEL: .entry kernel_wide_0
rota.kernel @wide operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<131072xf32>):
  %s = rota.reduce max %x dims [0] : tensor<131072xf32> -> tensor<f32>
  %b = rota.broadcast %s dims [] : tensor<f32> -> tensor<131072xf32>
  %y = arith.subf %x, %b : tensor<131072xf32>
  rota.yield %y : tensor<131072xf32>
}
func.func @f(%x: tensor<10x131072xf32>) -> tensor<10x131072xf32> {
  %y = rota.launch @wide rows = 10 (%x) : (tensor<10x131072xf32>) -> tensor<10x131072xf32>
  return %y : tensor<10x131072xf32>
}

// -----

// A value of each row that may be overwritten is read by all threads before.
// CHECK-LABEL: gpu.func @kernel_scalars_0
// CHECK: llvm.load {{.*}} -> f32
// CHECK: nvvm.barrier
// CHECK: scf.if
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : f32
// PTX-LABEL: .entry kernel_scalars_0
rota.kernel @scalars operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>] results [#rota.result<row>, #rota.result<row>] {
^bb0(%x: tensor<512xf32>, %s: tensor<f32>):
  %b = rota.broadcast %s dims [] : tensor<f32> -> tensor<512xf32>
  %y = arith.mulf %x, %b : tensor<512xf32>
  %t = arith.mulf %s, %s : tensor<f32>
  rota.yield %y, %t : tensor<512xf32>, tensor<f32>
}
func.func @f(%x: tensor<10x512xf32>, %s: tensor<10xf32>) -> (tensor<10x512xf32>, tensor<10xf32>) {
  %y, %t = rota.launch @scalars rows = 10 (%x, %s) : (tensor<10x512xf32>, tensor<10xf32>) -> (tensor<10x512xf32>, tensor<10xf32>)
  return %y, %t : tensor<10x512xf32>, tensor<10xf32>
}

// -----

// Sums over rows: 128 rows of partial sums, each of every 128th row, ascending,
// while the next row is on its way; then 8 columns a block, 8 rows of a thread at
// a time.
// CHECK-LABEL: gpu.func @kernel_sum_0
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 16, 1, 1>
// CHECK: llvm.load {{.*}} -> vector<8xf32>
// CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>)
// CHECK: llvm.load {{.*}} -> vector<8xf32>
// CHECK: llvm.store {{.*}} vector<8xf32>
// CHECK-LABEL: gpu.func @kernel_sum_1
// CHECK-SAME: known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 12, 1, 1>
// CHECK: scf.for {{.*}} -> (i32, f32)
// CHECK-COUNT-8: llvm.load
// CHECK-COUNT-3: nvvm.barrier
// PTX-LABEL: .entry kernel_sum_0
// PTX-LABEL: .entry kernel_sum_1
// PTX: ld.shared
rota.kernel @sum operands [affine_map<(d0) -> (d0)>] results [#rota.result<sum>] {
^bb0(%x: tensor<96xf32>):
  rota.yield %x : tensor<96xf32>
}
func.func @f(%x: tensor<600x96xf32>) -> tensor<96xf32> {
  %y = rota.launch @sum rows = 600 (%x) : (tensor<600x96xf32>) -> tensor<96xf32>
  return %y : tensor<96xf32>
}
