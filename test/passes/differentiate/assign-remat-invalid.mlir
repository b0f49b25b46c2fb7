// RUN: not rota-opt %s --assign-remat="policies=2:full stages=2" 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not rota-opt %s --assign-remat="policies=x:full stages=2" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not rota-opt %s --assign-remat="policies=1:ful stages=2" 2>&1 | FileCheck %s --check-prefix=POLICY
// RUN: not rota-opt %s --assign-remat="policies=1:full;1:none stages=2" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not rota-opt %s --assign-remat="policies=full;none stages=2" 2>&1 | FileCheck %s --check-prefix=OTHERS
// RUN: not rota-opt %s --assign-remat="policies=full stages=0" 2>&1 | FileCheck %s --check-prefix=SIZES

// STAGE: error: expected a stage from 0 to 1 in the remat policy '2:full', got '2'
// NUMBER: error: expected a stage from 0 to 1 in the remat policy 'x:full', got 'x'
// POLICY: error: expected a remat policy ({{.*}}), got 'ful'; did you mean 'full'?
// TWICE: error: expected one remat policy for stage 1, got 'full' and 'none'
// OTHERS: error: expected one remat policy for the other stages, got 'full' and 'none'
// SIZES: error: expected at least 1 stage and 1 layer per chunk, got 0 and 1
rota.stack @layers layers = 4 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
