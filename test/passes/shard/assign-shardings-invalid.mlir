// RUN: rota-opt %s --split-input-file --verify-diagnostics --assign-shardings=mesh=data=4,tensor=3,fsdp=2
// RUN: not rota-opt %s --split-input-file --assign-shardings=mesh=data=2,row=4 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not rota-opt %s --split-input-file --assign-shardings=mesh=data=2,data=4 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not rota-opt %s --split-input-file --assign-shardings=mesh=data=zwei 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not rota-opt %s --split-input-file --assign-shardings=mesh=data=0 2>&1 | FileCheck %s --check-prefix=BOUND
// RUN: not rota-opt %s --split-input-file --assign-shardings=mesh=data=-1 2>&1 | FileCheck %s --check-prefix=INFER
// RUN: not rota-opt %s --split-input-file --assign-shardings="mesh=data=-1,fsdp=3 ranks=8" 2>&1 | FileCheck %s --check-prefix=DIVIDE
// RUN: not rota-opt %s --split-input-file --assign-shardings="mesh=data=2,fsdp=3 ranks=8" 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not rota-opt %s --split-input-file --assign-shardings="mesh=data=-1,fsdp=-1 ranks=8" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not rota-opt %s --split-input-file --assign-shardings="rules=mlp=row" 2>&1 | FileCheck %s --check-prefix=RULE-AXIS
// RUN: not rota-opt %s --split-input-file --assign-shardings="rules=mlp=tensor+tensor" 2>&1 | FileCheck %s --check-prefix=RULE-TWICE
// RUN: not rota-opt %s --split-input-file --assign-shardings="rules=mlp" 2>&1 | FileCheck %s --check-prefix=RULE-FORM
// RUN: not rota-opt %s --split-input-file --assign-shardings="rules=mlp=stage" 2>&1 | FileCheck %s --check-prefix=RULE-STAGE
// RUN: not rota-opt %s --split-input-file --assign-shardings="mesh=tensor=2 rules=embed=tensor" 2>&1 | FileCheck %s --check-prefix=TENSOR-TWICE
// RUN: not rota-opt %s --split-input-file --assign-shardings="rules=mpl=tensor" 2>&1 | FileCheck %s --check-prefix=RULE-NAME
// RUN: not rota-opt %s --split-input-file --assign-shardings="rules=storage/heds=fsdp" 2>&1 | FileCheck %s --check-prefix=STORAGE-NAME
// RUN: not rota-opt %s --split-input-file --assign-shardings="rules=activation/lenth=context" 2>&1 | FileCheck %s --check-prefix=ACTIVATION-NAME
// RUN: not rota-opt %s --split-input-file --assign-shardings="mesh=fsdp=16,tensor=2 rules=storage/mlp=fsdp" 2>&1 | FileCheck %s --check-prefix=STORAGE-RANKS
// RUN: not rota-opt %s --split-input-file --assign-shardings="mesh=tensor=2 rules=storage/embed=tensor" 2>&1 | FileCheck %s --check-prefix=STORAGE-TWICE

// AXIS: expected an axis of data, stage, fsdp, expert, context, sequence, tensor, got 'row'
// TWICE: axis 'data' stands twice
// SIZE: expected AXIS=SIZE, got 'data=zwei'
// BOUND: expected a size from 1 to 16777216, or -1, for axis 'data', got 0
// INFER: expected a number of ranks for the axis of size -1 in the mesh 'data=-1', got none
// DIVIDE: expected the other axes to divide the number of ranks, got 3 and 8
// RANKS: expected as many ranks as there are devices, got 6 and 8
// BOTH: expected at most one axis of size -1, got 'data=-1,fsdp=-1'
// RULE-AXIS: expected a mesh axis (data, stage, fsdp, expert, context, sequence or tensor) in rule 'mlp=row', got 'row'
// RULE-TWICE: expected each axis at most once in rule 'mlp=tensor+tensor', got 'tensor' twice
// RULE-FORM: expected a rule 'name=axis+axis', got 'mlp'
// RULE-STAGE: expected an axis that divides tensors in rule 'mlp=stage', got 'stage', which divides layers
// TENSOR-TWICE: 'up': expected each mesh axis at most once, got 'tensor' twice, the last for dimension 1 ('embed')
// RULE-NAME: expected rule 'mpl' to name a logical axis
// RULE-NAME: note: there are 'mlp', 'embed', 'vocab', 'positions', 'heads', 'kv_heads', 'joined', 'experts', 'norm', 'in', 'choice', each also after 'storage/', and 'activation/batch', 'activation/length', 'activation/embed', 'gather/length', 'move/experts'
// STORAGE-NAME: expected rule 'storage/heds' to name a logical axis
// STORAGE-RANKS: 'mesh': parameter 'up': expected the 32 ranks along 'tensor' and 'fsdp' to divide dimension 0 ('mlp') of size 16, since the compute sharding divides it too
// STORAGE-TWICE: 'sharding-rules': parameter 'up': expected each mesh axis at most once, got 'tensor' in the compute and the storage sharding
// ACTIVATION-NAME: expected rule 'activation/lenth' to name a logical axis

// Padding would be computed with: the exponential of zero is one.
// expected-error @below {{'up': 'mlp' of size 16 is not divisible by tensor=3; the rule 'mlp=' leaves it whole}}
rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0>
func.func @exponential(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %w = rota.read @up : tensor<16x8xf32>
  %h = rota.einsum "bk,nk->bn" %x, %w : (tensor<8x8xf32>, tensor<16x8xf32>) -> tensor<8x16xf32>
  %e = math.exp %h : tensor<8x16xf32>
  %y = rota.einsum "bn,nk->bk" %e, %w : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// Three ranks cannot share two key heads.
// expected-error @below {{'key': 2 kv_heads are not divisible by tensor=3; the rule 'kv_heads=' leaves it whole}}
rota.param @key : tensor<48x8xf32> axes ["kv_heads", "embed"] init #rota.constant<value = 1.0>
func.func @embed(%x: tensor<8x2x8xf32>, %q: tensor<8x2x6x24xf32>) -> tensor<8x2x6x24xf32> {
  %wk = rota.read @key : tensor<48x8xf32>
  %k0 = rota.einsum "bsk,nk->bsn" %x, %wk : (tensor<8x2x8xf32>, tensor<48x8xf32>) -> tensor<8x2x48xf32>
  %k = rota.reshape %k0 : tensor<8x2x48xf32> -> tensor<8x2x2x24xf32>
  %o, %lse = rota.attention %q, %k, %k scale = 0.35 : (tensor<8x2x6x24xf32>, tensor<8x2x2x24xf32>, tensor<8x2x2x24xf32>) -> (tensor<8x2x6x24xf32>, tensor<8x6x2xf32>)
  return %o : tensor<8x2x6x24xf32>
}

// -----

// expected-error @below {{expected the 8 ranks along 'data' and 'fsdp' to divide the batch of a microbatch, 12}}
func.func @embed(%x: tensor<12x2x8xf32>) -> tensor<12x2x8xf32> {
  return %x : tensor<12x2x8xf32>
}

// -----

// The number of loss terms in front of the residuals is that of the loss.
// expected-error @below {{expected 'loss' beside it, which tells how many terms of the loss it returns}}
func.func @loss_backward_input(%x: tensor<8x2x8xf32>, %t: tensor<8x2xi32>) -> (tensor<f32>, tensor<f32>, tensor<8x2x8xf32>) {
  %c = arith.constant dense<0.0> : tensor<f32>
  return %c, %c, %x : tensor<f32>, tensor<f32>, tensor<8x2x8xf32>
}

// -----

// Another mesh than the module's.
// expected-error @below {{expected one mesh, got #rota.mesh<data = 4, fsdp = 2, tensor = 3> as option}}
module {
  // expected-note @below {{and this one}}
  rota.mesh <data = 2>
}
