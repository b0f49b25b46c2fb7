// Experts on an axis that divides tokens and the products' width: the tokens
// are gathered before rows are made of them, and the sums of tokens are reduced
// instead of those of all rows. No rows are saved for the backward: it gathers
// the tokens again, and the cotangent of a choice's weight comes from the part of
// the experts' width that a rank has.
// RUN: rota compile --model %source/models/configs/qwen3-30b-a3b/config.json --batch-size 1 --sequence-length 256 --emit differentiated -o %t.mlir
// RUN: rota-opt %t.mlir --shard=mesh=sequence=4 | FileCheck %s

// CHECK-LABEL: func.func @forward
// CHECK: rota.dispatch {{.*}} : (tensor<1x256x2048xbf16>, {{.*}} -> tensor<1x2048x2048xbf16>
// CHECK-NOT: rota.all_reduce {{.*}} : tensor<1x2048x2048xbf16>
// CHECK: rota.combine {{.*}} -> tensor<1x256x2048xbf16>
// CHECK-NEXT: rota.reduce_scatter {{.*}} -> tensor<1x64x2048xbf16>
// CHECK-NOT: return {{.*}}tensor<1x2048x2048xbf16>
// CHECK-LABEL: func.func @backward
// CHECK-NOT: rota.all_reduce {{.*}} : tensor<1x2048x2048xbf16>
// CHECK: rota.row_dot {{.*}} : tensor<1x2048x192xbf16> -> tensor<1x2048x1xf32>
// CHECK-NOT: rota.all_reduce {{.*}} : tensor<1x2048x2048xbf16>
// CHECK-LABEL: func.func @embed
