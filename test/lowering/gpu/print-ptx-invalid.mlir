// RUN: rota-opt %s --print-ptx=chip=sm_90 --split-input-file --verify-diagnostics
// RUN: not rota-opt %s --print-ptx=chip=sm_70 --split-input-file 2>&1 | FileCheck %s

// CHECK: expected a chip out of 'sm_80', 'sm_90', 'sm_90a', 'sm_100', 'sm_100a', got 'sm_70'
gpu.module @chip {
}

// -----

// A function without an instruction becomes a call that nothing answers.
// expected-error @below {{expected kernels that call no library, got a call of '__nv_fmod'}}
gpu.module @library {
  gpu.func @remainder(%at: !llvm.ptr<1>) kernel {
    %x = llvm.load %at : !llvm.ptr<1> -> f64
    %y = arith.remf %x, %x : f64
    llvm.store %y, %at : f64, !llvm.ptr<1>
    gpu.return
  }
}

// -----

// An op that nothing lowers.
gpu.module @foreign {
  // expected-error @below {{failed to legalize operation 'gpu.func'}}
  gpu.func @none(%x: tensor<4xf32>) kernel {
    gpu.return
  }
}
