// RUN: rota-opt %s --emit-gpu-kernels --split-input-file | FileCheck %s
// RUN: rota-opt %s --emit-gpu-kernels --print-ptx --split-input-file -o /dev/null | FileCheck %s --check-prefix=PTX --implicit-check-not="{{\.extern \.func|atom\.|red\.(global|shared)|ld\.global\.nc}}"

// Cross-entropy: a block for each of 32 rows; the logits are read once, four
// chunks at a time, and what is left one by one.
// CHECK-LABEL: gpu.func @kernel_cross_entropy_0
// CHECK-SAME: known_block_size = array<i32: 512, 1, 1>, known_grid_size = array<i32: 32, 1, 1>
// CHECK: scf.for
// CHECK-COUNT-4: llvm.load {{.*}} -> vector<8xbf16>
// CHECK: scf.for
// CHECK: llvm.load {{.*}} -> vector<8xbf16>
// CHECK-COUNT-10: nvvm.shfl.sync bfly
// CHECK: nvvm.barrier
// The losses are added in f64.
// CHECK-LABEL: gpu.func @kernel_cross_entropy_sum_0
// CHECK-SAME: known_grid_size = array<i32: 1, 1, 1>
// CHECK: scf.for {{.*}} -> (f64, f64)
// PTX-LABEL: .entry kernel_cross_entropy_0
// PTX-COUNT-4: ld.global.v4.b32
// PTX: lg2.approx.f32
// PTX-LABEL: .entry kernel_cross_entropy_sum_0
// PTX: add.rn.f64
func.func @loss(%logits: tensor<2x16x32000xbf16>, %targets: tensor<2x16xi32>) -> tensor<f32> {
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x32000xbf16>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return %sum : tensor<f32>
}

// -----

// Rows of 50257 elements that are 50304 apart: chunks of 16 bytes, and one
// element by thread 138, the next one after those that have a chunk more.
// CHECK-LABEL: gpu.func @kernel_cross_entropy_0
// CHECK: arith.constant 50304 : i64
// CHECK-COUNT-4: llvm.load {{.*}} -> vector<8xbf16>
// CHECK: %[[OWNER:.*]] = arith.constant 138 : i32
// CHECK: %[[OWNS:.*]] = arith.cmpi eq, %{{.*}}, %[[OWNER]]
// CHECK: scf.if %[[OWNS]]
// CHECK: llvm.load {{.*}} -> bf16
// CHECK-NOT: llvm.load {{.*}} -> bf16
// CHECK: } else {
// PTX-LABEL: .entry kernel_cross_entropy_0
// PTX-COUNT-4: ld.global.v4.b32
func.func @loss(%logits: tensor<2x16x50257xbf16, #rota.row_stride<50304>>, %targets: tensor<2x16xi32>) -> tensor<f32> {
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x16x50257xbf16, #rota.row_stride<50304>>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return %sum : tensor<f32>
}

// -----

// Its derivative: zeros in rows that do not count. No thread waits for another.
// CHECK-LABEL: gpu.func @kernel_cross_entropy_grad_0
// CHECK-SAME: known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 32, 1, 1>
// CHECK: scf.if
// CHECK: } else {
// CHECK-NOT: nvvm.barrier
// PTX-LABEL: .entry kernel_cross_entropy_grad_0
// PTX: ld.global.v{{4.b32|2.b64}}
// PTX: st.global.v{{4.b32|2.b64}}
func.func @gradient(%dsum: tensor<f32>, %logits: tensor<2x16x256xf32>, %targets: tensor<2x16xi32>, %lse: tensor<2x16xf32>) -> tensor<2x16x256xf32> {
  %dlogits = rota.cross_entropy_grad %dsum, %logits, %targets, %lse : (tensor<f32>, tensor<2x16x256xf32>, tensor<2x16xi32>, tensor<2x16xf32>) -> tensor<2x16x256xf32>
  return %dlogits : tensor<2x16x256xf32>
}

// -----

// A part of a vocabulary of 250 entries: columns beyond do not count.
// CHECK-LABEL: gpu.func @kernel_cross_entropy_shard_0
// CHECK: arith.constant dense<0xFF800000> : vector<4xf32>
// CHECK-LABEL: gpu.func @kernel_cross_entropy_merge_0
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// PTX-LABEL: .entry kernel_cross_entropy_shard_0
func.func @parts(%logits: tensor<2x16x128xf32>, %targets: tensor<2x16xi32>, %offset: tensor<i32>, %all: tensor<2x16x4xf32>) -> (tensor<2x16x2xf32>, tensor<f32>) {
  %parts = rota.cross_entropy_shard %logits, %targets offset %offset of 250 : (tensor<2x16x128xf32>, tensor<2x16xi32>, tensor<i32>) -> tensor<2x16x2xf32>
  %sum, %weight, %lse = rota.cross_entropy_merge %all, %targets : (tensor<2x16x4xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return %parts, %sum : tensor<2x16x2xf32>, tensor<f32>
}

// -----

// Angles are read once for two heads; the pairs of a head before they are
// overwritten.
// CHECK-LABEL: gpu.func @kernel_rope_0
// CHECK-COUNT-2: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf32>
// CHECK-COUNT-2: vector.shuffle
// CHECK: %[[HEADS:.*]] = arith.constant 2 : i64
// CHECK: scf.for {{.*}} to %[[HEADS]]
// CHECK-COUNT-2: llvm.load {{.*}} -> vector<8xbf16>
// CHECK-COUNT-2: llvm.store {{.*}} vector<8xbf16>
// PTX-LABEL: .entry kernel_rope_0
// PTX: fma.rn.f32
func.func @rope(%x: tensor<2x16x6x64xbf16>, %table: tensor<16x32x2xf32>) -> tensor<2x16x6x64xbf16> {
  %y = rota.rope %x, %table : tensor<2x16x6x64xbf16>, tensor<16x32x2xf32>
  return %y : tensor<2x16x6x64xbf16>
}

// -----

// Rows are copied as they are: 16 bytes where they allow it, or less.
// CHECK-LABEL: gpu.func @kernel_embedding_0
// CHECK: scf.if
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-LABEL: gpu.func @kernel_embedding_1
// CHECK: llvm.load {{.*}} -> vector<1xbf16>
// PTX-LABEL: .entry kernel_embedding_0
// PTX: ld.global.v4.b32
// PTX-LABEL: .entry kernel_embedding_1
// PTX: ld.global.b16
func.func @embedding(%tokens: tensor<2x16xi32>, %table: tensor<256x64xbf16>, %odd: tensor<256x5xbf16>) -> (tensor<2x16x64xbf16>, tensor<2x16x5xbf16>) {
  %x = rota.embedding %tokens, %table : (tensor<2x16xi32>, tensor<256x64xbf16>) -> tensor<2x16x64xbf16>
  %y = rota.embedding %tokens, %odd : (tensor<2x16xi32>, tensor<256x5xbf16>) -> tensor<2x16x5xbf16>
  return %x, %y : tensor<2x16x64xbf16>, tensor<2x16x5xbf16>
}

// -----

// Two blocks sort the tokens of 256 rows each, then a block adds each row up.
// CHECK-LABEL: gpu.func @kernel_embedding_sort_0
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
// CHECK: nvvm.vote.sync ballot
// CHECK-LABEL: gpu.func @kernel_embedding_grad_0
// CHECK-SAME: known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 500, 1, 1>
// CHECK-COUNT-4: llvm.load {{.*}} -> vector<8xbf16>
// PTX-LABEL: .entry kernel_embedding_sort_0
// PTX: vote.sync.ballot.b32
// PTX-LABEL: .entry kernel_embedding_grad_0
func.func @embedding_grad(%tokens: tensor<2x16xi32>, %dy: tensor<2x16x64xbf16>) -> tensor<500x64xf32> {
  %dtable = rota.embedding_grad %tokens, %dy : (tensor<2x16xi32>, tensor<2x16x64xbf16>) -> tensor<500x64xf32>
  return %dtable : tensor<500x64xf32>
}
