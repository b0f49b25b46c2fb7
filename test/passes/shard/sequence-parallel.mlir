// A Llama layer with activations divided over `sequence` between the halves of
// blocks: an all-gather before the products of each half and a reduce-scatter
// after them, in each direction. Backward gathers the saved activations too, for
// the weights' gradients, whose products run beside the other collectives.
// RUN: rota compile --model %source/models/configs/110m/config.json --batch-size 2 --sequence-length 16 --dtype bf16 --emit differentiated -o %t.mlir
// RUN: rota-opt %t.mlir --shard=mesh=sequence=4 | FileCheck %s
// RUN: rota-opt %t.mlir --shard="mesh=context=2 exchange=gather" | FileCheck %s --check-prefix=CONTEXT
// RUN: not rota-opt %t.mlir --shard="mesh=sequence=4 mode=explicit rules=gather/length=" 2>&1 | FileCheck %s --check-prefix=EXPLICIT

// The gain of a norm is the same on all ranks, which see other tokens each.
// CHECK: rota.param @input_layernorm.weight
// CHECK-SAME: compute<{{\[\[}}]] unreduced [sequence]>
// CHECK: rota.param @self_attn.q_proj.weight : tensor<192x768xf32>
// CHECK-SAME: compute<{{\[\[}}sequence], []]>
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %arg0: tensor<2x4x768xbf16>
// CHECK: rota.rms_norm {{.*}} : tensor<2x4x768xbf16>
// CHECK: rota.all_gather {{.*}} dim = 1 axes [<sequence>] {{.*}} : tensor<2x4x768xbf16> -> tensor<2x16x768xbf16>
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK: rota.reduce_scatter {{.*}} dim = 1 axes [<sequence>] {{.*}}'self_attn.o_proj.weight'{{.*}} -> tensor<2x4x768xbf16>
// CHECK-NEXT: arith.addf {{.*}} : tensor<2x4x768xbf16>
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK: rota.all_gather {{.*}} dim = 1
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK: rota.reduce_scatter {{.*}} dim = 1 axes [<sequence>] {{.*}}'mlp.down_proj.weight'
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK-LABEL: func.func @backward
// CHECK-COUNT-2: rota.all_gather {{.*}} dim = 1
// CHECK-NOT: {{rota.(all|shard_|permute)}}
// CHECK: rota.reduce_scatter {{.*}} -> tensor<2x4x768xbf16>
// CHECK-NEXT: rota.einsum {{.*}} -> tensor<512x768xf32>
// CHECK: rota.rms_norm_grad
// CHECK-NOT: {{rota.(reduce_|shard_|permute)}}
// CHECK-COUNT-2: rota.all_gather {{.*}} dim = 1
// CHECK-NOT: {{rota.(all|shard_|permute)}}
// CHECK: rota.reduce_scatter {{.*}} -> tensor<2x4x768xbf16>
// CHECK-NEXT: rota.einsum {{.*}} -> tensor<192x768xf32>
// CHECK: rota.rms_norm_grad
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK-LABEL: func.func @embed
// A rank has the targets of all rows, since its part of the vocabulary may hold
// the target of any row.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: tensor<2x16xi32>
// CHECK-SAME: tensor<f32> {rota.sharding = #rota.sharding<[]>}

// Over `context`, gathered, every rank computes attention for all queries.
// CONTEXT-LABEL: func.func @forward
// CONTEXT-SAME: %arg0: tensor<2x8x768xbf16>
// CONTEXT: rota.shard_slice {{.*}} dim = 0 axes [<context>] {{.*}}'rota.rope'
// CONTEXT-COUNT-3: rota.all_gather {{.*}} dim = 1 axes [<context>]
// CONTEXT-NEXT: %logsumexp = rota.attention
// CONTEXT-NEXT: rota.shard_slice %output
// CONTEXT-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CONTEXT-LABEL: func.func @backward
// CONTEXT-LABEL: func.func @loss
// CONTEXT-SAME: tensor<2x8xi32>
// CONTEXT-SAME: tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [context]>}

// EXPLICIT: error: expected operand 0 of 'rota.einsum' with 'self_attn.q_proj.weight' divided as #rota.sharding<{{\[\[}}], [], []]>, got #rota.sharding<{{\[\[}}], [sequence], []]>
// EXPLICIT: note: made by 'rota.rms_norm' with 'input_layernorm.weight'
