// The narrow products of latent attention, which all ranks of tensor would
// repeat, are divided along tokens; their narrow results are gathered.
// RUN: rota compile --model %source/models/configs/deepseek-v3/config.json --batch-size 1 --sequence-length 1024 --emit differentiated -o %t.mlir
// RUN: rota-opt %t.mlir --shard=mesh=tensor=4 | FileCheck %s
// RUN: rota-opt %t.mlir --assign-shardings=mesh=tensor=4 --propagate-shardings --remarks-filter=shard -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: rota-opt %t.mlir --shard="mesh=tensor=4 mode=explicit" | FileCheck %s --check-prefix=EXPLICIT
// RUN: sed 's/"devices": 8/"devices": 2/; s/50e9/1e8/' %source/tools/planner/machines/h100-sxm-80gb.json > %t.json
// RUN: rota compile --model %source/models/configs/deepseek-v3/config.json --batch-size 1 --sequence-length 1024 --machine %t.json --emit differentiated | rota-opt --shard=mesh=tensor=4 | FileCheck %s --check-prefix=SLOW

// The gradient is a sum over tensor, taken once a step.
// CHECK: rota.param @self_attn.q_a_proj.weight
// CHECK-SAME: compute<{{\[\[}}], []] unreduced [tensor]>
// CHECK-LABEL: func.func @forward
// CHECK: rota.einsum {{.*}} : (tensor<1x256x7168xbf16>, {{.*}} -> tensor<1x256x1536xbf16>
// CHECK: rota.all_gather {{.*}} dim = 1 axes [<tensor>] {{.*}} -> tensor<1x1024x1536xbf16>
// CHECK: rota.einsum {{.*}} : (tensor<1x256x7168xbf16>, {{.*}} -> tensor<1x256x576xbf16>
// CHECK-LABEL: func.func @backward
// CHECK: rota.einsum {{.*}} : (tensor<1x256x1536xbf16>, {{.*}} -> tensor<1x256x7168xbf16>
// CHECK: rota.einsum {{.*}} : (tensor<1x256x1536xbf16>, tensor<1x256x7168xbf16>) -> tensor<1536x7168xf32>

// REMARK: divided-by-tokens {{.*}}Reason="'rota.einsum' is divided along its tokens

// EXPLICIT-LABEL: func.func @forward
// EXPLICIT: rota.einsum {{.*}} -> tensor<1x1024x1536xbf16>

// Between nodes that send 0.1 GB/s, repeating them takes less time.
// SLOW-LABEL: func.func @forward
// SLOW: rota.einsum {{.*}} -> tensor<1x1024x1536xbf16>
