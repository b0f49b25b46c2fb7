// RUN: rota-opt %s --count-work --split-input-file --remarks-filter=shard 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --input-file %t.remarks --check-prefix=REMARK --implicit-check-not=remark:

// The description's example.
// CHECK-LABEL: func.func @f
// CHECK-SAME: rota.work = #rota.work<rank = 16, whole = 32, data = 32>
// CHECK-NEXT: math.tanh
// CHECK-NEXT: return
rota.mesh <data = 2, tensor = 2>
func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) {
  // REMARK: count-work.mlir:[[@LINE+1]]:8: remark: [Analysis] repeated | Category:shard | Function=f | Axes=tensor, Bytes=64, Operations=16, Reason='math.tanh'
  %y = math.tanh %x {rota.factors = [#rota.dimension<[data]>, #rota.dimension<[]>]} : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Numbers are those of all three layers, the largest first; half of `tensor`
// divides the product, and the gradient is divided as its parameter. Layers of
// the other kind compute nothing.
// CHECK-LABEL: rota.layer @a
// CHECK: func.func @forward
// CHECK-SAME: rota.work = #rota.work<rank = 272, whole = 544, tensor = 544>
// CHECK: func.func @backward
// CHECK-SAME: rota.work = #rota.work<rank = 16, whole = 64, tensor = 64>
// REMARK: [[@LINE+14]]:12: remark: [Analysis] repeated | {{.*}}Function=a.forward | Axes=context+tensor:(2)2, Bytes=192, Operations=768, Reason="'rota.einsum' with 'w'"
// REMARK: remark: [Analysis] repeated | {{.*}}Function=a.backward | Axes=context, Bytes=192, Operations=48, Reason='rota.accumulate'
// REMARK: remark: [Analysis] repeated | {{.*}}Function=a.forward | Axes=context+tensor:(2)2, Bytes=192, Operations=48, Reason='arith.negf'
// REMARK: remark: [Analysis] whole | {{.*}}Function=a.forward | Axes=context+tensor, Bytes=384, Reason="argument 0 of 'forward'"
// REMARK: remark: [Analysis] whole | {{.*}}Function=b.forward | Axes=context+tensor, Bytes=256, Reason="argument 0 of 'forward'"
// REMARK: remark: [Analysis] whole | {{.*}}Function=a | Axes=context, Bytes=192, Reason="'w' at rest"
// REMARK: remark: [Analysis] whole | {{.*}}Function=a.forward | Axes=context+tensor:(2)2, Bytes=192, Reason="result 0 of 'forward'"
// REMARK: remark: [Analysis] whole | {{.*}}Function=b.forward | Axes=context+tensor:(2)2, Bytes=128, Reason="result 0 of 'forward'"
rota.mesh <context = 2, tensor = 4>
rota.stack @layers layers = 5 pattern [@a, @b] {
  rota.layer @a {
    rota.param @w : tensor<8x8xf32> axes ["in", "mlp"] init #rota.constant<value = 1.0> placement <whole [8, 8] compute <[[], [tensor]]> storage <[[], [tensor]]> optimizer <[[context], [tensor]]>>
    func.func @forward(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor:(1)2]]>}) {
      %w = rota.read @w : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor:(1)2]>]}
      %z = arith.negf %y {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor:(1)2]>]} : tensor<4x8xf32>
      return %z : tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<8x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) {
      rota.accumulate @w, %x : tensor<8x8xf32>
      return
    }
  }
  rota.layer @b {
    func.func @forward(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor:(1)2]]>}) {
      return %x : tensor<4x8xf32>
    }
  }
}

// -----

// Around a ring the last of two ranks sees 26 of 36 pairs of a query and a key.
// CHECK-LABEL: func.func @ring
// CHECK-SAME: rota.work = #rota.work<rank = 1092, whole = 1512, context = 1512>
// CHECK-NEXT: rota.attention
// CHECK-NEXT: return
rota.mesh <context = 2>
func.func @ring(%q: tensor<1x8x2x4xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}) -> (tensor<1x8x2x4xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}) {
  %o, %lse = rota.attention %q, %q, %q scale = 0.35 ring : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>) {rota.factors = [#rota.dimension<[]>, #rota.dimension<[context]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  return %o : tensor<1x8x2x4xf32>
}
