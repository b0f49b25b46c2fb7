// RUN: rota-opt %s --emit-kernels --split-input-file | FileCheck %s

// Beside the work on a head, attention asks for the rows of the next one: query,
// key and value, and in the derivative two more. A row has 64 x 4 bytes here, four
// lines of a cache.
// CHECK-LABEL: func @kernel_attention_0
// CHECK-COUNT-12: "llvm.intr.prefetch"{{.*}}rw = 0
// CHECK-LABEL: func @kernel_attention_grad_0
// CHECK-COUNT-20: "llvm.intr.prefetch"{{.*}}rw = 0
func.func @f(%q: tensor<2x512x4x64xf32>, %k: tensor<2x512x2x64xf32>) -> (tensor<2x512x4x64xf32>, tensor<2x512x2x64xf32>) {
  %y, %line = rota.attention %q, %k, %k scale = 0.125 : (tensor<2x512x4x64xf32>, tensor<2x512x2x64xf32>, tensor<2x512x2x64xf32>) -> (tensor<2x512x4x64xf32>, tensor<2x4x512xf32>)
  %dq, %dk, %dv = rota.attention_grad %y, %q, %k, %k, %y, %line scale = 0.125 : (tensor<2x512x4x64xf32>, tensor<2x512x4x64xf32>, tensor<2x512x2x64xf32>, tensor<2x512x2x64xf32>, tensor<2x512x4x64xf32>, tensor<2x4x512xf32>) -> (tensor<2x512x4x64xf32>, tensor<2x512x2x64xf32>, tensor<2x512x2x64xf32>)
  return %dq, %dk : tensor<2x512x4x64xf32>, tensor<2x512x2x64xf32>
}

// -----

// Keys and values of two such heads are more than a core's cache.
// CHECK-LABEL: func @kernel_attention_0
// CHECK-NOT: prefetch
func.func @f(%q: tensor<1x4096x2x64xf32>) -> tensor<1x4096x2x64xf32> {
  %y, %line = rota.attention %q, %q, %q scale = 0.125 : (tensor<1x4096x2x64xf32>, tensor<1x4096x2x64xf32>, tensor<1x4096x2x64xf32>) -> (tensor<1x4096x2x64xf32>, tensor<1x2x4096xf32>)
  return %y : tensor<1x4096x2x64xf32>
}
