// RUN: not rota-opt %s --assign-remat="remat=2:full" 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not rota-opt %s --assign-remat="remat=x:full" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not rota-opt %s --assign-remat="remat=chunk4:full" 2>&1 | FileCheck %s --check-prefix=CHUNK
// RUN: not rota-opt %s --assign-remat="remat=chunk:full" 2>&1 | FileCheck %s --check-prefix=CHUNKNUMBER
// RUN: not rota-opt %s --assign-remat="remat=chunk3:full;chunk3:none" 2>&1 | FileCheck %s --check-prefix=CHUNKTWICE
// RUN: not rota-opt %s --assign-remat="remat=1:ful" 2>&1 | FileCheck %s --check-prefix=POLICY
// RUN: not rota-opt %s --assign-remat="remat=1:full;1:none" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not rota-opt %s --assign-remat="remat=full;none" 2>&1 | FileCheck %s --check-prefix=OTHERS
// RUN: sed '/^pipe.program/,$d' %s | not rota-opt --assign-remat="remat=1:full" 2>&1 | FileCheck %s --check-prefix=PROGRAM

// STAGE: error: 'remat': expected a stage from 0 to 1, or 'chunk' with its number, in '2:full', got '2'
// NUMBER: error: 'remat': expected a stage from 0 to 1, or 'chunk' with its number, in 'x:full', got 'x'
// CHUNK: error: 'remat': expected a chunk from 0 to 3 in 'chunk4:full', got '4'
// CHUNKNUMBER: error: 'remat': expected a chunk from 0 to 3 in 'chunk:full', got ''
// CHUNKTWICE: error: 'remat': expected one policy for chunk3, got 'full' and 'none'
// POLICY: error: 'remat': expected a policy ({{.*}}), got 'ful'; did you mean 'full'?
// TWICE: error: 'remat': expected one policy for stage 1, got 'full' and 'none'
// OTHERS: error: 'remat': expected one policy for the other stages, got 'full' and 'none'
// PROGRAM: error: expected a 'pipe.program', which says the stages of layers, got none
rota.stack @layers layers = 4 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
pipe.program stack @layers stages = 2 repeats = 2 microbatches = 2 placement loop {
  pipe.chunks [
    <rank 0 embed layers [@a 0]>,
    <rank 1 layers [@a 1]>,
    <rank 0 layers [@a 2]>,
    <rank 1 layers [@a 3] loss>
  ]
}
