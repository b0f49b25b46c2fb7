// RUN: rota-opt %s --approximate-math | FileCheck %s
// RUN: rota-opt %s --cpu-to-llvm | FileCheck %s --check-prefix=LLVM

// The doc example: no function call and no bf16 arithmetic is left.
// CHECK-LABEL: func @f
// CHECK-NOT: math.exp
// CHECK: math.fma
// CHECK-NOT: arith.truncf
// CHECK: arith.select {{.*}} vector<32xf32>
// CHECK: arith.shrui
// CHECK-NOT: arith.select
// CHECK: arith.bitcast %{{.*}} : vector<32xi16> to vector<32xbf16>
// LLVM-LABEL: llvm.func @f
// LLVM: llvm.intr.fma
// LLVM: llvm.lshr
func.func @f(%x: vector<32xf32>) -> vector<32xbf16> {
  %e = math.exp %x : vector<32xf32>
  %y = arith.truncf %e : vector<32xf32> to vector<32xbf16>
  return %y : vector<32xbf16>
}

// Square roots and divisions stay exact.
// CHECK-LABEL: func @exact
// CHECK: math.sqrt
// CHECK: arith.divf
// LLVM-LABEL: llvm.func @exact
// LLVM: llvm.intr.sqrt
// LLVM: llvm.fdiv
func.func @exact(%x: vector<32xf32>) -> vector<32xf32> {
  %r = math.sqrt %x : vector<32xf32>
  %y = arith.divf %x, %r : vector<32xf32>
  return %y : vector<32xf32>
}
