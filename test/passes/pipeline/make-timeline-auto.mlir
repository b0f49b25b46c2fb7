// The schedule that is searched. The tests of passes/pipeline/search check what
// it finds; here, the costs that it takes from the model, and what the pass
// writes. All timelines pass verify-timeline, at the end of schedule-layers.
// RUN: split-file %s %t

// A long layer on rank 0 makes its chunk three times as long: 4 microbatches of
// 3 * 4 products, of 2 * 512^3 operations, fill the time of rank 0. A message
// takes a fifth of a product, and all of them are hidden.
// RUN: rota-opt %t/uneven.mlir --schedule-layers="stages=2 repeats=2 microbatches=4 schedule=auto" --remarks-filter=pipeline 2>&1 | FileCheck %s --check-prefix=UNEVEN
// UNEVEN: remark: [Analysis] searched-timeline | Category:pipeline | Backwards=whole, BestNamed={{[a-z0-9-]+}}, BestNamedMakespan=1.310462e+10, LowerBound=1.288490e+10, Makespan=1.288490e+10, Placement=loop, Repeats=2, Rules={{[0-9]+}}
// UNEVEN: placement loop
// UNEVEN: pipe.timeline "auto" delay = 1 rows [
// UNEVEN-NEXT: "0F0,{{[0-9FB,]+}}B3",

// Layers without operations cost one unit each: 5 microbatches fill the last
// rank behind 2 forwards of the others.
// RUN: rota-opt %t/six.mlir --schedule-layers="stages=3 repeats=1 microbatches=5 schedule=auto split-backward" --remarks-filter=pipeline 2>&1 | FileCheck %s --check-prefix=UNIT
// UNIT: LowerBound=1.700000e+01, Makespan=1.700000e+01, Placement=loop
// UNIT: "2F0,2I0,

// Two chunks on each rank in little memory: a V is shorter, and its chunks get
// its ranks, but only where any placement will do.
// RUN: rota-opt %t/six.mlir --schedule-layers="stages=3 repeats=2 microbatches=12 schedule=auto split-backward activations=2 any-placement" --remarks-filter=pipeline 2>&1 | FileCheck %s --check-prefix=V
// V: searched-timeline {{.*}} Placement=v
// V: pipe.program stack @layers stages = 3 repeats = 2 microbatches = 12 placement v {
// V: <rank 2 layers [@identity 2]>,
// V-NEXT: <rank 2 layers [@identity 3]>,
// V-NEXT: <rank 1 layers [@identity 4]>,
// V-NEXT: <rank 0 layers [@identity 5] loss>
// RUN: rota-opt %t/six.mlir --schedule-layers="stages=3 repeats=2 microbatches=12 schedule=auto split-backward activations=2" | FileCheck %s --check-prefix=LOOP
// LOOP: microbatches = 12 placement loop {
// LOOP: <rank 2 layers [@identity 2]>,
// LOOP-NEXT: <rank 0 layers [@identity 3]>,

// Two chunks on each rank, and split backwards, are shorter where both are open.
// Six layers are too few for two chunks on four ranks.
// RUN: rota-opt %t/six.mlir --schedule-layers="stages=3 microbatches=6 schedule=auto any-repeats any-split any-placement" --remarks-filter=pipeline 2>&1 | FileCheck %s --check-prefix=OPEN
// OPEN: searched-timeline {{.*}} Backwards=split, {{.*}}, Repeats=2,
// OPEN: pipe.program stack @layers stages = 3 repeats = 2 microbatches = 6
// OPEN: <rank 0 embed layers [@identity 0]>,
// OPEN: layers [@identity 5] loss>
// OPEN: "{{.*}}I{{.*}}",
// RUN: rota-opt %t/six.mlir --schedule-layers="stages=4 microbatches=8 schedule=auto any-repeats" --remarks-filter=pipeline 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: searched-timeline {{.*}} Backwards=whole, {{.*}}, Repeats=1,

// Layers outside of the pipeline.
// RUN: rota-opt %t/six.mlir --schedule-layers="stages=3 repeats=1 microbatches=3 pipeline-layers=3 schedule=auto activations=3" | FileCheck %s --check-prefix=UNPIPELINED
// UNPIPELINED: placement loop unpipelined {
// UNPIPELINED: "0F0,{{.*}}3F0,3B0,{{.*}}0B2",

//--- uneven.mlir
rota.stack @layers layers = 4 pattern [@long, @short, @short, @short] {
  rota.layer @long {
    func.func @forward(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
      %y = rota.einsum "ik,kj->ij" %x, %x : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
      %z = rota.einsum "ik,kj->ij" %y, %x : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
      %u = rota.einsum "ik,kj->ij" %z, %x : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
      return %u : tensor<512x512xf32>
    }
  }
  rota.layer @short {
    func.func @forward(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
      %y = rota.einsum "ik,kj->ij" %x, %x : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
      return %y : tensor<512x512xf32>
    }
  }
}
//--- six.mlir
rota.stack @layers layers = 6 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
