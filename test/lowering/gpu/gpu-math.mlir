// RUN: rota-opt %s --gpu-math | FileCheck %s

// The doc example.
// CHECK-LABEL: func @exp
// CHECK-SAME: %[[X:.*]]: vector<8xf32>
// CHECK: %[[L:.*]] = arith.constant dense<1.44269502> : vector<8xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[X]], %[[L]]
// CHECK: llvm.call_intrinsic "llvm.exp2"(%[[P]])
func.func @exp(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp %x : vector<8xf32>
  return %y : vector<8xf32>
}

// CHECK-LABEL: func @log
// CHECK: %[[L:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"
// CHECK: arith.mulf %[[L]]
func.func @log(%x: f32) -> f32 {
  %y = math.log %x : f32
  return %y : f32
}

// CHECK-LABEL: func @roots
// CHECK: llvm.call_intrinsic "llvm.sqrt"({{.*}}) {fastmathFlags = #llvm.fastmath<afn>}
// CHECK: %[[S:.*]] = llvm.call_intrinsic "llvm.sqrt"({{.*}}) {fastmathFlags = #llvm.fastmath<afn>}
// CHECK: arith.divf %{{.*}}, %[[S]] fastmath<afn>
func.func @roots(%x: f32) -> (f32, f32) {
  %y = math.sqrt %x : f32
  %z = math.rsqrt %x : f32
  return %y, %z : f32, f32
}

// The polynomial of CPU code.
// CHECK-LABEL: func @tanh
// CHECK-NOT: math.tanh
// CHECK: llvm.call_intrinsic "llvm.fma"
// CHECK: arith.divf {{.*}} fastmath<afn>
func.func @tanh(%x: f32) -> f32 {
  %y = math.tanh %x : f32
  return %y : f32
}

// Divisions of other types are exact.
// CHECK-LABEL: func @exact
// CHECK: arith.divf %{{.*}}, %{{.*}} : f64
func.func @exact(%x: f64, %y: f64) -> f64 {
  %z = arith.divf %x, %y : f64
  return %z : f64
}
