// From layers to a timeline with communication in two pipelines.
// RUN: sed -e "s/ {rota.offload}//" %s | rota-opt --schedule-layers="stages=3 layers-per-chunk=2 microbatches=5 schedule=1f1b" --complete-timeline | FileCheck %s
// RUN: not rota-opt %s --schedule-layers="stages=3 repeats=2 microbatches=5" 2>&1 | FileCheck %s --check-prefix=ERROR


// The number of ops depends on none of the sizes.
// RUN: rota-opt %s --schedule-layers="stages=1 microbatches=1" --complete-timeline | grep -c "pipe[.]" | FileCheck %s --check-prefix=COUNT
// RUN: rota-opt %s --schedule-layers="stages=3 repeats=2 microbatches=96" --complete-timeline | grep -c "pipe[.]" | FileCheck %s --check-prefix=COUNT
// COUNT: {{^}}3{{$}}

// CHECK: pipe.program stack @layers stages = 3 repeats = 1 microbatches = 5 placement loop
// CHECK: "0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,
// CHECK-NEXT: "1RECV_F0,1F0,1SEND_F0,
// CHECK-NEXT: "2RECV_F0,2F0,

// With weights that are gathered, residuals that are offloaded, and a layer
// outside of the pipeline; verified like any other.
// RUN: sed "s/, %%dy/ {rota.offload}&/" %s > %t.offload.mlir
// RUN: rota-opt %t.offload.mlir --schedule-layers="stages=2 repeats=2 pipeline-layers=4 microbatches=2" --complete-timeline="mode=per-repeat" | FileCheck %s --check-prefix=ALL
// ALL: placement loop unpipelined
// ALL: <rank all layers [@identity 4, @identity 5] loss>
// ALL: pipe.timeline "circular" delay = 1 window = 2 rows [
// ALL-NEXT: "0UNSHARD,2UNSHARD,0F0,0SEND_F0,0OFFLOAD0,
// ALL-NEXT: "1UNSHARD,3UNSHARD,1RECV_F0,1F0,1SEND_F0,

// RUN: rota-opt %t.offload.mlir --schedule-layers="stages=3 microbatches=3" --complete-timeline | FileCheck %s --check-prefix=OFFLOAD
// OFFLOAD: "0F0,0SEND_F0,0OFFLOAD0,
// OFFLOAD-NEXT: "1RECV_F0,1F0,1SEND_F0,1OFFLOAD0,

// ERROR: error: expected microbatches to be a multiple of stages for the circular schedule, got 5 and 3
rota.stack @layers layers = 6 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
    func.func @backward(%x: tensor<2x8xf32>, %dy: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %dy : tensor<2x8xf32>
    }
  }
}
