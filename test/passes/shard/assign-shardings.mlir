// RUN: rota-opt %s --split-input-file --assign-shardings=mesh=data=2,tensor=2 | FileCheck %s
// RUN: rota-opt %s --split-input-file --assign-shardings="mesh=data=2,fsdp=-1 ranks=6 shard-optimizer" | FileCheck %s --check-prefix=ZERO
// RUN: rota-opt %s --split-input-file --assign-shardings="mesh=data=3,context=2,sequence=2 rules=activation/length= shard-optimizer" | FileCheck %s --check-prefix=JOINED
// RUN: rota-opt %s --split-input-file --assign-shardings="mesh=data=3,context=2,sequence=2 rules=activation/length= shard-optimizer" --remarks-filter=shard 2>&1 >/dev/null | FileCheck %s --check-prefix=REPLICAS
// RUN: rota-opt %s --split-input-file --assign-shardings="mesh=tensor=4,fsdp=2 rules=embed=,mlp=tensor,storage/mlp=fsdp" | FileCheck %s --check-prefix=RULES
// RUN: rota-opt %s --split-input-file --assign-shardings="mesh=tensor=4,fsdp=2 mode=explicit" | FileCheck %s --check-prefix=WHOLE

// The description's example. Storage goes to fsdp along `embed`, the optimizer's
// state to data along the first dimension that 2 divides.
// CHECK: rota.mesh <data = 2, tensor = 2>
// CHECK: rota.param @up
// CHECK-SAME: placement <whole[16, 8] compute<{{\[\[}}tensor], []]> storage<{{\[\[}}tensor], []]> optimizer<{{\[\[}}tensor], []]>>
// CHECK: func.func @embed(%{{.*}}: tensor<12x2x8xf32> {rota.sharding = #rota.sharding<{{\[\[}}data], [?], []]>})
// CHECK-SAME: -> (tensor<12x2x8xf32> {rota.sharding = #rota.sharding<{{\[\[}}data], [], []]>})
// ZERO: rota.mesh <data = 2, fsdp = 3>
// ZERO: rota.param @up
// ZERO-SAME: placement <whole[16, 8] compute<{{\[\[}}], []]> storage<{{\[\[}}], [fsdp]]> optimizer<{{\[\[}}data], [fsdp]]>>
// The user's storage rule goes before the default for `embed`.
// RULES: rota.param @up
// RULES-SAME: compute<{{\[\[}}tensor], []]> storage<{{\[\[}}tensor, fsdp], []]> optimizer<{{\[\[}}tensor, fsdp], []]>>
// 16 rows over sequence=2 leave 8: context divides them, and data=3 divides no
// dimension.
// JOINED: rota.param @up
// JOINED-SAME: storage<{{\[\[}}sequence], []]> optimizer<{{\[\[}}sequence, context], []]>>
rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0>
func.func @embed(%x: tensor<12x2x8xf32>) -> tensor<12x2x8xf32> {
  return %x : tensor<12x2x8xf32>
}

// -----

// No rule names `a` or `b`: fsdp divides the largest dimension, the first of
// equal ones. 3 does not divide 8, so the parts are uneven. Data divides an even
// dimension of size 8, not the uneven one.
// ZERO: rota.param @square
// ZERO-SAME: compute<{{\[\[}}], []]> storage<{{\[\[}}fsdp], []]> optimizer<{{\[\[}}fsdp], [data]]>>
// ZERO: rota.param @odd
// ZERO-SAME: storage<{{\[\[}}], [fsdp]]> optimizer<{{\[\[}}], [fsdp]]>>
// What is stored whole is divided over all axes at once, along the dimension
// with room for the most parts; else over those that divide.
// JOINED: rota.param @square
// JOINED-SAME: storage<{{\[\[}}], []]> optimizer<{{\[\[}}context, sequence], []]>>
// JOINED: rota.param @odd
// JOINED-SAME: optimizer<{{\[\[}}data], []]>>
// JOINED: rota.param @second
// JOINED-SAME: optimizer<{{\[\[}}], [data, context, sequence]]>>
// REPLICAS: optimizer-replicas | Category:shard | Function=odd | Reason="replicas along 'context' and 'sequence' stay: one dimension is divided, into equal parts"
// REPLICAS: optimizer-replicas | Category:shard | Function=third | Reason="replicas along 'data' and 'context' and 'sequence' stay
// JOINED: rota.param @third
// JOINED-SAME: optimizer<{{\[\[}}], []]>>
rota.param @square : tensor<8x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0>
rota.param @odd : tensor<3x5xf32> axes ["a", "b"] init #rota.constant<value = 1.0>
rota.param @second : tensor<4x24xf32> axes ["a", "b"] init #rota.constant<value = 1.0>
rota.param @third : tensor<5x7xf32> axes ["a", "b"] init #rota.constant<value = 1.0>

// -----

// Two key heads of size 8 for `tensor=4`: two ranks share a head.
// RULES: rota.param @key
// RULES-SAME: compute<{{\[\[}}tensor:(1)2], []]> storage<{{\[\[}}tensor:(1)2], [fsdp]]>
// RULES: rota.param @query
// RULES-SAME: compute<{{\[\[}}tensor], []]> storage<{{\[\[}}tensor], [fsdp]]>
rota.param @key : tensor<16x8xf32> axes ["kv_heads", "embed"] init #rota.constant<value = 1.0>
rota.param @query : tensor<32x8xf32> axes ["heads", "embed"] init #rota.constant<value = 1.0>
func.func @embed(%x: tensor<12x2x8xf32>) -> tensor<12x2x4x8xf32> {
  %wk = rota.read @key : tensor<16x8xf32>
  %k0 = rota.einsum "bsk,nk->bsn" %x, %wk : (tensor<12x2x8xf32>, tensor<16x8xf32>) -> tensor<12x2x16xf32>
  %k = rota.reshape %k0 : tensor<12x2x16xf32> -> tensor<12x2x2x8xf32>
  %wq = rota.read @query : tensor<32x8xf32>
  %q0 = rota.einsum "bsk,nk->bsn" %x, %wq : (tensor<12x2x8xf32>, tensor<32x8xf32>) -> tensor<12x2x32xf32>
  %q = rota.reshape %q0 : tensor<12x2x32xf32> -> tensor<12x2x4x8xf32>
  %o, %lse = rota.attention %q, %k, %k scale = 0.35 : (tensor<12x2x4x8xf32>, tensor<12x2x2x8xf32>, tensor<12x2x2x8xf32>) -> (tensor<12x2x4x8xf32>, tensor<12x4x2xf32>)
  return %o : tensor<12x2x4x8xf32>
}

// -----

// One key head of 16 elements for `tensor=4`: what is in it is divided.
// RULES: rota.param @single
// RULES-SAME: compute<{{\[\[}}tensor], []]> storage<{{\[\[}}tensor], [fsdp]]>
// WHOLE: rota.param @single
// WHOLE-SAME: compute<{{\[\[}}], []]>
// The input of a product that joins activations.
// RULES: rota.param @join
// RULES-SAME: compute<{{\[\[}}], [tensor]]> storage<{{\[\[}}fsdp], [tensor]]>
// WHOLE: rota.param @join
// WHOLE-SAME: compute<{{\[\[}}], []]>
rota.param @single : tensor<16x8xf32> axes ["kv_heads", "embed"] init #rota.constant<value = 1.0>
rota.param @join : tensor<8x16xf32> axes ["embed", "joined"] init #rota.constant<value = 1.0>
func.func @embed(%q: tensor<12x2x4x16xf32>, %x: tensor<12x2x8xf32>) -> tensor<12x2x4x16xf32> {
  %wk = rota.read @single : tensor<16x8xf32>
  %k0 = rota.einsum "bsk,nk->bsn" %x, %wk : (tensor<12x2x8xf32>, tensor<16x8xf32>) -> tensor<12x2x16xf32>
  %k = rota.reshape %k0 : tensor<12x2x16xf32> -> tensor<12x2x1x16xf32>
  %o, %lse = rota.attention %q, %k, %k scale = 0.25 : (tensor<12x2x4x16xf32>, tensor<12x2x1x16xf32>, tensor<12x2x1x16xf32>) -> (tensor<12x2x4x16xf32>, tensor<12x4x2xf32>)
  return %o : tensor<12x2x4x16xf32>
}
