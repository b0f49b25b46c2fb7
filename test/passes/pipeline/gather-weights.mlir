// RUN: rota-opt %s --split-input-file --gather-weights=mode=per-repeat | FileCheck %s
// RUN: rota-opt %s --split-input-file --gather-weights=mode=once | FileCheck %s --check-prefix=ONCE
// RUN: rota-opt %s --split-input-file --gather-weights="mode=per-iteration window=1" | FileCheck %s --check-prefix=EACH
// RUN: rota-opt %s --split-input-file --gather-weights="mode=per-repeat window=1 prefetch=0" --verify-timeline | FileCheck %s --check-prefix=SERIAL

// The documentation's example.
// CHECK: pipe.timeline "gpipe" delay = 1 window = 2 rows [
// CHECK-NEXT: "0UNSHARD,1UNSHARD,0F0,0F1,0RESHARD,2UNSHARD,1F0,1F1,2F0,2F1,2B0,2B1,2RESHARD,0UNSHARD,2REDUCE_GRAD,1B0,1B1,1RESHARD,1REDUCE_GRAD,0B0,0B1,0RESHARD,0REDUCE_GRAD"
// ONCE: pipe.timeline "gpipe" delay = 1 rows [
// ONCE-NEXT: "0UNSHARD,1UNSHARD,2UNSHARD,0F0,0F1,1F0,1F1,2F0,2F1,2B0,2B1,2RESHARD,2REDUCE_GRAD,1B0,1B1,1RESHARD,1REDUCE_GRAD,0B0,0B1,0RESHARD,0REDUCE_GRAD"
// EACH: pipe.timeline "gpipe" delay = 1 window = 1 rows [
// EACH-NEXT: "0UNSHARD,0F0,0RESHARD,0UNSHARD,0F1,0RESHARD,1UNSHARD,1F0,
// SERIAL: pipe.timeline "gpipe" delay = 1 window = 1 rows [
// SERIAL-NEXT: "0UNSHARD,0F0,0F1,0RESHARD,1UNSHARD,1F0,1F1,1RESHARD,2UNSHARD,2F0,
rota.stack @layers layers = 3 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 3 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 0 layers [@identity 1]>,
    <rank 0 layers [@identity 2] loss>
  ]
  pipe.timeline "gpipe" delay = 1 rows [
    "0F0,0F1,1F0,1F1,2F0,2F1,2B0,2B1,1B0,1B1,0B0,0B1"
  ]
}

// -----

// Three ranks, not square: each row has windows of its own chunks.
// CHECK: "0UNSHARD,3UNSHARD,0F0,3F0,3B0,3RESHARD,3REDUCE_GRAD,0B0,0RESHARD,0REDUCE_GRAD",
// CHECK-NEXT: "1UNSHARD,4UNSHARD,1F0,4F0,4B0,4RESHARD,4REDUCE_GRAD,1B0,1RESHARD,1REDUCE_GRAD",
// CHECK-NEXT: "2UNSHARD,5UNSHARD,2F0,5F0,5B0,5RESHARD,5REDUCE_GRAD,2B0,2RESHARD,2REDUCE_GRAD"
rota.stack @layers layers = 6 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 3 repeats = 2 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1]>,
    <rank 2 layers [@identity 2]>,
    <rank 0 layers [@identity 3]>,
    <rank 1 layers [@identity 4]>,
    <rank 2 layers [@identity 5] loss>
  ]
  pipe.timeline "t" delay = 1 rows [
    "0F0,3F0,3B0,0B0",
    "1F0,4F0,4B0,1B0",
    "2F0,5F0,5B0,2B0"
  ]
}

// -----

// Windows that are there stay; reductions are added.
// CHECK: pipe.timeline "t" delay = 1 rows [
// CHECK-NEXT: "0UNSHARD,0F0,0RESHARD,1UNSHARD,1F0,1I0,1W0,1REDUCE_GRAD,1RESHARD,0UNSHARD,0I0,0W0,0REDUCE_GRAD,0RESHARD"
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 2 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 0 layers [@identity 1] loss>
  ]
  pipe.timeline "t" delay = 1 rows [
    "0UNSHARD,0F0,0RESHARD,1UNSHARD,1F0,1I0,1W0,1RESHARD,0UNSHARD,0I0,0W0,0RESHARD"
  ]
}

// -----

// Without a mode, only where ranks hold parts of a parameter, by whatever axis.
// RUN: rota-opt %s --split-input-file --gather-weights | FileCheck %s --check-prefix=AUTO
// AUTO: "0F0,0F1,1F0,1F1,2F0,
// AUTO: rota.mesh <data = 2>
// AUTO: "0UNSHARD,1UNSHARD,0F0,1F0,1B0,1RESHARD,1REDUCE_GRAD,0B0,0RESHARD,0REDUCE_GRAD"
rota.mesh <data = 2>
rota.param @table : tensor<4x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 8] compute <[[], []] unreduced [data]> storage <[[], [data]]> optimizer <[[], [data]]>>
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 2 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 0 layers [@identity 1] loss>
  ]
  pipe.timeline "gpipe" delay = 1 rows [
    "0F0,1F0,1B0,0B0"
  ]
}
