// Attention around a balanced ring of three ranks: second halves are exchanged,
// four attentions to half-blocks a step, second halves of what comes out go back.
// RUN: rota-opt %s --split-input-file --partition --cse | FileCheck %s

// Half-blocks of queries are number 2 r and 5 - 2 r, those of keys one rank
// before are the same of r + 2. The first attention needs no second half.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%[[Q:.*]]: tensor<1x4x2x8xbf16> {{.*}}, %[[K:.*]]: tensor<1x4x1x8xbf16> {{.*}}, %[[V:.*]]: tensor<1x4x1x6xbf16> {{.*}}, %[[S:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[Q2:.*]]:2 = rota.split %[[Q]] dim = 1 : (tensor<1x4x2x8xbf16>) -> (tensor<1x2x2x8xbf16>, tensor<1x2x2x8xbf16>)
// CHECK-NEXT: %[[QB:.*]] = rota.permute %[[Q2]]#1 axes [<context>] order [<context>] mirrored reason "halves of blocks travel for equal work"
// CHECK-NEXT: %[[K2:.*]]:2 = rota.split %[[K]] dim = 1
// CHECK-NEXT: %[[KB:.*]] = rota.permute %[[K2]]#1 {{.*}} mirrored
// CHECK-NEXT: %[[V2:.*]]:2 = rota.split %[[V]] dim = 1
// CHECK-NEXT: %[[VB:.*]] = rota.permute %[[V2]]#1 {{.*}} mirrored
// CHECK-NEXT: %[[K1A:.*]] = rota.permute %[[K2]]#0 {{.*}} shift = 1 reason "keys travel around the ring"
// CHECK-NEXT: %[[V1A:.*]] = rota.permute %[[V2]]#0 {{.*}} shift = 1 reason "values travel around the ring"
// CHECK-NEXT: %[[OA0:.*]], %[[LA0:.*]] = rota.attention %[[Q2]]#0, %[[K2]]#0, %[[V2]]#0 sinks %[[S]] scale = {{[0-9.e+-]*}} : {{.*}} -> (tensor<1x2x2x6xf32>, tensor<1x2x2xf32>)
// CHECK-NEXT: %[[K1B:.*]] = rota.permute %[[KB]] {{.*}} shift = 1
// CHECK-NEXT: %[[V1B:.*]] = rota.permute %[[VB]] {{.*}} shift = 1
// CHECK-NEXT: %[[A:.*]] = rota.shard_offset axes [<context>] factor = 2 : tensor<i32>
// CHECK-NEXT: %[[B:.*]] = rota.shard_offset axes [<context>] factor = -2 start = 5 : tensor<i32>
// CHECK-NEXT: %[[OA1:.*]], %[[LA1:.*]] = rota.attention %[[Q2]]#0, %[[KB]], %[[VB]] previous %[[OA0]], %[[LA0]] position %[[A]] key_position %[[B]] scale
// CHECK-NEXT: %[[OB0:.*]], %[[LB0:.*]] = rota.attention %[[QB]], %[[KB]], %[[VB]] sinks %[[S]] scale
// CHECK-NEXT: %[[OB1:.*]], %[[LB1:.*]] = rota.attention %[[QB]], %[[K2]]#0, %[[V2]]#0 previous %[[OB0]], %[[LB0]] position %[[B]] key_position %[[A]] scale
// One rank before.
// CHECK: rota.permute %[[K1B]] {{.*}} shift = 1
// CHECK: rota.permute %[[V1B]] {{.*}} shift = 1
// CHECK: %[[B1:.*]] = rota.shard_offset axes [<context>] shift = 2 factor = -2 start = 5 : tensor<i32>
// CHECK-NEXT: rota.attention %[[QB]], %[[K1B]], %[[V1B]] previous %[[OB1]], %[[LB1]] position %[[B]] key_position %[[B1]] scale
// CHECK: rota.permute %[[K1A]] {{.*}} shift = 1
// CHECK: rota.permute %[[V1A]] {{.*}} shift = 1
// CHECK-NEXT: %[[A1:.*]] = rota.shard_offset axes [<context>] shift = 2 factor = 2 : tensor<i32>
// CHECK-NEXT: rota.attention %[[QB]], %[[K1A]], %[[V1A]] {{.*}} position %[[B]] key_position %[[A1]] scale
// CHECK-NEXT: rota.attention %[[Q2]]#0, %[[K1A]], %[[V1A]] previous %[[OA1]], %[[LA1]] position %[[A]] key_position %[[A1]] scale
// CHECK-NEXT: rota.attention %[[Q2]]#0, %[[K1B]], %[[V1B]] {{.*}} position %[[A]] key_position %[[B1]] scale
// The last keys: nothing is sent on, and the second half goes back beside the
// attentions of the first.
// CHECK-NOT: shift = 1 reason
// CHECK: %[[OB:.*]], %{{.*}} = rota.attention %[[QB]], {{.*}} -> (tensor<1x2x2x6xbf16>, tensor<1x2x2xf32>)
// CHECK-NEXT: %[[BACK:.*]] = rota.permute %[[OB]] {{.*}} mirrored reason "halves of blocks travel back"
// CHECK: %[[OA:.*]], %{{.*}} = rota.attention %[[Q2]]#0, {{.*}} -> (tensor<1x2x2x6xbf16>, tensor<1x2x2xf32>)
// CHECK-NEXT: %[[O:.*]] = rota.concat %[[OA]], %[[BACK]] dim = 1
// CHECK: return %[[O]]
rota.mesh <context = 3>
func.func @forward(%q: tensor<1x12x2x8xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, %k: tensor<1x12x1x8xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, %v: tensor<1x12x1x6xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, %s: tensor<2xf32>) -> (tensor<1x12x2x6xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}) {
  %o, %l = rota.attention %q, %k, %v sinks %s scale = 0.35 ring balanced : (tensor<1x12x2x8xbf16>, tensor<1x12x1x8xbf16>, tensor<1x12x1x6xbf16>, tensor<2xf32>) -> (tensor<1x12x2x6xbf16>, tensor<1x2x12xf32>) {rota.factors = [#rota.dimension<[]>, #rota.dimension<[context]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  return %o : tensor<1x12x2x6xbf16>
}

// -----

// Cotangents of keys of a step are one sum for both halves of the queries,
// rounded once and sent to their rank at once.
// CHECK-LABEL: func.func @backward
// CHECK: %[[AA:.*]], %[[AAK:.*]], %{{.*}} = rota.attention_grad {{.*}} scale = {{[0-9.e+-]*}} : {{.*}} -> (tensor<1x2x2x8xf32>, tensor<1x2x1x8xbf16>, tensor<1x2x1x8xbf16>)
// CHECK: rota.attention_grad {{.*}} key_position
// CHECK: rota.attention_grad {{.*}} scale = {{[0-9.e+-]*}} :
// CHECK: rota.attention_grad {{.*}} key_position
// One rank before: of keys of second halves from both halves of queries.
// CHECK: %{{.*}}, %[[BBK:.*]], %{{.*}} = rota.attention_grad {{.*}} key_position
// CHECK: %[[BBW:.*]] = arith.extf %[[BBK]]
// CHECK: rota.attention_grad {{.*}} key_position
// The queries' cotangent of the last step goes back.
// CHECK: rota.permute {{.*}} mirrored reason "halves of blocks travel back" : tensor<1x2x2x8xbf16>
// CHECK: rota.attention_grad {{.*}} key_position
// CHECK: %{{.*}}, %[[ABK:.*]], %{{.*}} = rota.attention_grad {{.*}} key_position
// CHECK: %[[ABW:.*]] = arith.extf %[[ABK]]
// CHECK-NOT: rota.attention_grad
// CHECK-COUNT-2: rota.permute {{.*}} mirrored reason "halves of blocks travel back" : tensor<1x2x1x8xbf16>
rota.mesh <context = 2>
func.func @backward(%q: tensor<1x8x2x8xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, %k: tensor<1x8x1x8xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, %l: tensor<1x2x8xf32> {rota.sharding = #rota.sharding<[[], [], [context]]>}) -> (tensor<1x8x2x8xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, tensor<1x8x1x8xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}, tensor<1x8x1x8xbf16> {rota.sharding = #rota.sharding<[[], [context], [], []]>}) {
  %dq, %dk, %dv = rota.attention_grad %q, %q, %k, %k, %q, %l scale = 0.35 ring balanced : (tensor<1x8x2x8xbf16>, tensor<1x8x2x8xbf16>, tensor<1x8x1x8xbf16>, tensor<1x8x1x8xbf16>, tensor<1x8x2x8xbf16>, tensor<1x2x8xf32>) -> (tensor<1x8x2x8xbf16>, tensor<1x8x1x8xbf16>, tensor<1x8x1x8xbf16>) {rota.factors = [#rota.dimension<[]>, #rota.dimension<[context]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  return %dq, %dk, %dv : tensor<1x8x2x8xbf16>, tensor<1x8x1x8xbf16>, tensor<1x8x1x8xbf16>
}
