// RUN: rota-opt %s --split-input-file --assign-remat="remat=minimal;0:full;chunk2:none" | FileCheck %s

// A chunk's own policy comes before that of its stage. Chunks 1 and 3 have one
// policy and one kind.
// CHECK: rota.stack @layers layers = 4 pattern [@a, @a_stage1, @a_chunk2, @a_stage1] {
// CHECK:   rota.layer @a {
// CHECK:   } {rota.remat = "full"}
// CHECK:   rota.layer @a_stage1 {
// CHECK:   } {rota.remat = "minimal"}
// CHECK:   rota.layer @a_chunk2 {
// CHECK:   } {rota.remat = "none"}
// CHECK: <rank 0 embed layers [@a 0]>,
// CHECK-NEXT: <rank 1 layers [@a_stage1 1]>,
// CHECK-NEXT: <rank 0 layers [@a_chunk2 2]>,
// CHECK-NEXT: <rank 1 layers [@a_stage1 3] loss>
rota.stack @layers layers = 4 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 2 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@a 1]>,
    <rank 0 layers [@a 2]>,
    <rank 1 layers [@a 3] loss>
  ]
}

// -----

// The chunk of unpipelined layers may have its own policy, too.
// CHECK: rota.stack @layers layers = 3 pattern [@a, @a_stage1, @a_chunk2] {
// CHECK: <rank 0 embed layers [@a 0]>,
// CHECK-NEXT: <rank 1 layers [@a_stage1 1]>,
// CHECK-NEXT: <rank all layers [@a_chunk2 2] loss>
rota.stack @layers layers = 3 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop unpipelined {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@a 1]>,
    <rank all layers [@a 2] loss>
  ]
}
