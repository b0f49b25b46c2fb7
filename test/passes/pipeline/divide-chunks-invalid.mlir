// RUN: rota-opt %s --split-input-file --verify-diagnostics --divide-chunks=mode=per-layer

// Copies of residuals are of a chunk's.
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 1 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0, @identity 1] loss>
  ]
  // expected-error @below {{'mode' per-layer: expected compute actions and messages, got 0OFFLOAD0 in schedule 't'}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0OFFLOAD0,0F1,0FETCH0,0B0,0B1"
  ]
}

// -----

rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 1 microbatches = 1 placement loop parts = 2 {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 0 layers [@identity 1] loss>
  ]
  // expected-error @below {{'mode' per-layer: expected chunks without parts, got 2 parts}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,1F0,1B0,0B0"
  ]
}
