// RUN: rota-opt %s --split-input-file --verify-diagnostics --insert-reshards=mode=explicit
// RUN: not rota-opt %s --split-input-file --insert-reshards=mode=always 2>&1 | FileCheck %s --check-prefix=MODE

// MODE: expected mode 'auto' or 'explicit', got 'always'

// Rows and columns want one axis.
rota.mesh <tensor = 2>
// expected-note @below {{a function's argument}}
func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>},
    // expected-note @below {{another operand}}
    %w: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) -> (tensor<4x16xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) {
  // expected-error @below {{expected operand 0 of 'rota.einsum' divided as #rota.sharding<[[], []]>, got #rota.sharding<[[tensor], []]>; 'rota.constrain' says so where it is meant}}
  %y = rota.einsum "bk,nk->bn" %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
  return %y : tensor<4x16xf32>
}

// -----

// The same, meant.
rota.mesh <tensor = 2>
func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}, %w: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) -> (tensor<4x16xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) {
  %g = rota.constrain %x <[[], []]> : tensor<4x8xf32>
  %y = rota.einsum "bk,nk->bn" %g, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
  return %y : tensor<4x16xf32>
}

// -----

// Summing up is what the op means, in parts or not.
rota.mesh <tensor = 2>
func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4xf32> {rota.sharding = #rota.sharding<[[tensor]]>}) {
  %y = rota.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]}
  return %y : tensor<4xf32>
}

// -----

// A condition that comes from outside cannot be made again.
rota.mesh <tensor = 2>
func.func @f(%c: tensor<4xi1> {rota.sharding = #rota.sharding<[[tensor]]>}, %y: tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}) -> (tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}) {
  // expected-error @below {{expected a condition divided as #rota.sharding<[[]]>, got #rota.sharding<[[tensor]]>}}
  %z = arith.select %c, %y, %y : tensor<4xi1>, tensor<4xf32>
  return %z : tensor<4xf32>
}
