// RUN: rota-opt %s --balance-stages=split=balanced --verify-diagnostics --split-input-file

// Without a timeline there is no makespan.
rota.stack @layers layers = 2 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
// expected-error @+1 {{expected a 'pipe.timeline' in the program, got none}}
pipe.program stack @layers stages = 1 repeats = 1 microbatches = 1 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@identity 0, @identity 1] loss>
  ]
}
