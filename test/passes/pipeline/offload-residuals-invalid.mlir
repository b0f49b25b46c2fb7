// RUN: split-file %s %t
// RUN: rota-opt %t/prefetch.mlir --verify-diagnostics --offload-residuals=fetch-distance=-1
// RUN: rota-opt %t/policy.mlir --verify-diagnostics --offload-residuals=policy=minimal
// RUN: sed /expected-error/d %t/policy.mlir | rota-opt --offload-residuals | FileCheck %s
// CHECK: "0F0,0OFFLOAD0,0F1,0FETCH0,0B0,0B1"

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
  // expected-error @below {{expected 'fetch-distance' between 0 and 1048576, got -1}}
  pipe.timeline "t" delay = 1 rows [
    "0F0,1F0,1B0,0B0"
  ]
}

//--- policy.mlir
// A timeline that offloads and a policy that does not. Without a policy of the
// user's, there is nothing that the copies could contradict.
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
  // expected-error @below {{expected a remat policy that offloads for the schedule 'mine.csv', which has OFFLOAD, got 'minimal'}}
  pipe.timeline "mine.csv" delay = 1 rows [
    "0F0,0OFFLOAD0,0F1,0FETCH0,0B0,0B1"
  ]
}
