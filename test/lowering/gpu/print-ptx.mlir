// RUN: rota-opt %s --print-ptx=chip=sm_80 -o /dev/null | FileCheck %s
// RUN: rota-opt %s --print-ptx=chip=sm_90 -o /dev/null | FileCheck %s
// RUN: rota-opt %s --print-ptx=chip=sm_100 -o /dev/null | FileCheck %s

// Sixteen bytes at a time, functions as instructions, no library, and no debug
// information, which would keep ptxas from optimizing.
// CHECK: .version 8.
// CHECK: .target sm_{{[0-9]+$}}
// CHECK-NOT: .extern .func
// CHECK: .visible .entry functions(
// CHECK: .maxntid 256
// CHECK: ld.global.v4.b32
// CHECK: ex2.approx.f32
// CHECK: st.global.v{{4.b32|2.b64}}
// CHECK: lg2.approx.f32
// CHECK-DAG: rsqrt.approx.f32
// CHECK-DAG: {{[^r]}}sqrt.approx.f32
// CHECK: div.approx.f32
// CHECK: shfl.sync.bfly.b32
// CHECK: bar.sync
// CHECK: cvt.rn.bf16
// CHECK-NOT: {{\.loc|\.section}}
gpu.module @kernels {
  gpu.func @functions(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %x = llvm.load %in {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
    %w = arith.extf %x : vector<8xbf16> to vector<8xf32>
    %e = math.exp %w : vector<8xf32>
    llvm.store %e, %out {alignment = 16 : i64} : vector<8xf32>, !llvm.ptr<1>
    %s = vector.extract %e[0] : f32 from vector<8xf32>
    %l = math.log %s : f32
    llvm.store volatile %l, %out : f32, !llvm.ptr<1>
    %r = math.rsqrt %l : f32
    llvm.store volatile %r, %out : f32, !llvm.ptr<1>
    %q = math.sqrt %l : f32
    llvm.store volatile %q, %out : f32, !llvm.ptr<1>
    %d = arith.divf %q, %l : f32
    llvm.store volatile %d, %out : f32, !llvm.ptr<1>
    %t = math.tanh %d : f32
    llvm.store volatile %t, %out : f32, !llvm.ptr<1>
    %all = arith.constant -1 : i32
    %one = arith.constant 1 : i32
    %last = arith.constant 31 : i32
    %o = nvvm.shfl.sync bfly %all, %t, %one, %last : f32 -> f32
    nvvm.barrier
    %n = arith.truncf %o : f32 to bf16
    llvm.store volatile %n, %out : bf16, !llvm.ptr<1>
    gpu.return
  }
}
