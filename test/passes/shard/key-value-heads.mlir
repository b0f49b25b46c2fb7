// Eight key-value heads over 16 ranks: two ranks share a head and have
// different queries. The gradients of the shared heads are returned as sums over
// the two ranks, so that a block has one all-reduce for each half.
// RUN: rota compile --model %source/models/configs/llama-3.1-8b/config.json --batch-size 1 --sequence-length 16 --dtype bf16 --emit differentiated -o %t.mlir
// RUN: rota-opt %t.mlir --shard="mesh=tensor=16 tensor-exchange=gather" | FileCheck %s
// The optimizer's states of such a head are divided over the ranks that share
// it. What is added stays apart from the axes of storage.
// RUN: rota-opt %t.mlir --assign-shardings="mesh=tensor=16 shard-optimizer" | FileCheck %s --check-prefix=ZERO
// ZERO: rota.param @self_attn.k_proj.weight
// ZERO-SAME: storage<{{\[\[}}tensor:(1)8], []]> optimizer<{{\[\[}}tensor:(1)8, tensor:(8)2], []]>

// CHECK: rota.param @self_attn.q_proj.weight : tensor<256x4096xf32>
// CHECK-SAME: compute<{{\[\[}}tensor], []]>
// CHECK: rota.param @self_attn.k_proj.weight : tensor<128x4096xf32>
// CHECK-SAME: compute<{{\[\[}}tensor:(1)8], []] unreduced [tensor:(8)2]> storage<{{\[\[}}tensor:(1)8], []]>
// CHECK-LABEL: func.func @forward
// CHECK-COUNT-2: rota.all_reduce sum {{.*}} axes [<tensor>]
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK-LABEL: func.func @backward
// CHECK-COUNT-2: rota.all_reduce sum {{.*}} axes [<tensor>]
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK-LABEL: func.func @embed
