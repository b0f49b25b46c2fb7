// Attention over the context axis: gathered, or around a ring, balanced or not.
// RUN: rota-opt %s --split-input-file --choose-context-exchange=exchange=gather | FileCheck %s --check-prefix=GATHER
// RUN: rota-opt %s --split-input-file --choose-context-exchange=exchange=ring | FileCheck %s --check-prefix=RING
// RUN: rota-opt %s --split-input-file --choose-context-exchange=exchange=balanced-ring | FileCheck %s --check-prefix=BALANCED
// RUN: rota-opt %s --split-input-file --choose-context-exchange=exchange=balanced-ring --remarks-filter=shard 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: rota-opt %s --split-input-file --choose-context-exchange=exchange=auto --remarks-filter=shard 2>&1 >/dev/null | FileCheck %s --check-prefix=AUTO

// The example of the pass.
// GATHER-NOT: ring
// RING-LABEL: func.func @f
// RING: rota.attention {{.*}} scale = {{.*}} ring :
// BALANCED-LABEL: func.func @f
// BALANCED: rota.attention {{.*}} ring balanced :
// REMARK: Remark="keys and values travel around a balanced ring"
// Half of the work for the last rank, and fewer bytes. To exchange halves takes
// longer than that work.
// AUTO: [Passed] context-exchange {{.*}} BalancedRingMs={{.*}} GatherMs={{.*}} Remark="keys and values travel around a ring", RingMs=
rota.mesh <context = 2>
func.func @f(%q: tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32> {
  %o, %lse = rota.attention %q, %q, %q scale = 0.35 : (tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>) -> (tensor<1x16x4x8xf32>, tensor<1x4x16xf32>)
  return %o : tensor<1x16x4x8xf32>
}

// -----

// The derivative, too.
// AUTO: context-exchange {{.*}} Remark="keys and values travel around a ring"
// RING-LABEL: func.func @grad
// RING: rota.attention_grad {{.*}} ring :
// BALANCED-LABEL: func.func @grad
// BALANCED: rota.attention_grad {{.*}} ring balanced :
rota.mesh <context = 2>
func.func @grad(%q: tensor<1x16x4x8xf32>, %l: tensor<1x4x16xf32>) -> tensor<1x16x4x8xf32> {
  %dq, %dk, %dv = rota.attention_grad %q, %q, %q, %q, %q, %l scale = 0.35 : (tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x4x16xf32>) -> (tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>)
  return %dq : tensor<1x16x4x8xf32>
}

// -----

// Not in a window of both directions, and not where context has one rank.
// RING-LABEL: func.func @window
// RING-NOT: ring
rota.mesh <context = 2>
func.func @window(%q: tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32> {
  %o, %lse = rota.attention %q, %q, %q scale = 0.35 window = 3 bidirectional : (tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>) -> (tensor<1x16x4x8xf32>, tensor<1x4x16xf32>)
  return %o : tensor<1x16x4x8xf32>
}

// -----

rota.mesh <data = 2>
func.func @data(%q: tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32> {
  %o, %lse = rota.attention %q, %q, %q scale = 0.35 : (tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>) -> (tensor<1x16x4x8xf32>, tensor<1x4x16xf32>)
  return %o : tensor<1x16x4x8xf32>
}

// -----

// Of 16 positions on four ranks the work is less than the latencies of three
// steps with keys and values.
// AUTO: context-exchange {{.*}} Remark="queries, keys and values are gathered"
// RING-LABEL: func.func @short
// RING: rota.attention {{.*}} ring :
rota.mesh <context = 4>
func.func @short(%q: tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32> {
  %o, %lse = rota.attention %q, %q, %q scale = 0.35 : (tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>, tensor<1x16x4x8xf32>) -> (tensor<1x16x4x8xf32>, tensor<1x4x16xf32>)
  return %o : tensor<1x16x4x8xf32>
}

// -----

// Of 4096 positions the work of a rank counts: equal shares take the least time.
// AUTO: context-exchange {{.*}} Remark="keys and values travel around a balanced ring"
rota.mesh <context = 4>
func.func @long(%q: tensor<1x4096x4x8xf32>) -> tensor<1x4096x4x8xf32> {
  %o, %lse = rota.attention %q, %q, %q scale = 0.35 : (tensor<1x4096x4x8xf32>, tensor<1x4096x4x8xf32>, tensor<1x4096x4x8xf32>) -> (tensor<1x4096x4x8xf32>, tensor<1x4x4096xf32>)
  return %o : tensor<1x4096x4x8xf32>
}

// -----

// The plain ring for forms without a balanced order, with a reason where that was
// asked for.
// RING-LABEL: func.func @forms
// BALANCED-LABEL: func.func @forms
// BALANCED-COUNT-2: rota.attention {{.*}} ring :
// REMARK: Reason="a window has no balanced order", Remark="keys and values travel around a ring"
// REMARK: Reason="ranks have equal work in any order", Remark="keys and values travel around a ring"
// AUTO-NOT: BalancedRingMs
// AUTO: context-exchange
// AUTO-NOT: BalancedRingMs
// AUTO: context-exchange
// AUTO-NOT: BalancedRingMs
rota.mesh <context = 4>
func.func @forms(%q: tensor<1x4096x4x8xf32>) -> (tensor<1x4096x4x8xf32>, tensor<1x4096x4x8xf32>) {
  %o, %lse = rota.attention %q, %q, %q scale = 0.35 window = 2000 : (tensor<1x4096x4x8xf32>, tensor<1x4096x4x8xf32>, tensor<1x4096x4x8xf32>) -> (tensor<1x4096x4x8xf32>, tensor<1x4x4096xf32>)
  %p, %lsf = rota.attention %q, %q, %q scale = 0.35 bidirectional : (tensor<1x4096x4x8xf32>, tensor<1x4096x4x8xf32>, tensor<1x4096x4x8xf32>) -> (tensor<1x4096x4x8xf32>, tensor<1x4x4096xf32>)
  return %o, %p : tensor<1x4096x4x8xf32>, tensor<1x4096x4x8xf32>
}

// -----

// On a host the cores of the first ranks, which see fewer keys, compute for the
// last ones: to balance their work saves nothing.
// AUTO: context-exchange {{.*}} Remark="keys and values travel around a ring"
module attributes {rota.machine = {
  name = "host", device = "cpu", cores = 4, units = 4,
  types = {f32 = {flops_per_second = 4.0e11}}, tiles = [{m = 1, n = 1, efficiency = 1}],
  product_efficiency = 1, depth = 0, attention = {forward = 1, backward = 1}, row_flops_per_second = 1.0e11,
  launch_seconds = 0,
  memory = {bytes = 1.0e10, bytes_per_second = 1.0e11, efficiency = 1, copied_bytes_per_second = 1.0e10},
  host = {bytes_per_second = 1.0e10, latency_seconds = 0},
  network = [{name = "memory", devices = 0, bytes_per_second = 1.0e10, latency_seconds = 1.0e-5, efficiency = 1, slows_work = 1}]
}} {
  rota.mesh <context = 4>
  func.func @host(%q: tensor<1x4096x4x8xf32>) -> tensor<1x4096x4x8xf32> {
    %o, %lse = rota.attention %q, %q, %q scale = 0.35 : (tensor<1x4096x4x8xf32>, tensor<1x4096x4x8xf32>, tensor<1x4096x4x8xf32>) -> (tensor<1x4096x4x8xf32>, tensor<1x4x4096xf32>)
    return %o : tensor<1x4096x4x8xf32>
  }
}
