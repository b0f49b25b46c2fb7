// RUN: rota-opt %s --split-input-file --verify-diagnostics --insert-reshards=mode=explicit
// RUN: not rota-opt %s --split-input-file --insert-reshards=mode=always 2>&1 | FileCheck %s --check-prefix=MODE

// MODE: for the --mode option: Cannot find option named 'always'!

// One axis divides rows and columns.
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

// The same with a constraint is no error.
rota.mesh <tensor = 2>
func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}, %w: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[tensor], []]>}) -> (tensor<4x16xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) {
  %g = rota.constrain %x <[[], []]> : tensor<4x8xf32>
  %y = rota.einsum "bk,nk->bn" %g, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>]}
  return %y : tensor<4x16xf32>
}

// -----

// The rule 'gather/length': the product needs all of the activation's length.
rota.mesh <sequence = 2>
rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [16, 8] compute <[[sequence], []]> storage <[[sequence], []]> optimizer <[[sequence], []]>>
func.func @f(%x: tensor<4x6x8xf32> {rota.sharding = #rota.sharding<[[], [sequence], []]>}) -> (tensor<4x6x16xf32> {rota.sharding = #rota.sharding<[[], [], [sequence]]>}) {
  %w = rota.read @up : tensor<16x8xf32>
  %y = rota.einsum "bsk,nk->bsn" %x, %w : (tensor<4x6x8xf32>, tensor<16x8xf32>) -> tensor<4x6x16xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[sequence]>]}
  return %y : tensor<4x6x16xf32>
}

// -----

// A rotary table is made whole; the length of the activation divides its use.
rota.mesh <context = 2>
func.func @f(%x: tensor<1x6x2x4xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}) -> (tensor<1x6x2x4xf32> {rota.sharding = #rota.sharding<[[], [context], [], []]>}) {
  %t = rota.rotary_table frequencies [1.0, 0.5] scale = 1.0 : tensor<6x2x2xf32>
  %y = rota.rope %x, %t : tensor<1x6x2x4xf32>, tensor<6x2x2xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[context]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  return %y : tensor<1x6x2x4xf32>
}

// -----

// Another dimension over the same axis is not the length.
rota.mesh <sequence = 2>
// expected-note @below {{a function's argument}}
func.func @f(%x: tensor<4x6x8xf32> {rota.sharding = #rota.sharding<[[], [], [sequence]]>}) -> (tensor<4x6x8xf32> {rota.sharding = #rota.sharding<[[], [], []]>}) {
  // expected-error @below {{expected operand 0 of 'math.tanh' divided as #rota.sharding<[[], [], []]>, got #rota.sharding<[[], [], [sequence]]>; 'rota.constrain' says so where it is meant}}
  %y = math.tanh %x : tensor<4x6x8xf32>
  return %y : tensor<4x6x8xf32>
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
