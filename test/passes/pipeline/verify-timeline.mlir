// RUN: rota-opt %s --split-input-file --verify-timeline | FileCheck %s

// The documentation's example.
// CHECK: "0F0,0I0,0F1,0W0,0B1"
rota.stack @layers layers = 1 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 1 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0] loss>
  ]
  pipe.timeline "by hand" delay = 1 rows [
    "0F0,0I0,0F1,0W0,0B1"
  ]
}

// -----

// With communication and with weight windows.
// CHECK: "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0RESHARD,0REDUCE_GRAD",
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
  pipe.timeline "t" delay = 1 window = 1 rows [
    "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0RESHARD,0REDUCE_GRAD",
    "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1RESHARD,1REDUCE_GRAD"
  ]
}
