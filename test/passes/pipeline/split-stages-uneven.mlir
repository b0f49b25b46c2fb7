// RUN: rota-opt %s --split-stages="stages=4" --verify-diagnostics | FileCheck %s

// Stages that do not divide the layers: the ends, which embed and have the loss,
// get the smaller chunks, the last first.
// CHECK: stages = 4 repeats = 1
// CHECK: <rank 0 embed layers [@identity 0, @identity 1]>,
// CHECK-NEXT: <rank 1 layers [@identity 2, @identity 3, @identity 4]>,
// CHECK-NEXT: <rank 2 layers [@identity 5, @identity 6, @identity 7]>,
// CHECK-NEXT: <rank 3 layers [@identity 8, @identity 9] loss>

// So do chunks.
// RUN: rota-opt %s --split-stages="stages=3 repeats=2" 2>%t | FileCheck %s --check-prefix=REPEATS
// RUN: FileCheck %s --check-prefix=SIZES --input-file=%t
// SIZES: warning: 10 layers do not divide into 6 chunks: 4 have 2 and 2 have 1
// REPEATS: stages = 3 repeats = 2
// REPEATS: <rank 0 embed layers [@identity 0]>,
// REPEATS-NEXT: <rank 1 layers [@identity 1, @identity 2]>,
// REPEATS: <rank 2 layers [@identity 9] loss>

// Numbers of stages, of stages with two chunks each, and of chunks.
// RUN: rota-opt %s --split-stages="stages=3 layers-per-stage=5,4,1" | FileCheck %s --check-prefix=STAGES
// STAGES: <rank 0 embed layers [@identity 0, @identity 1, @identity 2, @identity 3, @identity 4]>,
// STAGES-NEXT: <rank 1 layers [@identity 5, @identity 6, @identity 7, @identity 8]>,
// STAGES-NEXT: <rank 2 layers [@identity 9] loss>
// RUN: rota-opt %s --split-stages="stages=2 repeats=2 layers-per-stage=7,3" | FileCheck %s --check-prefix=ROWS
// ROWS: <rank 0 embed layers [@identity 0, @identity 1, @identity 2, @identity 3]>,
// ROWS-NEXT: <rank 1 layers [@identity 4, @identity 5]>,
// ROWS-NEXT: <rank 0 layers [@identity 6, @identity 7, @identity 8]>,
// ROWS-NEXT: <rank 1 layers [@identity 9] loss>
// RUN: rota-opt %s --split-stages="stages=2 repeats=2 layers-per-stage=1,2,3,4" | FileCheck %s --check-prefix=CHUNKS
// CHUNKS: <rank 0 embed layers [@identity 0]>,
// CHUNKS-NEXT: <rank 1 layers [@identity 1, @identity 2]>,
// CHUNKS-NEXT: <rank 0 layers [@identity 3, @identity 4, @identity 5]>,

// The same as an option of the pipeline.
// RUN: rota-opt %s --schedule-layers="stages=3 layers-per-stage=5,4,1 microbatches=3" | FileCheck %s --check-prefix=STAGES

// expected-warning @+1 {{10 layers do not divide into 4 chunks: 2 have 3 and 2 have 2}}
rota.stack @layers layers = 10 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
