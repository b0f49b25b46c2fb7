// RUN: rota-opt %s --split-input-file --balance-stages=split=balanced | FileCheck %s
// RUN: rota-opt %s --split-input-file --balance-stages=split=balanced --remarks-filter=pipeline 2>&1 >%t | FileCheck %s --check-prefix=REMARK

// The documentation's example: the loss costs as much as three layers.
// CHECK: <rank 0 embed layers [@double 0, @double 1, @double 2, @double 3, @double 4]>,
// CHECK-NEXT: <rank 1 layers [@double 5] loss>
// REMARK: remark: [Analysis] balanced-stages | Category:pipeline | Layers="5,1", Makespan=8.640000e+02, MakespanBefore=1.008000e+03
func.func @loss(%x: tensor<2x8xf32>) -> tensor<f32> {
  %y = arith.addf %x, %x : tensor<2x8xf32>
  %z = arith.mulf %y, %x : tensor<2x8xf32>
  %sum = rota.reduce sum %z dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
  return %sum : tensor<f32>
}
rota.stack @layers layers = 6 pattern [@double] {
  rota.layer @double {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = arith.addf %x, %x : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 3 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@double 0, @double 1, @double 2]>,
    <rank 1 layers [@double 3, @double 4, @double 5] loss>
  ]
  pipe.timeline "1f1b" delay = 1 rows [
    "0F0,0F1,0B0,0F2,0B1,0B2",
    "1F0,1B0,1F1,1B1,1F2,1B2"
  ]
}

// -----

// Layers with a frozen input and frozen parameters have no backward: three of them
// take the time of one that trains.
// CHECK: <rank 0 embed layers [@still 0, @still 1, @still 2]>,
// CHECK-NEXT: <rank 1 layers [@double 3] loss>
rota.stack @layers layers = 4 pattern [@still, @still, @still, @double] {
  rota.layer @still frozen_input {
    rota.param @gain : tensor<2x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> frozen
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %gain = rota.read @gain : tensor<2x8xf32>
      %y = arith.mulf %x, %gain : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
  }
  rota.layer @double {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = arith.addf %x, %x : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@still 0, @still 1]>,
    <rank 1 layers [@still 2, @double 3] loss>
  ]
  pipe.timeline "1f1b" delay = 1 rows [
    "0F0,0F1,0B0,0B1",
    "1F0,1B0,1F1,1B1"
  ]
}

// -----

// Layers cost what those of their kind cost; a layer that costs most has a chunk
// for itself.
// CHECK: <rank 0 embed layers [@long 0]>,
// CHECK-NEXT: <rank 1 layers [@short 1, @short 2, @short 3] loss>
rota.stack @layers layers = 4 pattern [@long, @short, @short, @short] {
  rota.layer @long {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = arith.addf %x, %x : tensor<2x8xf32>
      %z = arith.mulf %y, %x : tensor<2x8xf32>
      %u = arith.mulf %z, %x : tensor<2x8xf32>
      return %u : tensor<2x8xf32>
    }
  }
  rota.layer @short {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = arith.addf %x, %x : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@long 0, @short 1]>,
    <rank 1 layers [@short 2, @short 3] loss>
  ]
  pipe.timeline "gpipe" delay = 1 rows [
    "0F0,0F1,0B0,0B1",
    "1F0,1F1,1B0,1B1"
  ]
}

// -----

// A loss that costs as much as three layers has a chunk for itself.
// CHECK: <rank 0 embed layers [@double 0, @double 1]>,
// CHECK-NEXT: <rank 1 layers [] loss>
func.func @loss(%x: tensor<2x8xf32>) -> tensor<f32> {
  %y = arith.addf %x, %x : tensor<2x8xf32>
  %z = arith.mulf %y, %x : tensor<2x8xf32>
  %sum = rota.reduce sum %z dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
  return %sum : tensor<f32>
}
rota.stack @layers layers = 2 pattern [@double] {
  rota.layer @double {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      %y = arith.addf %x, %x : tensor<2x8xf32>
      return %y : tensor<2x8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 3 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@double 0]>,
    <rank 1 layers [@double 1] loss>
  ]
  pipe.timeline "1f1b" delay = 1 rows [
    "0F0,0F1,0B0,0F2,0B1,0B2",
    "1F0,1B0,1F1,1B1,1F2,1B2"
  ]
}
