// RUN: rota-opt %s --split-input-file --verify-diagnostics --insert-communication

// Only a valid timeline gets communication.
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
  // expected-error @below {{timeline 't', rank 1, 1B0: missing: each chunk runs B, or I and W, once for each microbatch}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0B0",
    "1F0"
  ]
}

// -----

// There is no timeline yet.
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
// expected-error @+1 {{expected a 'pipe.timeline' in the program, got none}}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0]>,
    <rank 1 layers [@identity 1] loss>
  ]
}

// -----

// expected-error @below {{expected one 'pipe.program' in the module, got 0}}
module {}
