// A Llama layer over `tensor`: one all-reduce for each half of a block and each
// direction, in the activations' type, and no other collective. Backward, a product
// for a weight's gradient runs beside each.
// RUN: rota compile --model %source/models/configs/110m/config.json --batch-size 4 --sequence-length 16 --dtype bf16 --emit differentiated -o %t.mlir
// RUN: rota-opt %t.mlir --shard=mesh=data=2,tensor=4 | FileCheck %s
// RUN: rota-opt %t.mlir --shard=mesh=data=2,fsdp=2 | FileCheck %s --check-prefix=BATCH

// CHECK: rota.mesh <data = 2, tensor = 4>
// CHECK: rota.param @self_attn.q_proj.weight : tensor<192x768xf32>
// CHECK-SAME: whole[768, 768] compute<{{\[\[}}tensor], []] unreduced [data]>
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %arg0: tensor<2x16x768xbf16>
// CHECK: rota.attention {{.*}} -> (tensor<2x16x3x64xbf16>, tensor<2x3x16xf32>)
// CHECK: rota.all_reduce sum {{.*}} axes [<tensor>] {{.*}}'self_attn.o_proj.weight'{{.*}} : tensor<2x16x768xbf16>
// CHECK: rota.activation silu {{.*}} : tensor<2x16x512xbf16>
// CHECK: rota.all_reduce sum {{.*}} axes [<tensor>] {{.*}}'mlp.down_proj.weight'{{.*}} : tensor<2x16x768xbf16>
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK-LABEL: func.func @backward
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK: rota.all_reduce sum {{.*}} axes [<tensor>] {{.*}} : tensor<2x16x768xbf16>
// CHECK-NEXT: rota.einsum {{.*}} -> tensor<512x768xf32>
// CHECK: rota.rms_norm_grad
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK: rota.all_reduce sum {{.*}} axes [<tensor>] {{.*}} : tensor<2x16x768xbf16>
// CHECK-NEXT: rota.einsum {{.*}} -> tensor<192x768xf32>
// CHECK: rota.rms_norm_grad
// CHECK-NOT: {{rota.(all|reduce_|shard_|permute)}}
// CHECK-LABEL: func.func @embed
// CHECK: rota.embedding {{.*}} offset
// CHECK-NEXT: rota.all_reduce
// CHECK-LABEL: func.func @embed_backward
// CHECK-NOT: {{rota.(all|reduce_|permute)}}
// CHECK: rota.embedding_grad {{.*}} offset {{.*}} -> tensor<8000x768xf32>
// CHECK-LABEL: func.func @loss
// CHECK-SAME: tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [data]>}
// CHECK: rota.cross_entropy_shard {{.*}}(tensor<2x16x8000xbf16>
// CHECK: rota.all_gather {{.*}} tensor<2x16x2xf32> -> tensor<2x16x8xf32>
// CHECK: rota.cross_entropy_merge
// CHECK-LABEL: func.func @loss_backward

// Over the batch alone: gradients and losses are returned as sums, without any
// collective.
// BATCH: rota.param @self_attn.q_proj.weight : tensor<768x768xf32>
// BATCH-SAME: compute<{{\[\[}}], []] unreduced [data, fsdp]> storage<{{\[\[}}], [fsdp]]>
// BATCH-NOT: {{rota.(all|reduce_|shard_|permute)}}
// BATCH: func.func @loss
// BATCH-SAME: tensor<1x16x768xbf16>
// BATCH-SAME: tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [data, fsdp]>}
// BATCH-NOT: {{rota.(all|reduce_|shard_|permute)}}
