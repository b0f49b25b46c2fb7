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

// A single stage waits for no other: no warning.
// RUN: rota-opt %s --split-stages="stages=1 repeats=4" 2>&1 | FileCheck %s --check-prefix=SINGLE --implicit-check-not='warning: 10 layers'
// SINGLE: <rank 0 embed layers [@identity 0, @identity 1]>,

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

// The embedding and the loss alone: where 0 is given, of stages with several
// chunks in the chunk that has the end, and where they count as a layer each.
// RUN: rota-opt %s --split-stages="stages=4 layers-per-stage=0,6,4,0" | FileCheck %s --check-prefix=ALONE
// ALONE: <rank 0 embed layers []>,
// ALONE-NEXT: <rank 1 layers [@identity 0, @identity 1, @identity 2, @identity 3, @identity 4, @identity 5]>,
// ALONE-NEXT: <rank 2 layers [@identity 6, @identity 7, @identity 8, @identity 9]>,
// ALONE-NEXT: <rank 3 layers [] loss>
// RUN: rota-opt %s --split-stages="stages=3 repeats=2 layers-per-stage=1,8,1" | FileCheck %s --check-prefix=ENDS
// RUN: rota-opt %s --split-stages="stages=3 repeats=2 placement=v layers-per-stage=0,8,2" | FileCheck %s --check-prefix=V
// ENDS: <rank 0 embed layers []>,
// ENDS-NEXT: <rank 1 layers [@identity 0, @identity 1, @identity 2, @identity 3]>,
// ENDS-NEXT: <rank 2 layers [@identity 4]>,
// ENDS-NEXT: <rank 0 layers [@identity 5]>,
// ENDS-NEXT: <rank 1 layers [@identity 6, @identity 7, @identity 8, @identity 9]>,
// ENDS-NEXT: <rank 2 layers [] loss>
// V: <rank 0 embed layers []>,
// V-NEXT: <rank 1 layers [@identity 0,
// V-NEXT: <rank 2 layers [@identity 4]>,
// V-NEXT: <rank 2 layers [@identity 5]>,
// V-NEXT: <rank 1 layers [@identity 6,
// V-NEXT: <rank 0 layers [] loss>
// RUN: rota-opt %s --split-stages="stages=4 repeats=3" 2>%t | FileCheck %s --check-prefix=COUNTED
// RUN: FileCheck %s --check-prefix=NONE --input-file=%t
// NONE: warning: 10 layers do not divide into 12 chunks: 10 have 1 and 2 have none
// COUNTED: <rank 0 embed layers []>,
// COUNTED-NEXT: <rank 1 layers [@identity 0]>,
// COUNTED: <rank 2 layers [@identity 9]>,
// COUNTED-NEXT: <rank 3 layers [] loss>

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
