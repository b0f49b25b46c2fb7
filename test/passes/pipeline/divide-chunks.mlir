// RUN: rota-opt %s --split-input-file --divide-chunks=mode=per-layer --verify-timeline | FileCheck %s
// RUN: rota-opt %s --split-input-file --divide-chunks=mode=per-repeat | FileCheck %s --check-prefix=KEPT
// RUN: rota-opt %s --split-input-file --complete-timeline=mode=per-layer | FileCheck %s --check-prefix=WHOLE

// The documentation's example.
// CHECK: pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop parts = 3 {
// CHECK-NEXT: pipe.chunks [
// CHECK-NEXT: <rank 0 embed layers []>,
// CHECK-NEXT: <rank 0 layers [@identity 0]>,
// CHECK-NEXT: <rank 0 layers [@identity 1]>,
// CHECK-NEXT: <rank 1 layers [@identity 2]>,
// CHECK-NEXT: <rank 1 layers [@identity 3]>,
// CHECK-NEXT: <rank 1 layers [] loss>
// CHECK: pipe.timeline "1f1b" delay = 1 rows [
// CHECK-NEXT: "0F0,1F0,2F0,0F1,1F1,2F1,2B0,1B0,0B0,2B1,1B1,0B1",
// CHECK-NEXT: "3F0,4F0,5F0,5B0,4B0,3B0,3F1,4F1,5F1,5B1,4B1,3B1"
// KEPT: microbatches = 2 placement loop {
// KEPT: "0F0,0F1,0B0,0B1",
// The next layer is gathered while one computes, and the gradient of the one before is reduced.
// WHOLE: window = 2 rows [
// WHOLE: 3UNSHARD,4UNSHARD,3RECV_F0,3F0,3RESHARD,5UNSHARD,4F0,4RESHARD,4UNSHARD,5F0,
// WHOLE-SAME: 5B0,5RESHARD,3UNSHARD,5REDUCE_GRAD,4B0,4RESHARD,{{.*}}4REDUCE_GRAD,3B0,
rota.stack @layers layers = 4 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0, @identity 1]>,
    <rank 1 layers [@identity 2, @identity 3] loss>
  ]
  pipe.timeline "1f1b" delay = 1 rows [
    "0F0,0F1,0B0,0B1",
    "1F0,1B0,1F1,1B1"
  ]
}

// -----

// A chunk of one layer, with neither embedding nor loss, has no parts.
// CHECK: placement loop {
// CHECK: "1F0,1B0"
rota.stack @layers layers = 5 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 3 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0, @identity 1]>,
    <rank 1 layers [@identity 2]>,
    <rank 2 layers [@identity 3, @identity 4] loss>
  ]
  pipe.timeline "1f1b" delay = 1 rows [
    "0F0,0B0",
    "1F0,1B0",
    "2F0,2B0"
  ]
}
