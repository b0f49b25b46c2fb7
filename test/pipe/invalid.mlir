// Each constraint of the dialect's ops, broken.
// RUN: rota-opt %s --split-input-file --verify-diagnostics

// program C1: positive sizes
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
// expected-error @+1 {{expected 'stages' between 1 and 1048576, got 0}}
pipe.program stack @layers stages = 0 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
}

// -----

// program C1: positive sizes, of microbatches too
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
// expected-error @+1 {{expected 'microbatches' between 1 and 1048576, got -3}}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = -3 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
}

// -----

// program C1: a size that memory can hold
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
// expected-error @+1 {{expected stages * repeats * microbatches to be at most 1048576, got 2 * 1 * 1048576}}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1048576 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
}

// -----

// program C2: one chunk table
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
// expected-error @+1 {{expected one 'pipe.chunks', got 0}}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  pipe.timeline "t" delay = 1 rows [
    "0F0,0B0",
    "1F0,1B0"
  ]
}

// -----

// program C2: at most one timeline
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
// expected-error @+1 {{expected at most one 'pipe.timeline', got 2}}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
  pipe.timeline "t" delay = 1 rows [
    "0F0",
    "1F0"
  ]
  pipe.timeline "t" delay = 1 rows [
    "0F0",
    "1F0"
  ]
}

// -----

// program C2: nothing else
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  // expected-error @+1 {{expected 'pipe.chunks' or 'pipe.timeline' in a program}}
  %c = arith.constant 1 : i32
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
}

// -----

// program C3: the symbol names a stack
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
// expected-error @+1 {{expected a 'rota.stack', 'nothing' is none}}
pipe.program stack @nothing stages = 2 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
}

// -----

// program C4: a chunk for each stage and repeat
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 2 microbatches = 1 placement loop {
  // expected-error @+1 {{expected 4 chunks (2 stages, each 2), got 2}}
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
}

// -----

// program C4: on the rank of the placement
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  // expected-error @+1 {{expected chunk 1 on rank 1, got rank 0}}
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 0 layers [@b 1] loss>
  ]
}

// -----

// program C5: a layer in each chunk without the embedding and the loss
rota.stack @layers layers = 4 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 3 repeats = 1 microbatches = 1 placement loop {
  // expected-error @+1 {{expected a layer at least in chunk 1, which has neither the embedding nor the loss, got none}}
  pipe.chunks [
    <rank 0 embed layers [@a 0, @b 1, @a 2, @b 3]>,
    <rank 1 layers []>,
    <rank 2 layers [] loss>
  ]
}

// -----

// program C6: layers in order
rota.stack @layers layers = 4 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  // expected-error @+1 {{expected layer 1 next in chunk 0, got 2}}
  pipe.chunks [
    <rank 0 embed layers [@a 0, @a 2]>,
    <rank 1 layers [@b 1, @b 3] loss>
  ]
}

// -----

// program C6: all layers
rota.stack @layers layers = 3 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  // expected-error @+1 {{expected the 3 layers of the stack, got 2}}
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
}

// -----

// program C7: kinds as in the pattern
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  // expected-error @+1 {{expected layer 1 to be of kind @b, got @a}}
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@a 1] loss>
  ]
}

// -----

// program C8: the first chunk embeds
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  // expected-error @+1 {{expected the embedding in chunk 0 alone, chunk 0 has not}}
  pipe.chunks [
    <rank 0 layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
}

// -----

// program C8: no other embeds
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  // expected-error @+1 {{expected the embedding in chunk 0 alone, chunk 1 has it}}
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 embed layers [@b 1] loss>
  ]
}

// -----

// program C8: the last has the loss
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  // expected-error @+1 {{expected the loss in the last chunk alone, chunk 1 has not}}
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1]>
  ]
}

// -----

// timeline C1: a row for each stage
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
  // expected-error @+1 {{expected 2 rows, one for each stage, got 1}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0B0"
  ]
}

// -----

// timeline C2: rows are lists of actions
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
  // expected-error @+1 {{row 1, line 1, column 5: expected an action such as 0F0 or 2SEND_B1, got '1Q0'}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0B0",
    "1F0,1Q0"
  ]
}

// -----

// timeline C2: on one line
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
  // expected-error @+1 {{expected row 1 on one line, got 2}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0B0",
    "1F0\n1B0"
  ]
}

// -----

// timeline C3: the delay
rota.stack @layers layers = 2 pattern [@a, @b] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@b 1] loss>
  ]
  // expected-error @+1 {{expected a delay of 1 or 2, got 3}}
  pipe.timeline "t" delay = 3 rows [
    "0F0,0B0",
    "1F0,1B0"
  ]
}

// -----

// program C4: unpipelined layers are on all ranks
rota.stack @layers layers = 3 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop unpipelined {
  // expected-error @+1 {{expected chunk 2 on all ranks, got rank 0}}
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@a 1]>,
    <rank 0 layers [@a 2] loss>
  ]
}

// -----

// program C4: and no other is
rota.stack @layers layers = 3 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop unpipelined {
  // expected-error @+1 {{expected chunk 1 on rank 1, got all ranks}}
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank all layers [@a 1]>,
    <rank all layers [@a 2] loss>
  ]
}

// -----

// program C4: it must be there
rota.stack @layers layers = 3 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop unpipelined {
  // expected-error @+1 {{expected 3 chunks (2 stages, each 1, and the unpipelined one), got 2}}
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@a 1, @a 2] loss>
  ]
}

// -----

// program C1: the stages divide its microbatches
rota.stack @layers layers = 3 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
// expected-error @+1 {{expected microbatches to be a multiple of stages, which divide those of the layers outside of the pipeline, got 3 and 2}}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 3 placement loop unpipelined {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@a 1]>,
    <rank all layers [@a 2] loss>
  ]
}

// -----

// timeline C4: the bound of windows
rota.stack @layers layers = 3 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop unpipelined {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@a 1]>,
    <rank all layers [@a 2] loss>
  ]
  // expected-error @+1 {{expected 'window' between 1 and 1048576, got 0}}
  pipe.timeline "t" delay = 1 window = 0 rows [
    "0F0,0B0",
    "1F0,1B0"
  ]
}

// -----

// chunks: stand in a program
// expected-error @+1 {{'pipe.chunks' op expects parent op 'pipe.program'}}
pipe.chunks [<rank 0 embed layers [@a 0] loss>]

// -----

// chunk: malformed
// expected-error @+1 {{expected 'layers'}}
module attributes {test.chunk = #pipe.chunk<rank 0 loss layers []>} {}

// -----

// timeline C2: in the generic form
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 1 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0] loss>
  ]
  // expected-error @+1 {{expected 'rows' to be an array of strings, got [1]}}
  "pipe.timeline"() <{schedule = "t", delay = 1 : i64, rows = [1]}> : () -> ()
}
