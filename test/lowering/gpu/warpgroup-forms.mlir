// RUN: rota-opt %s --emit-gpu-kernels -o %t
// RUN: FileCheck %s --check-prefix=FORMS --input-file %t
// RUN: rota-opt %s --emit-gpu-kernels --print-ptx=chip=sm_90a -o /dev/null | FileCheck %s --check-prefix=OWN
// RUN: rota-opt %s --emit-gpu-kernels --print-ptx=chip=sm_90 -o /dev/null | FileCheck %s --check-prefix=COMMON

// A kernel in two forms for the same launch.
// FORMS: gpu.func @kernel_attention_matrix_0({{.*}}known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
// FORMS: nvvm.mma.sync
// FORMS: gpu.func @kernel_attention_matrix_0$warpgroup({{.*}}known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
// FORMS-NOT: nvvm.mma.sync

// The chip with warpgroups has one, under the common name. Two products of queries
// with keys run before the first one's weights; no thread waits for the GPU's memory.
// OWN: .target sm_90a
// OWN: .entry kernel_attention_matrix_0(
// OWN: cp.async.wait_group 0
// OWN: fence.proxy.async.shared::cta
// OWN: bar.sync
// OWN-COUNT-8: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, left, right, {{yes|no}}, 1, 1, 0, 0;
// OWN: wgmma.commit_group.sync.aligned
// OWN-COUNT-8: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, left, right, {{yes|no}}, 1, 1, 0, 0;
// OWN: wgmma.wait_group.sync.aligned 1
// OWN: ex2.approx.ftz.f32
// Weights are left matrices in registers; values are read by columns.
// OWN-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}}, {{[{].*[}]}}, right, yes, 1, 1, 1;
// OWN-NOT: $warpgroup

// COMMON: .target sm_90{{$}}
// COMMON: .entry kernel_attention_matrix_0(
// COMMON-NOT: wgmma
// COMMON-NOT: $warpgroup
func.func @f(%q: tensor<1x130x1x128xbf16>) -> tensor<1x130x1x128xbf16> {
  %o, %lse = rota.attention %q, %q, %q scale = 0.125 : (tensor<1x130x1x128xbf16>, tensor<1x130x1x128xbf16>, tensor<1x130x1x128xbf16>) -> (tensor<1x130x1x128xbf16>, tensor<1x1x130xf32>)
  return %o : tensor<1x130x1x128xbf16>
}
