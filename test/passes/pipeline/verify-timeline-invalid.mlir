// RUN: rota-opt %s --split-input-file --verify-diagnostics --verify-timeline=communication

// once: an action is missing
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

// once: an action is there twice
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
  // expected-error @below {{timeline 't', rank 0, position 1, 0F0: expected the action once, it is at position 0 already}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0F0,0B0",
    "1F0,1B0"
  ]
}

// -----

// place: an action is on the wrong rank
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
  // expected-error @below {{timeline 't', rank 0, position 1, 1B0: chunk 1 belongs to rank 1}}
  // expected-error @below {{timeline 't', rank 1, position 1, 0B0: chunk 0 belongs to rank 0}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,1B0",
    "1F0,0B0"
  ]
}

// -----

// place: out of range
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
  // expected-error @below {{timeline 't', rank 1, position 2, 2F0: expected a chunk below 2, got 2}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0B0",
    "1F0,1B0,2F0"
  ]
}

// -----

// order: a backward before its forward
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
  // expected-error @below {{timeline 't', rank 1, position 0, 1B0: expected it after 1F0, which is at position 1}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0B0",
    "1B0,1F0"
  ]
}

// -----

// channel: sends and receives in one order
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
  // expected-error @below {{timeline 't', rank 0, position 1, 0SEND_F0: send 0 to rank 1 meets 1RECV_F1 at position 0: expected sends and receives in one order}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1",
    "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1"
  ]
}

// -----

// deadlock: each rank waits for the other
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
  // expected-error @below {{timeline 't', rank 0, position 1, 0B0: deadlock: waits for ever for the gradient of microbatch 0 from chunk 1 to chunk 0}}
  // expected-error @below {{timeline 't', rank 1, position 1, 1F1: deadlock: waits for ever for the activation of microbatch 1 from chunk 0 to chunk 1}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0B0,0F1,0B1",
    "1F0,1F1,1B0,1B1"
  ]
}

// -----

// windows: a use outside of its window
rota.stack @layers layers = 1 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0] loss>
  ]
  // expected-error @below {{timeline 't', rank 0, position 3, 0B0: expected an open window of the chunk's weights}}
  pipe.timeline "t" delay = 1 rows [
    "0UNSHARD,0F0,0RESHARD,0B0"
  ]
}

// -----

// communication: asked for and not there
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
  // expected-error @below {{timeline 't', expected sends and receives between 2 ranks, got none: run 'insert-communication'}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0B0",
    "1F0,1B0"
  ]
}
