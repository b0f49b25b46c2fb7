// RUN: rota-opt %s --split-input-file --insert-communication | FileCheck %s

// The documentation's example.
// CHECK: pipe.timeline "gpipe" delay = 1 rows [
// CHECK-NEXT: "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1",
// CHECK-NEXT: "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1"
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1] loss>
  ]
  pipe.timeline "gpipe" delay = 1 rows [
    "0F0,0F1,0B0,0B1",
    "1F0,1F1,1B0,1B1"
  ]
}

// -----

// Delayed, a message leaves after the next action of its rank.
// CHECK: pipe.timeline "circular" delay = 2 rows [
// CHECK-NEXT: "0F0,0F1,0SEND_F0,0F2,0SEND_F1,0F3,0SEND_F2,0SEND_F3,
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 4 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1] loss>
  ]
  pipe.timeline "circular" delay = 2 rows [
    "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3",
    "1F0,1F1,1F2,1F3,1B0,1B1,1B2,1B3"
  ]
}

// -----

// The input gradient is sent, not the weight gradient.
// CHECK: "0F0,0SEND_F0,0RECV_B0,0I0,0W0",
// CHECK-NEXT: "1RECV_F0,1F0,1I0,1SEND_B0,1W0"
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1] loss>
  ]
  pipe.timeline "t" delay = 1 rows [
    "0F0,0I0,0W0",
    "1F0,1I0,1W0"
  ]
}

// -----

// Communication that is there stays as it is.
// CHECK: "0F0,0SEND_F0,0RECV_B0,0B0",
// CHECK-NEXT: "1RECV_F0,1F0,1B0,1SEND_B0"
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1] loss>
  ]
  pipe.timeline "t" delay = 1 rows [
    "0F0,0SEND_F0,0RECV_B0,0B0",
    "1RECV_F0,1F0,1B0,1SEND_B0"
  ]
}

// -----

// A single rank sends nothing.
// CHECK: "0F0,1F0,1B0,0B0"
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
    "0F0,1F0,1B0,0B0"
  ]
}
