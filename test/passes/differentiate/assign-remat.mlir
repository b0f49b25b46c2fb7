// RUN: rota-opt %s --split-input-file --assign-remat="policies=1:full stages=2" | FileCheck %s
// RUN: rota-opt %s --split-input-file --assign-remat="policies=minimal;0:full;2:full stages=3 layers-per-chunk=2" | FileCheck %s --check-prefix=LONG

// The doc example. With two layers a chunk and stages 0 and 2 alike: the four
// layers are those of stages 0, 0, 1, 1.
// CHECK: rota.stack @layers layers = 4 pattern [@a, @a_stage1] {
// CHECK:   rota.layer @a {
// CHECK:   } {rota.remat = "none"}
// CHECK:   rota.layer @a_stage1 {
// CHECK:   } {rota.remat = "full"}
// LONG: rota.stack @layers layers = 4 pattern [@a, @a, @a_stage1, @a_stage1] {
// LONG:   rota.layer @a {
// LONG:   } {rota.remat = "full"}
// LONG:   rota.layer @a_stage1 {
// LONG:   } {rota.remat = "minimal"}
rota.stack @layers layers = 4 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}

// -----

// Two kinds in turn on stages of one layer: each stage has one of them. On
// stages of two layers each kind is on all, and so there twice; the pattern ends
// where it repeats.
// CHECK: rota.stack @layers layers = 16 pattern [@a, @b] {
// CHECK:   rota.layer @a {
// CHECK:   } {rota.remat = "none"}
// CHECK:   rota.layer @b {
// CHECK:   } {rota.remat = "full"}
// LONG: rota.stack @layers layers = 16 pattern [@a, @b, @a_stage1, @b_stage1, @a, @b] {
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
