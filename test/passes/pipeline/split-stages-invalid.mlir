// Each configuration that does not fit the layers.
// RUN: split-file %s %t
// RUN: not rota-opt %t/6.mlir --split-stages="stages=4 layers-per-chunk=1" 2>&1 | FileCheck %s --check-prefix=CASE0
// CASE0: error: 'layers-per-chunk': expected stages * layers per chunk to divide the pipelined layers, got 4 (4 * 1) and 6
// RUN: not rota-opt %t/16.mlir --split-stages="stages=4 repeats=2 layers-per-chunk=1" 2>&1 | FileCheck %s --check-prefix=CASE1
// CASE1: error: 'repeats': expected stages * repeats * layers per chunk to be the number of pipelined layers, got 8 (4 * 2 * 1) and 16
// RUN: not rota-opt %t/4.mlir --split-stages="stages=4 repeats=2" 2>&1 | FileCheck %s --check-prefix=CASE2
// CASE2: error: 'repeats': expected a pipelined layer for each chunk at least, or for each but the first and the last, got 4 layers and 8 chunks (4 * 2)
// RUN: not rota-opt %t/4.mlir --split-stages="stages=5" 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: error: 'stage': expected a pipelined layer for each chunk at least, or for each but the first and the last, got 4 layers and 5 chunks (5 * 1)
// RUN: not rota-opt %t/4.mlir --split-stages="stages=7 split=balanced" 2>&1 | FileCheck %s --check-prefix=BALANCED
// BALANCED: error: 'stage': expected a pipelined layer for each chunk at least, or for each without the embedding and the loss, got 4 layers and 7 chunks (7 * 1)
// RUN: not rota-opt %t/4.mlir --split-stages="stages=4 pipeline-layers=2 microbatches=4" 2>&1 | FileCheck %s --check-prefix=LEFTOUT
// LEFTOUT: error: 'stage': expected a pipelined layer for each chunk at least, or for each but the first and the last, got 2 layers and 4 chunks (4 * 1)
// RUN: not rota-opt %t/4.mlir --split-stages="stages=2 repeats=2 pipeline-layers=1 microbatches=2" 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: error: 'repeats': {{.*}}, got 1 layer and 4 chunks (2 * 2)
// RUN: not rota-opt %t/4.mlir --split-stages="stages=4 pipeline-layers=8" 2>&1 | FileCheck %s --check-prefix=CASE3
// CASE3: error: 'pipeline-layers': expected at most as many pipelined layers as layers, got 8 and 4
// RUN: not rota-opt %t/4.mlir --split-stages="stages=0" 2>&1 | FileCheck %s --check-prefix=CASE4
// CASE4: error: expected 'stages' between 1 and 1048576, got 0
// RUN: not rota-opt %t/4.mlir --split-stages="microbatches=-2" 2>&1 | FileCheck %s --check-prefix=CASE5
// CASE5: error: expected 'microbatches' between 1 and 1048576, got -2
// RUN: not rota-opt %t/4.mlir --split-stages="repeats=99999999999" 2>&1 | FileCheck %s --check-prefix=CASE6
// CASE6: error: expected 'repeats' between 0 and 1048576, got 99999999999
// RUN: not rota-opt %t/4.mlir --split-stages="placement=w" 2>&1 | FileCheck %s --check-prefix=CASE7
// CASE7: for the --placement option: Cannot find option named 'w'!
// RUN: not rota-opt %t/4.mlir --split-stages="stages=2 microbatches=1048576" 2>&1 | FileCheck %s --check-prefix=CASE8
// CASE8: error: expected stages * repeats * microbatches to be at most 1048576, got 2 * 1 * 1048576
// RUN: not rota-opt %t/16.mlir --split-stages="stages=3 microbatches=1048576" 2>&1 | FileCheck %s --check-prefix=UNEVEN
// UNEVEN: error: expected stages * repeats * microbatches to be at most 1048576, got 3 * 1 * 1048576
// RUN: not rota-opt %t/16.mlir --split-stages="stages=4 repeats=2 layers-per-stage=8,8" 2>&1 | FileCheck %s --check-prefix=GIVEN
// GIVEN: error: 'layers-per-stage': expected a number for each of the 4 stages or of the 8 chunks, got 2
// RUN: not rota-opt %t/16.mlir --split-stages="stages=2 layers-per-stage=8,7" 2>&1 | FileCheck %s --check-prefix=SUM
// SUM: error: 'layers-per-stage': expected the sum to be the number of pipelined layers, got 15 and 16
// RUN: not rota-opt %t/16.mlir --split-stages="stages=2 layers-per-stage=17,-1" 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: error: 'layers-per-stage': expected 0 to 16 layers, got 17
// RUN: not rota-opt %t/16.mlir --split-stages="stages=3 repeats=3 layers-per-stage=12,2,2" 2>&1 | FileCheck %s --check-prefix=MIDDLE
// MIDDLE: error: 'layers-per-stage': expected at least 3 layers in stage 1, for the chunks that have neither the embedding nor the loss, got 2
// RUN: not rota-opt %t/16.mlir --split-stages="stages=4 layers-per-stage=8,8,0,0" 2>&1 | FileCheck %s --check-prefix=CHUNK
// CHUNK: error: 'layers-per-stage': expected a layer at least in chunk 2, which has neither the embedding nor the loss, got none
// RUN: not rota-opt %t/16.mlir --split-stages="stages=2 layers-per-stage=8,8 layers-per-chunk=8" 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: 'layers-per-stage': expected no 'layers-per-chunk' beside it, got 8
// RUN: not rota-opt %t/4.mlir --split-stages="stages=2 pipeline-layers=2 microbatches=3" 2>&1 | FileCheck %s --check-prefix=UNPIPELINED
// UNPIPELINED: error: expected microbatches to be a multiple of stages, which divide those of the layers outside of the pipeline, got 3 and 2
// RUN: not rota-opt %t/none.mlir --split-stages 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected one 'rota.stack' in the module, got 0
// RUN: not rota-opt %t/4.mlir --split-stages --split-stages 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: the module is a pipeline already
//--- 4.mlir
rota.stack @layers layers = 4 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
//--- 6.mlir
rota.stack @layers layers = 6 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
//--- 16.mlir
rota.stack @layers layers = 16 pattern [@identity] {
  rota.layer @identity {
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
      return %x : tensor<2x8xf32>
    }
  }
}
//--- none.mlir
module {}
