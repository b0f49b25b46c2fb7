// RUN: rota-opt %s --emit-kernels --split-input-file | FileCheck %s
// RUN: rota-opt %s --emit-kernels --cpu-to-llvm --split-input-file | FileCheck %s --check-prefix=LLVM

// The doc example.
// CHECK-LABEL: func @kernel_twice_0
// CHECK-SAME: (%[[ARGS:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step
// CHECK: %[[X:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<32xf32>
// CHECK: %[[Y:.*]] = arith.addf %[[X]], %[[X]] : vector<32xf32>
// CHECK: llvm.store %[[Y]]
// LLVM-LABEL: llvm.func @kernel_twice_0
// LLVM: llvm.cond_br
// LLVM: llvm.fadd %{{.*}} : vector<32xf32>
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

// 100 columns are three vectors of 32 and one of 4. The reduction is one pass, the
// division by it another; the first carries the sum, the second stores.
// CHECK-LABEL: func @kernel_share_0
// CHECK: scf.for
// CHECK: %[[PART:.*]] = scf.for {{.*}} iter_args({{.*}}) -> (vector<32xf32>)
// CHECK: vector.extract_strided_slice %[[PART]] {offsets = [0], sizes = [16]
// CHECK: llvm.load {{.*}} -> vector<4xbf16>
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: scf.for
// CHECK: vector.broadcast %[[SUM]]
// CHECK: arith.truncf %{{.*}} : vector<32xf32> to vector<32xbf16>
// CHECK: arith.truncf %{{.*}} : vector<4xf32> to vector<4xbf16>
// LLVM-LABEL: llvm.func @kernel_share_0
// LLVM-NOT: fptrunc
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

// A sum over rows: one kernel for blocks of rows, one for the blocks' sums.
// CHECK-LABEL: func @kernel_sum_0
// CHECK-LABEL: func @kernel_sum_1
rota.kernel @sum operands [affine_map<(d0) -> (d0)>] results [#rota.result<sum>] {
^bb0(%x: tensor<32xf32>):
  rota.yield %x : tensor<32xf32>
}
func.func @f(%x: tensor<600x32xf32>) -> tensor<32xf32> {
  %y = rota.launch @sum rows = 600 (%x) : (tensor<600x32xf32>) -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// -----

// An exponential waits on the stack from the pass that sums it to the one that
// divides it; a difference is computed again.
// CHECK-LABEL: func @kernel_softmax_0
// CHECK: %[[KEPT:.*]] = llvm.alloca %{{.*}} x f32 {alignment = 64 : i64}
// CHECK: arith.maximumf
// CHECK: arith.subf
// CHECK: %[[EXP:.*]] = math.exp
// CHECK: %[[TO:.*]] = llvm.getelementptr %[[KEPT]]
// CHECK: llvm.store %[[EXP]], %[[TO]]
// CHECK-NOT: math.exp
// CHECK: %[[FROM:.*]] = llvm.getelementptr %[[KEPT]]
// CHECK: %[[AGAIN:.*]] = llvm.load %[[FROM]]
// CHECK-NOT: math.exp
// CHECK: arith.divf %[[AGAIN]],
rota.kernel @softmax operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<32xf32>):
  %max = rota.reduce max %x dims [0] : tensor<32xf32> -> tensor<f32>
  %m = rota.broadcast %max dims [] : tensor<f32> -> tensor<32xf32>
  %d = arith.subf %x, %m : tensor<32xf32>
  %e = math.exp %d : tensor<32xf32>
  %sum = rota.reduce sum %e dims [0] : tensor<32xf32> -> tensor<f32>
  %s = rota.broadcast %sum dims [] : tensor<f32> -> tensor<32xf32>
  %y = arith.divf %e, %s : tensor<32xf32>
  rota.yield %y : tensor<32xf32>
}
func.func @f(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
  %y = rota.launch @softmax rows = 6 (%x) : (tensor<6x32xf32>) -> tensor<6x32xf32>
  return %y : tensor<6x32xf32>
}
