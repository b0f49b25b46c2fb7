// Files that add gradients in another order than that of ascending
// microbatches are remarked; those that do not, and named schedules, are not.

// RUN: split-file %s %t
// RUN: rota-opt %t/two.mlir --make-timeline=schedule=%t/descending.csv --remarks-filter=pipeline 2>&1 >%t/out | FileCheck %s
// RUN: rota-opt %t/two.mlir --make-timeline=schedule=%t/input.csv --remarks-filter=pipeline 2>&1 >%t/out | FileCheck %s --check-prefix=INPUT
// RUN: rota-opt %t/two.mlir --make-timeline=schedule=%t/ascending.csv --remarks-filter=pipeline 2>&1 >%t/out | count 0
// RUN: rota-opt %t/two.mlir --make-timeline=schedule=1f1b --remarks-filter=pipeline 2>&1 >%t/out | count 0

// CHECK: remark: [Analysis] gradient-order | Category:pipeline | Actions="B of chunks 0, 1", Reason="gradients are added in another order than that of ascending microbatches, so their bits differ from those of other schedules", Schedule={{.*}}descending.csv
// INPUT: remark: [Analysis] gradient-order | {{.*}}Actions="I of chunk 0 (the embedding)"

//--- two.mlir
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 3 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1] loss>
  ]
}
//--- descending.csv
0F0,0F1,0F2,0B2,0B1,0B0
1F0,1F1,1F2,1B2,1B1,1B0
//--- input.csv
0F0,0F1,0F2,0I2,0I1,0I0,0W0,0W1,0W2
1F0,1F1,1F2,1I2,1I1,1I0,1W0,1W1,1W2
//--- ascending.csv
0F2,0F1,0F0,0B0,0B1,0B2
1F0,1F1,1F2,1B0,1B1,1B2
