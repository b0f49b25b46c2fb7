// RUN: split-file %s %t
// RUN: rota-opt %t/one-repeat.mlir --verify-diagnostics --gather-weights=mode=per-repeat
// RUN: rota-opt %t/window.mlir --verify-diagnostics --gather-weights="mode=per-repeat window=0"
// RUN: rota-opt %t/prefetch.mlir --verify-diagnostics --gather-weights="mode=per-repeat prefetch=-2"
// RUN: rota-opt %t/once.mlir --verify-diagnostics --gather-weights="mode=once window=2"
// RUN: not rota-opt %t/wrong.mlir --gather-weights=mode=twice 2>&1 | FileCheck %s --check-prefix=MODE
// MODE: for the --mode option: Cannot find option named 'twice'!
// RUN: rota-opt %t/wrong.mlir --verify-diagnostics --gather-weights

//--- one-repeat.mlir
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
  // expected-error @below {{expected at least 2 repeats to gather weights 'per-repeat', got 1 ('once' gathers as often)}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,0B0"
  ]
}
//--- window.mlir
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
  // expected-error @below {{expected a window of at least 1 chunk, got 0}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,1F0,1B0,0B0"
  ]
}
//--- prefetch.mlir
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
  // expected-error @below {{expected a prefetch distance of at least 0 actions, got -2}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,1F0,1B0,0B0"
  ]
}
//--- once.mlir
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
  // expected-error @below {{a window is for gathering weights 'per-repeat' or 'per-iteration', got 'once' and a window of 2}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,1F0,1B0,0B0"
  ]
}
//--- wrong.mlir
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
  // expected-error @below {{timeline 't', rank 0, 0B0: missing: each chunk runs B, or I and W, once for each microbatch}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,1F0,1B0"
  ]
}
