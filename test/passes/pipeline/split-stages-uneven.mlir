// RUN: rota-opt %s --split-stages="stages=4" --verify-diagnostics | FileCheck %s

// Stages that do not divide the layers: the ends, which embed and have the loss,
// get the smaller chunks, the last first.
// CHECK: stages = 4 repeats = 1 layers_per_chunk = 3
// CHECK: <rank 0 embed layers [@identity 0, @identity 1]>,
// CHECK-NEXT: <rank 1 layers [@identity 2, @identity 3, @identity 4]>,
// CHECK-NEXT: <rank 2 layers [@identity 5, @identity 6, @identity 7]>,
// CHECK-NEXT: <rank 3 layers [@identity 8, @identity 9] loss>
// expected-warning @+1 {{10 layers do not divide into 4 stages: 2 have 3 layers and 2 have 2}}
rota.stack @layers layers = 10 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
