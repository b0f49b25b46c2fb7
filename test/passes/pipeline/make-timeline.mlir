// RUN: split-file %s %t
// RUN: rota-opt %t/two.mlir --make-timeline=schedule=1f1b | FileCheck %s
// RUN: rota-opt %t/two.mlir --make-timeline=schedule=gpipe | FileCheck %s --check-prefix=GPIPE
// RUN: rota-opt %t/two.mlir --make-timeline="schedule=1f1b split-backward" | FileCheck %s --check-prefix=SPLIT
// RUN: rota-opt %t/two.mlir --make-timeline=schedule=%t/mine.csv | FileCheck %s --check-prefix=FILE
// RUN: rota-opt %t/four.mlir --make-timeline | FileCheck %s --check-prefix=CIRCULAR
// RUN: rota-opt %t/four.mlir --make-timeline="schedule=circular delay=2" | FileCheck %s --check-prefix=DELAY
// RUN: rota-opt %t/four.mlir --make-timeline=schedule=interleaved-1f1b | FileCheck %s --check-prefix=INTERLEAVED
// RUN: rota-opt %t/four.mlir --make-timeline="schedule=interleaved-overlap pairs" | FileCheck %s --check-prefix=PAIRS
// RUN: rota-opt %t/four.mlir --make-timeline="schedule=interleaved-overlap pairs" --verify-timeline --insert-communication --verify-timeline=communication | FileCheck %s --check-prefix=SENDS

// The documentation's example.
// CHECK: pipe.timeline "1f1b" delay = 1 rows [
// CHECK-NEXT: "0F0,0F1,0B0,0F2,0B1,0B2",
// CHECK-NEXT: "1F0,1B0,1F1,1B1,1F2,1B2"
// CHECK-NEXT: ]

// GPIPE: pipe.timeline "gpipe" delay = 1 rows [
// GPIPE-NEXT: "0F0,0F1,0F2,0B0,0B1,0B2",
// GPIPE-NEXT: "1F0,1F1,1F2,1B0,1B1,1B2"

// SPLIT: pipe.timeline "1f1b" delay = 1 rows [
// SPLIT-NEXT: "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2",
// SPLIT-NEXT: "1F0,1I0,1W0,1F1,1I1,1W1,1F2,1I2,1W2"

// Idle cells of a file are no actions.
// FILE: pipe.timeline "{{.*}}mine.csv" delay = 1 rows [
// FILE-NEXT: "0F0,0F1,0F2,0B0,0B1,0B2",
// FILE-NEXT: "1F0,1B0,1F1,1B1,1F2,1B2"

// CIRCULAR: pipe.timeline "circular" delay = 1 rows [
// CIRCULAR-NEXT: "0F0,0F1,0F2,0F3,2F0,2F1,2F2,2F3,2B0,2B1,2B2,2B3,0B0,0B1,0B2,0B3",
// CIRCULAR-NEXT: "1F0,1F1,1F2,1F3,3F0,3F1,3F2,3F3,3B0,3B1,3B2,3B3,1B0,1B1,1B2,1B3"

// The order is the same; what differs is when messages leave.
// DELAY: pipe.timeline "circular" delay = 2 rows [
// DELAY-NEXT: "0F0,0F1,0F2,0F3,2F0,2F1,2F2,2F3,2B0,2B1,2B2,2B3,0B0,0B1,0B2,0B3",

// INTERLEAVED: pipe.timeline "interleaved-1f1b" delay = 1 rows [
// INTERLEAVED-NEXT: "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3",
// INTERLEAVED-NEXT: "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3"

// PAIRS: pipe.timeline "interleaved-overlap" delay = 1 rows [
// PAIRS-NEXT: "0F0,0F1,2F0,2F1,0F2,0F3,(2B0;2F2)OVERLAP_F_B,(2B1;2F3)OVERLAP_F_B,0B0,0B1,2B2,2B3,0B2,0B3",
// PAIRS-NEXT: "1F0,1F1,3F0,3F1,(3B0;1F2)OVERLAP_F_B,(3B1;1F3)OVERLAP_F_B,(1B0;3F2)OVERLAP_F_B,(1B1;3F3)OVERLAP_F_B,3B2,3B3,1B2,1B3"

// What the halves need stands before both, what they send behind both.
// SENDS: 1RECV_F2,1RECV_F3,(3B0;1F2)OVERLAP_F_B,1SEND_F2,3SEND_B0,

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
//--- four.mlir
rota.stack @layers layers = 4 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 2 microbatches = 4 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1]>,
    <rank 0 layers [@identity 2]>,
    <rank 1 layers [@identity 3] loss>
  ]
}
//--- mine.csv
0F0,0F1,0F2,0B0,,0B1,,0B2
,1F0,1B0,1F1,1B1,1F2,1B2
