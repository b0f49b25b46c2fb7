// RUN: rota-opt %s --split-input-file --split-stages="stages=2 repeats=2 microbatches=4" | FileCheck %s
// RUN: rota-opt %s --split-input-file --split-stages="stages=2 layers-per-chunk=1 placement=v" | FileCheck %s --check-prefix=V
// RUN: rota-opt %s --split-input-file --split-stages | FileCheck %s --check-prefix=ONE
// RUN: rota-opt %s --split-input-file --split-stages="stages=1 repeats=2 pipeline-layers=2" --verify-diagnostics=only-expected 2>&1 | FileCheck %s --check-prefix=SUBSET
// RUN: rota-opt %s --split-input-file --split-stages="stages=2 pipeline-layers=2 microbatches=4" --verify-diagnostics=only-expected 2>&1 | FileCheck %s --check-prefix=UNPIPELINED
// RUN: rota-opt %s --split-input-file --split-stages="stages=2 pipeline-layers=2 microbatches=4" --remarks-filter=pipeline 2>&1 >%t | FileCheck %s --check-prefix=REMARK

// The documentation's example.
// CHECK: pipe.program stack @layers stages = 2 repeats = 2 microbatches = 4 placement loop {
// CHECK-NEXT: pipe.chunks [
// CHECK-NEXT:   <rank 0 embed layers [@identity 0]>,
// CHECK-NEXT:   <rank 1 layers [@identity 1]>,
// CHECK-NEXT:   <rank 0 layers [@identity 2]>,
// CHECK-NEXT:   <rank 1 layers [@identity 3] loss>
// CHECK-NEXT: ]

// The number of repeats follows from the layers of a chunk.
// V: pipe.program stack @layers stages = 2 repeats = 2 microbatches = 1 placement v {
// V: <rank 0 embed layers [@identity 0]>,
// V-NEXT: <rank 1 layers [@identity 1]>,
// V-NEXT: <rank 1 layers [@identity 2]>,
// V-NEXT: <rank 0 layers [@identity 3] loss>

// A single rank runs all layers as one chunk.
// ONE: stages = 1 repeats = 1 microbatches = 1
// ONE: <rank 0 embed layers [@identity 0, @identity 1, @identity 2, @identity 3] loss>

// Layers left out run in the last chunk of a single stage.
// SUBSET: stages = 1 repeats = 2
// SUBSET: <rank 0 embed layers [@identity 0]>,
// SUBSET-NEXT: <rank 0 layers [@identity 1, @identity 2, @identity 3] loss>

// On several stages, all have them.
// REMARK: remark: [Analysis] unpipelined-layers | Category:pipeline | Reason="layers 2 to 3 are left out of the pipeline and run on all stages, which divide the microbatches"
// UNPIPELINED: stages = 2 repeats = 1 microbatches = 4 placement loop unpipelined
// UNPIPELINED: <rank 0 embed layers [@identity 0]>,
// UNPIPELINED-NEXT: <rank 1 layers [@identity 1]>,
// UNPIPELINED-NEXT: <rank all layers [@identity 2, @identity 3] loss>
rota.stack @layers layers = 4 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}

// -----

// Kinds alternate as the pattern says, also where a chunk begins in its middle.
// CHECK: <rank 0 embed layers [@a 0, @b 1, @b 2]>,
// CHECK-NEXT: <rank 1 layers [@a 3, @b 4, @b 5]>,
// CHECK-NEXT: <rank 0 layers [@a 6, @b 7, @b 8]>,
// CHECK-NEXT: <rank 1 layers [@a 9, @b 10, @b 11] loss>
// V: repeats = 6
// ONE: <rank 0 embed layers [@a 0, @b 1, @b 2, @a 3, {{.*}}, @b 11] loss>
// SUBSET: <rank 0 layers [@b 1, @b 2,
rota.stack @layers layers = 12 pattern [@a, @b, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
