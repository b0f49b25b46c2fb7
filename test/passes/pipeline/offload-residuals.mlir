// RUN: rota-opt %s --split-input-file --offload-residuals --verify-timeline | FileCheck %s
// RUN: rota-opt %s --split-input-file --offload-residuals="fetch-distance=0" | FileCheck %s --check-prefix=ONE

// The documentation's example.
// CHECK: "0F0,0OFFLOAD0,0F1,0OFFLOAD1,0FETCH0,0F2,0OFFLOAD2,0FETCH1,0B0,0FETCH2,0B1,0B2",
// CHECK-NEXT: "1F0,1B0,1F1,1B1,1F2,1B2"
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
    func.func @backward(%x: tensor<2x8xf32> {rota.offload}, %dy: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %dy : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 3 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1] loss>
  ]
  pipe.timeline "1f1b" delay = 1 rows [
    "0F0,0F1,0F2,0B0,0B1,0B2",
    "1F0,1B0,1F1,1B1,1F2,1B2"
  ]
}

// -----

// Of I and W, I is the first to read residuals.
// CHECK: "0F0,0OFFLOAD0,1F0,1OFFLOAD0,0F1,0OFFLOAD1,1FETCH0,1F1,1OFFLOAD1,1I0,1FETCH1,1W0,0FETCH0,1I1,0I0,1W1,0FETCH1,0W0,0I1,0W1"
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
    func.func @backward(%x: tensor<2x8xf32> {rota.offload}, %dy: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %dy : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 2 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 0 layers [@identity 1] loss>
  ]
  pipe.timeline "t" delay = 1 rows [
    "0F0,1F0,0F1,1F1,1I0,1W0,1I1,0I0,1W1,0W0,0I1,0W1"
  ]
}

// -----

// Copies that are there stay.
// CHECK: "0F0,0OFFLOAD0,1F0,1B0,0FETCH0,0B0"
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
    func.func @backward(%x: tensor<2x8xf32> {rota.offload}, %dy: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %dy : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 2 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 0 layers [@identity 1] loss>
  ]
  pipe.timeline "t" delay = 1 rows [
    "0F0,0OFFLOAD0,1F0,1B0,0FETCH0,0B0"
  ]
}

// -----

// Of two kinds one offloads, so that chunk 1 alone has copies; without prefetch
// a copy comes back right before its backward.
// ONE: "0F0,1F0,1OFFLOAD0,0F1,1F1,1OFFLOAD1,1FETCH0,1I0,1W0,1FETCH1,1I1,0I0,1W1,0W0,0I1,0W1"
rota.stack @layers layers = 2 pattern [@identity, @offloaded] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
    func.func @backward(%x: tensor<2x8xf32>, %dy: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %dy : tensor<2x8xf32>
    }
  }
  rota.layer @offloaded {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
    func.func @backward(%x: tensor<2x8xf32> {rota.offload}, %dy: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %dy : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 2 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 0 layers [@offloaded 1] loss>
  ]
  pipe.timeline "t" delay = 1 rows [
    "0F0,1F0,0F1,1F1,1I0,1W0,1I1,0I0,1W1,0W0,0I1,0W1"
  ]
}
