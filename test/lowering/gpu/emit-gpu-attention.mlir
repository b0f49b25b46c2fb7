// RUN: rota-opt %s --emit-gpu-kernels --split-input-file | FileCheck %s
// RUN: rota-opt %s --emit-gpu-kernels --print-ptx --split-input-file -o /dev/null | FileCheck %s --check-prefix=PTX --implicit-check-not="{{\.extern \.func|atom\.|[^a-z]red\.|ld\.global\.nc}}"

// No kernel calls a library or adds with atomics, and none reads through the
// cache of constants: --implicit-check-not.

// Three blocks of 64 queries for each of 2 x 6 heads. A thread has four queries.
// CHECK-LABEL: gpu.func @kernel_attention_0
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 36, 1, 1>
// CHECK: nvvm.barrier
// The walk over keys: four maxima, four sums, four vectors of output.
// CHECK: scf.for {{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>)
// CHECK-COUNT-4: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// The scores, 4 x 4 a thread.
// CHECK: scf.for
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-COUNT-64: math.fma {{.*}} : f32
// The maximum of a row is that of 16 threads.
// CHECK: nvvm.barrier
// CHECK-COUNT-16: nvvm.shfl.sync bfly
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// CHECK: nvvm.barrier
// CHECK-COUNT-16: math.fma {{.*}} : vector<4xf32>
// CHECK: nvvm.barrier
// CHECK: nvvm.barrier
// The sum of a row, and the logsumexp.
// CHECK-COUNT-16: nvvm.shfl.sync bfly
// CHECK: arith.divf
// CHECK: math.log
// PTX-LABEL: .entry kernel_attention_0
// PTX: ld.global.v{{4.b32|2.b64}}
// PTX: st.shared.v{{4.b32|2.b64}}
// PTX: ex2.approx
// PTX: lg2.approx
func.func @f(%q: tensor<2x130x6x64xf32>, %k: tensor<2x130x2x64xf32>, %v: tensor<2x130x2x64xf32>) -> tensor<2x130x6x64xf32> {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x130x6x64xf32>, tensor<2x130x2x64xf32>, tensor<2x130x2x64xf32>) -> (tensor<2x130x6x64xf32>, tensor<2x6x130xf32>)
  return %o : tensor<2x130x6x64xf32>
}

// -----

// On matrix instructions: four warps with 128 queries, two fragments each. A trip
// waits for a tile of 64 keys and values, starts the copies of the next one (four
// for each), where there is one, and has 2 x 64 products. It masks scores on the
// diagonal only. Rows beyond the sequence are copied as zeros.
// CHECK-LABEL: gpu.func @kernel_attention_matrix_0(
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 24, 1, 1>
// CHECK-SAME: nvvm.minctasm = 2 : i32
// CHECK-COUNT-16: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %{{.*}} :
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier
// CHECK: scf.if
// CHECK-COUNT-8: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %{{.*}} :
// CHECK: nvvm.cp.async.commit.group
// CHECK-COUNT-64: nvvm.mma.sync
// CHECK: scf.if
// CHECK-COUNT-64: arith.select
// CHECK: } else {
// CHECK: nvvm.vote.sync any
// CHECK: scf.if
// CHECK-COUNT-64: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-8: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
// PTX-LABEL: .entry kernel_attention_matrix_0
// PTX-DAG: cp.async.cg.shared.global
// PTX-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX-DAG: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// PTX-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// PTX: st.global.v4
func.func @f(%q: tensor<2x130x6x64xbf16>, %k: tensor<2x130x2x64xbf16>, %v: tensor<2x130x2x64xbf16>) -> tensor<2x130x6x64xbf16> {
  %o, %lse = rota.attention %q, %k, %v scale = 0.125 : (tensor<2x130x6x64xbf16>, tensor<2x130x2x64xbf16>, tensor<2x130x2x64xbf16>) -> (tensor<2x130x6x64xbf16>, tensor<2x6x130xf32>)
  return %o : tensor<2x130x6x64xbf16>
}

// -----

// Rows of 12 chunks have 16 threads, four of them idle. A product with the keys
// has six steps of 16 columns, each for two fragments and 32 keys.
// CHECK-LABEL: gpu.func @kernel_attention_matrix_0(
// CHECK: arith.cmpi ult, %{{.*}}, %c12_i32
// CHECK: scf.if
// CHECK-COUNT-16: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK: scf.for
// CHECK-COUNT-48: nvvm.mma.sync
// CHECK: nvvm.vote.sync any
// CHECK-COUNT-48: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: nvvm.bar.warp.sync
// PTX-LABEL: .entry kernel_attention_matrix_0
func.func @f(%q: tensor<1x128x1x96xbf16>) -> tensor<1x128x1x96xbf16> {
  %o, %lse = rota.attention %q, %q, %q scale = 0.125 : (tensor<1x128x1x96xbf16>, tensor<1x128x1x96xbf16>, tensor<1x128x1x96xbf16>) -> (tensor<1x128x1x96xbf16>, tensor<1x1x128xf32>)
  return %o : tensor<1x128x1x96xbf16>
}

// -----

// Rows of five chunks: the sixth is zeros.
// CHECK-LABEL: gpu.func @kernel_attention_matrix_0(
// CHECK: %[[WITHIN:.*]] = arith.cmpi ult, %{{.*}}, %c5_i32
// CHECK: arith.cmpi ult, %{{.*}}, %c6_i32
// CHECK: scf.if
// CHECK: %[[BYTES:.*]] = arith.select %[[WITHIN]], %c16_i32{{.*}}, %c0_i32
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %[[BYTES]]
// PTX-LABEL: .entry kernel_attention_matrix_0
func.func @f(%q: tensor<1x128x1x40xbf16>) -> tensor<1x128x1x40xbf16> {
  %o, %lse = rota.attention %q, %q, %q scale = 0.125 : (tensor<1x128x1x40xbf16>, tensor<1x128x1x40xbf16>, tensor<1x128x1x40xbf16>) -> (tensor<1x128x1x40xbf16>, tensor<1x1x128xf32>)
  return %o : tensor<1x128x1x40xbf16>
}

// -----

// The maximum of scores times a negative number is not that of scaled scores. On
// f32 units 8 elements of a tile are read at a time.
// CHECK-LABEL: gpu.func @kernel_attention_0
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// PTX-LABEL: .entry kernel_attention_0
// PTX: ld.global.v4.b32
func.func @f(%q: tensor<1x4x1x64xbf16>) -> tensor<1x4x1x64xbf16> {
  %o, %lse = rota.attention %q, %q, %q scale = -0.125 : (tensor<1x4x1x64xbf16>, tensor<1x4x1x64xbf16>, tensor<1x4x1x64xbf16>) -> (tensor<1x4x1x64xbf16>, tensor<1x1x4xf32>)
  return %o : tensor<1x4x1x64xbf16>
}

// -----

// Sixteen threads a row of delta; blocks of 64 keys of 2 x 2 heads, and of 64
// queries of 2 x 6 heads.
// CHECK-LABEL: gpu.func @kernel_attention_delta_0
// CHECK-SAME: (%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 98, 1, 1>}
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.barrier
// CHECK-LABEL: gpu.func @kernel_attention_key_grad_0
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 12, 1, 1>
// The walk over query heads, then queries.
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-3: nvvm.bar.warp.sync
// CHECK-COUNT-2: nvvm.barrier
// CHECK-LABEL: gpu.func @kernel_attention_query_grad_0
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 36, 1, 1>
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-2: nvvm.barrier
// PTX-LABEL: .entry kernel_attention_delta_0
// PTX: ld.global.v{{4.b32|2.b64}}
// PTX-LABEL: .entry kernel_attention_key_grad_0
// PTX: ld.global.v{{4.b32|2.b64}}
// PTX: st.global.v{{4.b32|2.b64}}
// PTX-LABEL: .entry kernel_attention_query_grad_0
// PTX: ld.global.v{{4.b32|2.b64}}
// PTX: st.global.v{{4.b32|2.b64}}
func.func @f(%do: tensor<2x130x6x64xf32>, %q: tensor<2x130x6x64xf32>, %k: tensor<2x130x2x64xf32>, %v: tensor<2x130x2x64xf32>, %o: tensor<2x130x6x64xf32>, %lse: tensor<2x6x130xf32>) -> tensor<2x130x6x64xf32> {
  %dq, %dk, %dv = rota.attention_grad %do, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x130x6x64xf32>, tensor<2x130x6x64xf32>, tensor<2x130x2x64xf32>, tensor<2x130x2x64xf32>, tensor<2x130x6x64xf32>, tensor<2x6x130xf32>) -> (tensor<2x130x6x64xf32>, tensor<2x130x2x64xf32>, tensor<2x130x2x64xf32>)
  return %dq : tensor<2x130x6x64xf32>
}

// -----

// On matrix instructions: blocks of 128 keys of 2 x 2 heads and of 128 queries of
// 2 x 6 heads, four warps each. A trip waits for a tile of 32 rows and starts the
// copies of the next one, where there is one; logsumexp and delta come in
// accesses of 4 bytes. It masks scores on the diagonal only.
// CHECK-LABEL: gpu.func @kernel_attention_delta_0
// CHECK-LABEL: gpu.func @kernel_attention_matrix_key_grad_0(
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 8, 1, 1>
// CHECK-COUNT-20: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %{{.*}} :
// CHECK-COUNT-2: nvvm.cp.async.shared.global {{.*}}, 4, cache = ca, %{{.*}} :
// CHECK: nvvm.cp.async.commit.group
// The walk over query heads, then queries.
// CHECK: scf.for
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier
// CHECK: scf.if
// CHECK-COUNT-4: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %{{.*}} :
// CHECK-COUNT-2: nvvm.cp.async.shared.global {{.*}}, 4, cache = ca, %{{.*}} :
// CHECK: nvvm.cp.async.commit.group
// CHECK-COUNT-64: nvvm.mma.sync
// CHECK: scf.if
// CHECK-COUNT-32: arith.select
// CHECK: } else {
// CHECK-COUNT-32: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// CHECK-COUNT-64: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK-NOT: nvvm.barrier
// CHECK-COUNT-2: nvvm.bar.warp.sync
// CHECK-LABEL: gpu.func @kernel_attention_matrix_query_grad_0(
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 24, 1, 1>
// CHECK-COUNT-20: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %{{.*}} :
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier
// CHECK: scf.if
// CHECK-COUNT-4: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %{{.*}} :
// CHECK-COUNT-64: nvvm.mma.sync
// CHECK: scf.if
// CHECK-COUNT-32: arith.select
// CHECK: } else {
// CHECK-COUNT-32: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.bar.warp.sync
// PTX-LABEL: .entry kernel_attention_matrix_key_grad_0
// PTX: cp.async.ca.shared.global
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// PTX-LABEL: .entry kernel_attention_matrix_query_grad_0
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
func.func @f(%do: tensor<2x130x6x64xbf16>, %q: tensor<2x130x6x64xbf16>, %k: tensor<2x130x2x64xbf16>, %v: tensor<2x130x2x64xbf16>, %o: tensor<2x130x6x64xbf16>, %lse: tensor<2x6x130xf32>) -> tensor<2x130x6x64xbf16> {
  %dq, %dk, %dv = rota.attention_grad %do, %q, %k, %v, %o, %lse scale = 0.125 : (tensor<2x130x6x64xbf16>, tensor<2x130x6x64xbf16>, tensor<2x130x2x64xbf16>, tensor<2x130x2x64xbf16>, tensor<2x130x6x64xbf16>, tensor<2x6x130xf32>) -> (tensor<2x130x6x64xbf16>, tensor<2x130x2x64xbf16>, tensor<2x130x2x64xbf16>)
  return %dq : tensor<2x130x6x64xbf16>
}

// -----

// Sums of keys and of values of large heads have blocks of their own: two for
// each 128 keys. Each product of 16 rows with a tile of 16 has nine steps of 16
// columns. Sums of values do not need the cotangents of weights.
// CHECK-LABEL: gpu.func @kernel_attention_matrix_key_grad_0(
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 4, 1, 1>
// CHECK: nvvm.barrier
// CHECK-COUNT-54: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: nvvm.bar.warp.sync
// CHECK: nvvm.barrier
// CHECK-COUNT-36: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: nvvm.bar.warp.sync
// PTX-LABEL: .entry kernel_attention_matrix_key_grad_0
func.func @f(%q: tensor<1x130x1x136xbf16>, %lse: tensor<1x1x130xf32>) -> tensor<1x130x1x136xbf16> {
  %dq, %dk, %dv = rota.attention_grad %q, %q, %q, %q, %q, %lse scale = 0.25 : (tensor<1x130x1x136xbf16>, tensor<1x130x1x136xbf16>, tensor<1x130x1x136xbf16>, tensor<1x130x1x136xbf16>, tensor<1x130x1x136xbf16>, tensor<1x1x130xf32>) -> (tensor<1x130x1x136xbf16>, tensor<1x130x1x136xbf16>, tensor<1x130x1x136xbf16>)
  return %dq : tensor<1x130x1x136xbf16>
}

// -----

// The derivative goes with the forward: on f32 units where the scale is not
// positive.
// CHECK-LABEL: gpu.func @kernel_attention_key_grad_0
// CHECK-LABEL: gpu.func @kernel_attention_query_grad_0
// PTX-LABEL: .entry kernel_attention_key_grad_0
func.func @f(%q: tensor<1x4x1x64xbf16>, %lse: tensor<1x1x4xf32>) -> tensor<1x4x1x64xbf16> {
  %dq, %dk, %dv = rota.attention_grad %q, %q, %q, %q, %q, %lse scale = -0.25 : (tensor<1x4x1x64xbf16>, tensor<1x4x1x64xbf16>, tensor<1x4x1x64xbf16>, tensor<1x4x1x64xbf16>, tensor<1x4x1x64xbf16>, tensor<1x1x4xf32>) -> (tensor<1x4x1x64xbf16>, tensor<1x4x1x64xbf16>, tensor<1x4x1x64xbf16>)
  return %dq : tensor<1x4x1x64xbf16>
}

// -----

// A head that no vector divides: elements one by one, with zeros behind them.
// CHECK-LABEL: gpu.func @kernel_attention_0
// CHECK: scf.if
// CHECK-COUNT-3: llvm.store {{.*}} : f32, !llvm.ptr<3>
// PTX-LABEL: .entry kernel_attention_0
func.func @f(%q: tensor<1x17x1x17xbf16>) -> tensor<1x17x1x17xbf16> {
  %o, %lse = rota.attention %q, %q, %q scale = 0.25 : (tensor<1x17x1x17xbf16>, tensor<1x17x1x17xbf16>, tensor<1x17x1x17xbf16>) -> (tensor<1x17x1x17xbf16>, tensor<1x1x17xf32>)
  return %o : tensor<1x17x1x17xbf16>
}
// -----

// Large heads may take more than 128 registers.
// CHECK-LABEL: gpu.func @kernel_attention_query_grad_0
// CHECK-SAME: nvvm.minctasm = 1 : i32
// PTX-LABEL: .entry kernel_attention_query_grad_0
// PTX: .minnctapersm 1
func.func @f(%q: tensor<1x17x1x128xf32>, %lse: tensor<1x1x17xf32>) -> tensor<1x17x1x128xf32> {
  %dq, %dk, %dv = rota.attention_grad %q, %q, %q, %q, %q, %lse scale = 0.25 : (tensor<1x17x1x128xf32>, tensor<1x17x1x128xf32>, tensor<1x17x1x128xf32>, tensor<1x17x1x128xf32>, tensor<1x17x1x128xf32>, tensor<1x1x17xf32>) -> (tensor<1x17x1x128xf32>, tensor<1x17x1x128xf32>, tensor<1x17x1x128xf32>)
  return %dq : tensor<1x17x1x128xf32>
}

// -----

// With a window of 100 the walk of 128 queries begins 128 keys before them, two
// tiles of 64, but not before the sequence, and the mask runs at both ends of the
// window. A maximum begins at the sink, and each of four lanes with a quarter of
// its weight 1.
// CHECK-LABEL: gpu.func @kernel_attention_matrix_0(
// CHECK: arith.constant 2.500000e-01 : f32
// CHECK: %[[BEGIN:.*]] = arith.maxsi
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to
// CHECK-COUNT-64: nvvm.mma.sync
// CHECK: %[[PARTIAL:.*]] = arith.ori
// CHECK: scf.if %[[PARTIAL]]
// CHECK-COUNT-64: arith.select
// CHECK: } else {
// PTX-LABEL: .entry kernel_attention_matrix_0
func.func @f(%q: tensor<1x512x2x64xbf16>, %sinks: tensor<2xf32>) -> tensor<1x512x2x64xbf16> {
  %o, %lse = rota.attention %q, %q, %q sinks %sinks scale = 0.125 window = 100 : (tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>, tensor<2xf32>) -> (tensor<1x512x2x64xbf16>, tensor<1x2x512xf32>)
  return %o : tensor<1x512x2x64xbf16>
}

// -----

// No mask: whole tiles of keys that every query sees. A soft cap is a power and a
// division for each score.
// CHECK-LABEL: gpu.func @kernel_attention_matrix_0(
// CHECK: scf.for
// CHECK-COUNT-64: nvvm.mma.sync
// CHECK-COUNT-64: arith.divf
// CHECK-NOT: arith.select
// CHECK: nvvm.vote.sync any
// PTX-LABEL: .entry kernel_attention_matrix_0
func.func @f(%q: tensor<1x512x2x64xbf16>) -> tensor<1x512x2x64xbf16> {
  %o, %lse = rota.attention %q, %q, %q scale = 0.125 soft_cap = 50.0 bidirectional : (tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>) -> (tensor<1x512x2x64xbf16>, tensor<1x2x512xf32>)
  return %o : tensor<1x512x2x64xbf16>
}

// -----

// Values of another size than keys are left to f32 units. Sinks have a kernel: a
// block of threads for each head.
// CHECK-LABEL: gpu.func @kernel_attention_delta_0
// CHECK-LABEL: gpu.func @kernel_attention_key_grad_0
// CHECK-LABEL: gpu.func @kernel_attention_query_grad_0
// CHECK-LABEL: gpu.func @kernel_attention_sink_grad_0
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
// PTX-LABEL: .entry kernel_attention_sink_grad_0
func.func @f(%q: tensor<1x70x2x64xbf16>, %v: tensor<1x70x2x32xbf16>, %lse: tensor<1x2x70xf32>, %sinks: tensor<2xf32>) -> tensor<2xf32> {
  %dq, %dk, %dv, %dsinks = rota.attention_grad %v, %q, %q, %v, %v, %lse sinks %sinks scale = 0.25 : (tensor<1x70x2x32xbf16>, tensor<1x70x2x64xbf16>, tensor<1x70x2x64xbf16>, tensor<1x70x2x32xbf16>, tensor<1x70x2x32xbf16>, tensor<1x2x70xf32>, tensor<2xf32>) -> (tensor<1x70x2x64xbf16>, tensor<1x70x2x64xbf16>, tensor<1x70x2x32xbf16>, tensor<2xf32>)
  return %dsinks : tensor<2xf32>
}
