// Every op of the dialect reads, verifies and prints back the same.
// RUN: rota-opt %s | FileCheck %s
// The generic form and bytecode keep the rows too.
// RUN: rota-opt %s --mlir-print-op-generic | rota-opt | FileCheck %s
// RUN: rota-opt %s --emit-bytecode | rota-opt | FileCheck %s

rota.stack @layers layers = 7 pattern [@local, @local, @global] {
  rota.layer @local {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
  rota.layer @global {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}

// Two kinds, a last chunk with a layer more than the others, and the V
// placement, whose second row of chunks comes back.
// CHECK: pipe.program stack @layers stages = 3 repeats = 2 microbatches = 1 placement v {
pipe.program stack @layers stages = 3 repeats = 2 microbatches = 1 placement v {
  // CHECK-NEXT: pipe.chunks [
  // CHECK-NEXT:   <rank 0 embed layers [@local 0]>,
  // CHECK-NEXT:   <rank 1 layers [@local 1]>,
  // CHECK-NEXT:   <rank 2 layers [@global 2]>,
  // CHECK-NEXT:   <rank 2 layers [@local 3]>,
  // CHECK-NEXT:   <rank 1 layers [@local 4]>,
  // CHECK-NEXT:   <rank 0 layers [@global 5, @local 6] loss>
  // CHECK-NEXT: ]
  pipe.chunks [
    <rank 0 embed layers [@local 0]>,
    <rank 1 layers [@local 1]>,
    <rank 2 layers [@global 2]>,
    <rank 2 layers [@local 3]>,
    <rank 1 layers [@local 4]>,
    <rank 0 layers [@global 5, @local 6] loss>
  ]
  // CHECK-NEXT: pipe.timeline "by hand" delay = 2 rows [
  // CHECK-NEXT:   "0F0,5F0,5B0,0B0",
  // CHECK-NEXT:   "1F0,4F0,4B0,1B0",
  // CHECK-NEXT:   "2F0,3F0,3I0,2I0,3W0,2W0"
  // CHECK-NEXT: ] {note = "attributes stay"}
  pipe.timeline "by hand" delay = 2 rows [
    "0F0,5F0,5B0,0B0",
    "1F0,4F0,4B0,1B0",
    "2F0,3F0,3I0,2I0,3W0,2W0"
  ] {note = "attributes stay"}
}

// Windows are bounded, and the last chunk is the unpipelined one, which all ranks have.
// CHECK: pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop unpipelined {
pipe.program stack @layers stages = 2 repeats = 1 microbatches = 2 placement loop unpipelined {
  // CHECK-NEXT: pipe.chunks [
  // CHECK-NEXT:   <rank 0 embed layers [@local 0, @local 1, @global 2]>,
  // CHECK-NEXT:   <rank 1 layers [@local 3, @local 4, @global 5]>,
  // CHECK-NEXT:   <rank all layers [@local 6] loss>
  pipe.chunks [
    <rank 0 embed layers [@local 0, @local 1, @global 2]>,
    <rank 1 layers [@local 3, @local 4, @global 5]>,
    <rank all layers [@local 6] loss>
  ]
  // CHECK: pipe.timeline "by hand" delay = 1 window = 2 rows [
  pipe.timeline "by hand" delay = 1 window = 2 rows [
    "0F0,0F1,2F0,2B0,0B0,0B1",
    "1F0,1F1,2F1,2B1,1B0,1B1"
  ]
}

// The attribute alone.
// CHECK: #pipe.chunk<rank 3 layers [@local 3] loss>
module attributes {test.chunk = #pipe.chunk<rank 3 layers [@local 3] loss>} {
}
