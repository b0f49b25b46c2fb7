// RUN: rota-opt %s --split-input-file --assign-remat="remat=1:full" | FileCheck %s
// RUN: rota-opt %s --split-input-file --assign-remat="remat=minimal;0:full" | FileCheck %s --check-prefix=OTHERS

// The doc example.
// CHECK: rota.stack @layers layers = 4 pattern [@a, @a_stage1] {
// CHECK:   rota.layer @a {
// CHECK:   } {rota.remat = "none"}
// CHECK:   rota.layer @a_stage1 {
// CHECK:   } {rota.remat = "full"}
// CHECK: <rank 0 embed layers [@a 0]>,
// CHECK-NEXT: <rank 1 layers [@a_stage1 1]>,
// CHECK-NEXT: <rank 0 layers [@a 2]>,
// CHECK-NEXT: <rank 1 layers [@a_stage1 3] loss>
// OTHERS: rota.stack @layers layers = 4 pattern [@a, @a_stage1] {
// OTHERS:   } {rota.remat = "full"}
// OTHERS:   } {rota.remat = "minimal"}
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

// Two layers a chunk, and stages 0 and 2 alike: the four layers are those of
// stages 0, 0, 1, 1.
// CHECK: rota.stack @layers layers = 4 pattern [@a, @a, @a_stage1, @a_stage1] {
rota.stack @layers layers = 4 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0, @a 1]>,
    <rank 1 layers [@a 2, @a 3] loss>
  ]
}

// -----

// Two kinds in turn on stages of one layer: each stage has one of them.
// CHECK: rota.stack @layers layers = 16 pattern [@a, @b] {
// CHECK:   rota.layer @a {
// CHECK:   } {rota.remat = "none"}
// CHECK:   rota.layer @b {
// CHECK:   } {rota.remat = "full"}
rota.stack @layers layers = 16 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 8 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1]>,
    <rank 0 layers [@a 2]>,
    <rank 1 layers [@b 3]>,
    <rank 0 layers [@a 4]>,
    <rank 1 layers [@b 5]>,
    <rank 0 layers [@a 6]>,
    <rank 1 layers [@b 7]>,
    <rank 0 layers [@a 8]>,
    <rank 1 layers [@b 9]>,
    <rank 0 layers [@a 10]>,
    <rank 1 layers [@b 11]>,
    <rank 0 layers [@a 12]>,
    <rank 1 layers [@b 13]>,
    <rank 0 layers [@a 14]>,
    <rank 1 layers [@b 15] loss>
  ]
}

// -----

// On stages of two layers each kind is on all, and so there twice; the pattern
// is the shortest that repeats.
// CHECK: rota.stack @layers layers = 12 pattern [@a, @b, @a_stage1, @b_stage1, @a, @b] {
rota.stack @layers layers = 12 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
pipe.program stack @layers stages = 3 repeats = 2 microbatches = 3 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0, @b 1]>,
    <rank 1 layers [@a 2, @b 3]>,
    <rank 2 layers [@a 4, @b 5]>,
    <rank 0 layers [@a 6, @b 7]>,
    <rank 1 layers [@a 8, @b 9]>,
    <rank 2 layers [@a 10, @b 11] loss>
  ]
}

// -----

// Chunks of two sizes in a V, and a layer that all stages run.
// CHECK: rota.stack @layers layers = 7 pattern [@a, @a_stage1, @a_stage1, @a_stage1, @a_stage1, @a] {
// OTHERS: rota.stack @layers layers = 7 pattern [@a, @a_stage1, @a_stage1, @a_stage1, @a_stage1] {
// OTHERS: <rank all layers [@a_stage1 6] loss>
rota.stack @layers layers = 7 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 2 microbatches = 2 placement v unpipelined {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@a 1, @a 2]>,
    <rank 1 layers [@a 3, @a 4]>,
    <rank 0 layers [@a 5]>,
    <rank all layers [@a 6] loss>
  ]
}
