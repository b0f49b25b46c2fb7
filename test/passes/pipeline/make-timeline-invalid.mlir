// Schedules that do not exist for the program, and files that are none.
// RUN: split-file %s %t
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=circular" 2>&1 | FileCheck %s --check-prefix=CASE0
// CASE0: error: expected microbatches to be a multiple of stages for the circular schedule, got 5 and 3
// RUN: not rota-opt %t/deep.mlir --make-timeline="schedule=1f1b" 2>&1 | FileCheck %s --check-prefix=CASE1
// CASE1: error: the 1f1b schedule needs 1 repeat, got 2 repeats on 2 stages (interleaved-1f1b takes several)
// RUN: not rota-opt %t/deep.mlir --make-timeline="schedule=circular delay=2" 2>&1 | FileCheck %s --check-prefix=CASE2
// CASE2: error: expected at least 2 * stages microbatches for delayed forwarding, got 2 microbatches and 2 stages
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=interleaved-1f1b" 2>&1 | FileCheck %s --check-prefix=CASE3
// CASE3: error: expected microbatches to be a multiple of stages for the interleaved-1f1b schedule, got 5 and 3
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=fast" 2>&1 | FileCheck %s --check-prefix=CASE4
// CASE4: error: unknown schedule 'fast': expected one of gpipe, circular, 1f1b, interleaved-1f1b, {{.*}}, or a file that ends in .csv
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=gpipe delay=9999999999" 2>&1 | FileCheck %s --check-prefix=CASE5
// CASE5: error: 'delay': expected 1 or 2, got 9999999999
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=%t/none.csv" 2>&1 | FileCheck %s --check-prefix=CASE6
// CASE6: error: 'schedule': cannot read '{{.*}}none.csv': {{[Nn]o such file or directory}}
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=%t/bad.csv" 2>&1 | FileCheck %s --check-prefix=CASE7
// CASE7: error: {{.*}}bad.csv: line 2, column 6: expected an action such as 0F0 or 2SEND_B1, got 'nonsense'
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=%t/two.csv" 2>&1 | FileCheck %s --check-prefix=CASE8
// CASE8: error: {{.*}}two.csv: expected 3 rows, one for each stage, got 2
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=%t/two.csv split-backward" 2>&1 | FileCheck %s --check-prefix=CASE9
// CASE9: error: 'schedule': expected a named schedule with 'split-backward', got '{{.*}}two.csv'
// RUN: not rota-opt %t/deep.mlir --make-timeline="schedule=auto activations=0.5" 2>&1 | FileCheck %s --check-prefix=CASE10
// CASE10: error: 'activations': expected 0 or a number from 1 to 1048576, got 0.5
// RUN: not rota-opt %t/deep.mlir --make-timeline="schedule=gpipe activations=1" 2>&1 | FileCheck %s --check-prefix=CASE11
// CASE11: error: expected a schedule with at most 1 activations on each rank, got 2 on rank 0, which holds most
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=%t/held.csv activations=4" 2>&1 | FileCheck %s --check-prefix=CASE12
// CASE12: error: 'schedule': {{.*}}held.csv: expected a schedule with at most 4 activations on each rank, got 5 on rank 0, which holds most
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=%t/two.csv pairs" 2>&1 | FileCheck %s --check-prefix=CASE14
// CASE14: error: 'schedule': expected a named schedule with 'pairs', got '{{.*}}two.csv', which keeps its own
// RUN: not rota-opt %t/deep.mlir --make-timeline="schedule=gpipe pairs" 2>&1 | FileCheck %s --check-prefix=CASE15
// CASE15: error: expected a schedule with pairs (interleaved-overlap, dualpipev, auto), got 'gpipe'
// RUN: not rota-opt %t/three.mlir --make-timeline="schedule=auto activations=-1" 2>&1 | FileCheck %s --check-prefix=CASE13
// CASE13: error: 'activations': expected 0 or a number from 1 to 1048576, got -1
// RUN: not rota-opt %t/three.mlir --make-timeline=schedule=gpipe --make-timeline=schedule=gpipe 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: the program has a timeline already
// RUN: not rota-opt %t/none.mlir --make-timeline 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected one 'pipe.program' in the module, got 0
//--- three.mlir
rota.stack @layers layers = 3 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 3 repeats = 1 microbatches = 5 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1]>,
    <rank 2 layers [@identity 2] loss>
  ]
}
//--- deep.mlir
rota.stack @layers layers = 4 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 2 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1]>,
    <rank 0 layers [@identity 2]>,
    <rank 1 layers [@identity 3] loss>
  ]
}
//--- none.mlir
module {}
//--- bad.csv
0F0,0B0
1F0, nonsense
//--- two.csv
0F0,0B0
1F0,1B0
//--- held.csv
0F0,0F1,0F2,0F3,0F4,0B0,0B1,0B2,0B3,0B4
1F0,1F1,1F2,1F3,1F4,1B0,1B1,1B2,1B3,1B4
2F0,2F1,2F2,2F3,2F4,2B0,2B1,2B2,2B3,2B4
