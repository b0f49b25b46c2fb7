// RUN: rota-opt %s --split-input-file --verify-diagnostics --partition

rota.mesh <tensor = 2>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected none here, 'insert-reshards' comes first}}
  %y = rota.constrain %x <[[tensor]]> : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A balanced ring has two half-blocks on each rank.
rota.mesh <context = 2>
func.func @odd(%q: tensor<1x6x2x8xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}) -> (tensor<1x6x2x8xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}) {
  // expected-error @below {{expected blocks of an even length in balanced order, got 3 positions}}
  %o, %l = rota.attention %q, %q, %q scale = 0.35 ring balanced : (tensor<1x6x2x8xf32>, tensor<1x6x2x8xf32>, tensor<1x6x2x8xf32>) -> (tensor<1x6x2x8xf32>, tensor<1x2x6xf32>) {rota.factors = [#rota.dimension<[]>, #rota.dimension<[context]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  return %o : tensor<1x6x2x8xf32>
}
