// RUN: rota-opt %s --split-input-file --exchange-updates --verify-timeline | FileCheck %s

// The documentation's example.
// CHECK: "0REFRESH,1REFRESH,0F0,1F0,1B0,1SUM_GRAD,0B0,0SUM_GRAD"
rota.mesh <data = 2>
rota.param @table : tensor<4x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 8] compute <[[], []] unreduced [data]> storage <[[], []]> optimizer <[[data], []]>>
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

// -----

// Storage over fsdp is reduced first; context is summed before data scatters.
// CHECK: "0REFRESH,1REFRESH,0UNSHARD,1UNSHARD,0F0,1F0,1B0,1RESHARD,1REDUCE_GRAD,0B0,0RESHARD,0REDUCE_GRAD,1SUM_GRAD,0SUM_GRAD,1SUM_GRAD,0SUM_GRAD"
rota.mesh <data = 2, fsdp = 2, context = 2>
rota.param @table : tensor<4x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 8] compute <[[], []] unreduced [data, fsdp, context]> storage <[[fsdp], []]> optimizer <[[fsdp, data], []]>>
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
    "0UNSHARD,1UNSHARD,0F0,1F0,1B0,1RESHARD,1REDUCE_GRAD,0B0,0RESHARD,0REDUCE_GRAD"
  ]
}

// -----

// Ranks without replicas exchange nothing for their updates.
// CHECK: "0F0,1F0,1B0,0B0"
rota.mesh <fsdp = 2>
rota.param @table : tensor<4x8xf32> axes ["vocab", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 8] compute <[[], []] unreduced [fsdp]> storage <[[fsdp], []]> optimizer <[[fsdp], []]>>
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
