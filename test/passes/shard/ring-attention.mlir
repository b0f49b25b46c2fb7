// Attention whose sequence is divided over three ranks: each block of keys but
// the last is sent before the attention to it, and what is partial is wide.
// RUN: rota-opt %s --split-input-file --partition | FileCheck %s

// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%[[Q:.*]]: tensor<1x4x2x8xbf16> {{.*}}, %[[K:.*]]: tensor<1x4x1x8xbf16> {{.*}}, %[[V:.*]]: tensor<1x4x1x6xbf16> {{.*}}, %[[S:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[P:.*]] = rota.shard_offset axes [<context>] factor = 1 : tensor<i32>
// CHECK-NEXT: %[[K1:.*]] = rota.permute %[[K]] axes [<context>] order [<context>] shift = 1
// CHECK-NEXT: %[[V1:.*]] = rota.permute %[[V]] axes [<context>] order [<context>] shift = 1
// CHECK-NEXT: %[[O0:.*]], %[[L0:.*]] = rota.attention %[[Q]], %[[K]], %[[V]] sinks %[[S]] scale = {{.*}} -> (tensor<1x4x2x6xf32>, tensor<1x2x4xf32>)
// CHECK-NEXT: %[[K2:.*]] = rota.permute %[[K1]]
// CHECK-NEXT: %[[V2:.*]] = rota.permute %[[V1]]
// CHECK-NEXT: %[[O1:.*]], %[[L1:.*]] = rota.attention %[[Q]], %[[K1]], %[[V1]] previous %[[O0]], %[[L0]] position %[[P]] behind = 1 {{.*}} -> (tensor<1x4x2x6xf32>, tensor<1x2x4xf32>)
// CHECK-NEXT: %[[O2:.*]], %{{.*}} = rota.attention %[[Q]], %[[K2]], %[[V2]] previous %[[O1]], %[[L1]] position %[[P]] behind = 2 {{.*}} -> (tensor<1x4x2x6xbf16>, tensor<1x2x4xf32>)
// CHECK-NEXT: return %[[O2]]
rota.mesh <context = 3>
func.func @forward(%q: tensor<1x12x2x8xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, %k: tensor<1x12x1x8xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, %v: tensor<1x12x1x6xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, %s: tensor<2xf32>) -> (tensor<1x12x2x6xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}) {
  %o, %l = rota.attention %q, %k, %v sinks %s scale = 0.35 ring : (tensor<1x12x2x8xbf16>, tensor<1x12x1x8xbf16>, tensor<1x12x1x6xbf16>, tensor<2xf32>) -> (tensor<1x12x2x6xbf16>, tensor<1x2x12xf32>) {rota.factors = [#rota.dimension<[]>, #rota.dimension<[context]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  return %o : tensor<1x12x2x6xbf16>
}

// -----

// A window of 5 positions reaches into one block of 4 before. Cotangents of
// keys go back by as many ranks as the keys came.
// CHECK-LABEL: func.func @backward
// CHECK-COUNT-2: rota.permute {{.*}} shift = 1 reason "{{keys|values}} travel
// CHECK: rota.attention_grad {{.*}} scale = {{.*}} -> (tensor<1x4x2x8xf32>, tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>)
// CHECK-NEXT: rota.attention_grad {{.*}} position {{.*}} behind = 1
// CHECK-NEXT: arith.addf {{.*}} : tensor<1x4x2x8xf32>
// CHECK-COUNT-2: rota.permute {{.*}} shift = 2 reason "cotangents travel to their block"
// CHECK-COUNT-2: arith.addf {{.*}} : tensor<1x4x1x8xf32>
// CHECK-NEXT: return
rota.mesh <context = 3>
func.func @backward(%q: tensor<1x12x2x8xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, %k: tensor<1x12x1x8xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, %l: tensor<1x2x12xf32> {rota.sharding = #rota.sharding<[[], [], [context]]>}) -> (tensor<1x12x2x8xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, tensor<1x12x1x8xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, tensor<1x12x1x8xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}) {
  %dq, %dk, %dv = rota.attention_grad %q, %q, %k, %k, %q, %l scale = 0.35 window = 5 ring : (tensor<1x12x2x8xf32>, tensor<1x12x2x8xf32>, tensor<1x12x1x8xf32>, tensor<1x12x1x8xf32>, tensor<1x12x2x8xf32>, tensor<1x2x12xf32>) -> (tensor<1x12x2x8xf32>, tensor<1x12x1x8xf32>, tensor<1x12x1x8xf32>) {rota.factors = [#rota.dimension<[]>, #rota.dimension<[context]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  return %dq, %dk, %dv : tensor<1x12x2x8xf32>, tensor<1x12x1x8xf32>, tensor<1x12x1x8xf32>
}
