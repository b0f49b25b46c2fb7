// RUN: rota-opt %s --split-input-file --insert-reshards | FileCheck %s

// The description's example: the sum goes through what is linear in it.
// CHECK-LABEL: func.func @f
// CHECK: %[[Y:.*]] = rota.einsum
// CHECK: %[[Z:.*]] = arith.negf %[[Y]]
// CHECK: %[[R:.*]] = rota.reshard %[[Z]] from <{{\[\[}}], []] unreduced [tensor]> to <{{\[\[}}], []]> reason "partial sums of 'arith.negf'"
// CHECK: return %[[R]]
rota.mesh <tensor = 2>
func.func @f(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}, %w: tensor<16x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4x16xf32> {rota.sharding = #rota.sharding<[[], []]>}) {
  %y = rota.einsum "bk,nk->bn" %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>, #rota.dimension<[]>]}
  %z = arith.negf %y : tensor<4x16xf32>
  return %z : tensor<4x16xf32>
}

// -----

// Two sums are added as sums and summed up once; a sum and a value are not added;
// a nonlinear op needs its operand summed.
// CHECK-LABEL: func.func @once
// CHECK: %[[A:.*]] = rota.reduce
// CHECK: %[[B:.*]] = rota.reduce
// CHECK: %[[S:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: %[[R:.*]] = rota.reshard %[[S]] from <{{\[\[}}]] unreduced [tensor]> to <{{\[\[}}]]> reason "partial sums of 'arith.addf'"
// CHECK: arith.addf %[[R]], %{{.*}}
// CHECK: math.tanh %[[R]]
// CHECK-NOT: rota.reshard
rota.mesh <tensor = 2>
func.func @once(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}, %v: tensor<4xf32>) -> (tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}, tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}) {
  %a = rota.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]}
  %x2 = math.tanh %x {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]} : tensor<4x8xf32>
  %b = rota.reduce sum %x2 dims [1] : tensor<4x8xf32> -> tensor<4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]}
  %s = arith.addf %a, %b : tensor<4xf32>
  %t = arith.addf %s, %v : tensor<4xf32>
  %u = math.tanh %s : tensor<4xf32>
  return %t, %u : tensor<4xf32>, tensor<4xf32>
}

// -----

// Rounding is not linear: the sum is made before.
// CHECK-LABEL: func.func @rounded
// CHECK: %[[A:.*]] = rota.reduce
// CHECK: %[[R:.*]] = rota.reshard %[[A]]
// CHECK: arith.truncf %[[R]]
rota.mesh <tensor = 2>
func.func @rounded(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4xbf16> {rota.sharding = #rota.sharding<[[]]>}) {
  %a = rota.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]}
  %y = arith.truncf %a : tensor<4xf32> to tensor<4xbf16>
  return %y : tensor<4xbf16>
}

// -----

// A maximum is complete: its local form combines over ranks.
// CHECK-LABEL: func.func @maximum
// CHECK-NOT: rota.reshard
rota.mesh <tensor = 2>
func.func @maximum(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}) {
  %a = rota.reduce max %x dims [1] : tensor<4x8xf32> -> tensor<4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]}
  return %a : tensor<4xf32>
}

// -----

// Gradients leave as sums, over the axes over which all of them are sums.
// CHECK: rota.param @gain
// CHECK-SAME: compute<{{\[\[}}]] unreduced [data]>
// CHECK-LABEL: func.func @both
// CHECK: rota.accumulate @gain, %{{.*}} : tensor<8xf32>
// CHECK-LABEL: func.func @one
// CHECK: %[[A:.*]] = rota.reduce
// CHECK: %[[R:.*]] = rota.reshard %[[A]] from <{{\[\[}}]] unreduced [data, tensor]> to <{{\[\[}}]] unreduced [data]>
// CHECK: rota.accumulate @gain, %[[R]]
rota.mesh <data = 2, tensor = 2>
rota.param @gain : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0> placement <whole [8] compute <[[]]> storage <[[]]> optimizer <[[]]>>
func.func @both(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) {
  %a = rota.reduce sum %x dims [0] : tensor<4x8xf32> -> tensor<8xf32> {rota.factors = [#rota.dimension<[data]>, #rota.dimension<[]>]}
  rota.accumulate @gain, %a : tensor<8xf32>
  return
}
func.func @one(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data, tensor], []]>}) {
  %a = rota.reduce sum %x dims [0] : tensor<4x8xf32> -> tensor<8xf32> {rota.factors = [#rota.dimension<[data, tensor]>, #rota.dimension<[]>]}
  rota.accumulate @gain, %a : tensor<8xf32>
  return
}

// -----

// Sum and weight of a loss leave as sums; a constant is divided.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: -> (tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [data]>}, tensor<f32> {rota.sharding = #rota.sharding<[] unreduced [data]>})
// CHECK: %[[S:.*]] = rota.reduce
// CHECK: %[[W:.*]] = arith.constant dense<2.000000e+00>
// CHECK: return %[[S]], %[[W]]
rota.mesh <data = 2>
func.func @loss(%x: tensor<4xf32> {rota.sharding = #rota.sharding<[[data]]>}, %y: tensor<4xf32> {rota.sharding = #rota.sharding<[[data]]>}) -> (tensor<f32>, tensor<f32>) {
  %four = arith.constant dense<4.0> : tensor<f32>
  %s = rota.reduce sum %x dims [0] : tensor<4xf32> -> tensor<f32> {rota.factors = [#rota.dimension<[data]>]}
  return %s, %four : tensor<f32>, tensor<f32>
}

// -----

// One reshard for all uses that need the same; a constraint is one more use.
// CHECK-LABEL: func.func @shared
// CHECK: %[[R:.*]] = rota.reshard %{{.*}} from <{{\[\[}}tensor]]> to <{{\[\[}}]]> reason "operand of 'math.tanh'"
// CHECK: math.tanh %[[R]]
// CHECK: math.exp %[[R]]
// CHECK-NOT: rota.constrain
// CHECK: return %[[R]]
rota.mesh <tensor = 2>
func.func @shared(%x: tensor<4xf32> {rota.sharding = #rota.sharding<[[tensor]]>}) -> (tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}) {
  %a = math.tanh %x : tensor<4xf32>
  %b = math.exp %x : tensor<4xf32>
  %c = rota.constrain %x <[[]]> : tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

// A condition is made again where it is needed divided otherwise.
// CHECK-LABEL: func.func @condition
// CHECK: arith.cmpf {{.*}}rota.factors
// CHECK: %[[C:.*]] = arith.cmpf ogt, %[[X:.*]], %[[X]] : tensor<4xf32>
// CHECK: arith.select %[[C]]
rota.mesh <tensor = 2>
func.func @condition(%x: tensor<4xf32> {rota.sharding = #rota.sharding<[[tensor]]>}, %y: tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}) -> (tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}) {
  %c = arith.cmpf ogt, %x, %x {rota.factors = [#rota.dimension<[tensor]>]} : tensor<4xf32>
  %z = arith.select %c, %y, %y : tensor<4xi1>, tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

// Sums over what would divide their addition are added whole and summed up once,
// each rank its part.
// CHECK-LABEL: func.func @scatter
// CHECK: %[[S:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = rota.reshard %[[S]] from <{{\[\[}}]] unreduced [tensor]> to <{{\[\[}}tensor]]>
// CHECK-NEXT: math.tanh %[[R]]
rota.mesh <tensor = 2>
func.func @scatter(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}, %y: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], [tensor]]>}) -> (tensor<4xf32> {rota.sharding = #rota.sharding<[[tensor]]>}) {
  %a = rota.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]}
  %b = rota.reduce sum %y dims [1] : tensor<4x8xf32> -> tensor<4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]}
  %s = arith.addf %a, %b {rota.factors = [#rota.dimension<[tensor]>]} : tensor<4xf32>
  %t = math.tanh %s {rota.factors = [#rota.dimension<[tensor]>]} : tensor<4xf32>
  return %t : tensor<4xf32>
}

// -----

// A gradient waits as a sum between the halves of a split backward; what its
// user needs summed up does not.
// CHECK: rota.param @gain
// CHECK-SAME: unreduced [data]
// CHECK-LABEL: func.func @forward
// CHECK-LABEL: func.func @backward_input
// CHECK-SAME: -> (tensor<4x8xf32> {{[^)]*}}, tensor<8xf32> {rota.sharding = #rota.sharding<{{\[\[}}]] unreduced [data]>}, tensor<4xf32> {rota.sharding = #rota.sharding<{{\[\[}}]]>})
// CHECK: %[[G:.*]] = rota.reduce sum %{{.*}} : tensor<4x8xf32> -> tensor<8xf32>
// CHECK: %[[S:.*]] = rota.reduce sum %{{.*}} : tensor<4x8xf32> -> tensor<4xf32>
// CHECK: %[[R:.*]] = rota.reshard %[[S]] from <{{\[\[}}]] unreduced [tensor]> to <{{\[\[}}]]>
// CHECK: return %{{.*}}, %[[G]], %[[R]]
// CHECK-LABEL: func.func @backward_weight
// CHECK-SAME: tensor<8xf32> {rota.sharding = #rota.sharding<{{\[\[}}]] unreduced [data]>}
// CHECK-NOT: rota.reshard
// CHECK: rota.accumulate
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@block] {
  rota.layer @block {
    rota.param @gain : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0> placement <whole [8] compute <[[]]> storage <[[]]> optimizer <[[]]>>
    func.func @forward(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) {
      return %x : tensor<4x8xf32>
    }
    func.func @backward_input(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}, %dy: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}, tensor<8xf32> {rota.sharding = #rota.sharding<[[]]>}, tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}) {
      %g = rota.reduce sum %dy dims [0] : tensor<4x8xf32> -> tensor<8xf32> {rota.factors = [#rota.dimension<[data]>, #rota.dimension<[]>]}
      %t = rota.constrain %x <[[], [tensor]]> : tensor<4x8xf32>
      %s = rota.reduce sum %t dims [1] : tensor<4x8xf32> -> tensor<4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[tensor]>]}
      return %dy, %g, %s : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>
    }
    func.func @backward_weight(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[data], []]>}, %g: tensor<8xf32> {rota.sharding = #rota.sharding<[[]]>}, %s: tensor<4xf32> {rota.sharding = #rota.sharding<[[]]>}) {
      %t = math.tanh %s : tensor<4xf32>
      rota.accumulate @gain, %g : tensor<8xf32>
      return
    }
  }
}

// -----

// %v only passes on a sum of which the other use needs the result. Both uses take
// the result, so that it is computed once.
// CHECK: rota.param @gain
// CHECK-SAME: compute<{{\[\[}}]]> storage
// CHECK-LABEL: func.func @backward_input
// CHECK-SAME: -> (tensor<4x8xf32> {{.*}}, tensor<8xf32> {rota.sharding = #rota.sharding<{{\[\[}}]]>})
// CHECK: %[[S:.*]] = rota.reduce sum %{{.*}} : tensor<4x8xf32> -> tensor<8xf32>
// CHECK: %[[R:.*]] = rota.reshard %[[S]] from <{{\[\[}}]] unreduced [tensor]> to <{{\[\[}}]]>
// CHECK: %[[V:.*]] = rota.reshape %[[R]]
// CHECK: math.tanh %[[V]]
// CHECK: return %{{.*}}, %[[R]]
rota.mesh <tensor = 2>
rota.stack @layers layers = 1 pattern [@block] {
  rota.layer @block {
    rota.param @gain : tensor<8xf32> axes ["norm"] init #rota.constant<value = 1.0> placement <whole [8] compute <[[]]> storage <[[]]> optimizer <[[]]>>
    func.func @forward(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}) {
      return %x : tensor<4x8xf32>
    }
    func.func @backward_input(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}, %dy: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}, tensor<8xf32> {rota.sharding = #rota.sharding<[[]]>}) {
      %t = rota.constrain %dy <[[tensor], []]> : tensor<4x8xf32>
      %s = rota.reduce sum %t dims [0] : tensor<4x8xf32> -> tensor<8xf32> {rota.factors = [#rota.dimension<[tensor]>, #rota.dimension<[]>]}
      %v = rota.reshape %s : tensor<8xf32> -> tensor<2x4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>]}
      %u = math.tanh %v {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>]} : tensor<2x4xf32>
      %w = rota.reshape %u : tensor<2x4xf32> -> tensor<8xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>]}
      %b = rota.broadcast %w dims [1] : tensor<8xf32> -> tensor<4x8xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>]}
      return %b, %s : tensor<4x8xf32>, tensor<8xf32>
    }
    func.func @backward_weight(%x: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[], []]>}, %s: tensor<8xf32> {rota.sharding = #rota.sharding<[[]]>}) {
      rota.accumulate @gain, %s : tensor<8xf32>
      return
    }
  }
}

// -----

// Rows whose other readers read no row behind the counts are counted, whoever makes
// them; the counts come first, divided as the rows are before and after.
// CHECK-LABEL: func.func @counted
// CHECK: %[[THEIRS:.*]] = rota.reshard %[[COUNTS:.*]] from <{{\[\[}}expert], []]> to <{{\[\[}}], [expert]]> reason "counts of rows that travel"
// CHECK: rota.reshard_rows %{{.*}} sent %[[THEIRS]] received %[[COUNTS]] blocks = 2 fill = 2.500000e-01 from <{{\[\[}}], [expert], []]> to <{{\[\[}}expert], [], []]> reason "operand of 'rota.combine'"
rota.mesh <expert = 2>
func.func @counted(%rows: tensor<2x8x4xf32> {rota.sharding = #rota.sharding<[[], [expert], []]>}, %places: tensor<2x3x2xi32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, %counts: tensor<2x4xi32> {rota.sharding = #rota.sharding<[[expert], []]>}) -> (tensor<2x3x4xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}) {
  %y = rota.combine %rows, %places counts %counts blocks = 2 fill = 0.25 : (tensor<2x8x4xf32>, tensor<2x3x2xi32>, tensor<2x4xi32>) -> tensor<2x3x4xf32> {rota.factors = [#rota.dimension<[expert]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  return %y : tensor<2x3x4xf32>
}

// -----

// The same rows leave the function, where somebody may read all of them.
// CHECK-LABEL: func.func @leaving
// CHECK-NOT: rota.reshard_rows
rota.mesh <expert = 2>
func.func @leaving(%rows: tensor<2x8x4xf32> {rota.sharding = #rota.sharding<[[], [expert], []]>}, %places: tensor<2x3x2xi32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, %counts: tensor<2x4xi32> {rota.sharding = #rota.sharding<[[expert], []]>}) -> (tensor<2x3x4xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, tensor<2x8x4xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}) {
  %y = rota.combine %rows, %places counts %counts blocks = 2 fill = 0.25 : (tensor<2x8x4xf32>, tensor<2x3x2xi32>, tensor<2x4xi32>) -> tensor<2x3x4xf32> {rota.factors = [#rota.dimension<[expert]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  return %y, %rows : tensor<2x3x4xf32>, tensor<2x8x4xf32>
}

// -----

// A count of rows is summed up where it is made, also where only a product of it
// is used: backward gives the bits that it gives for a count of forward's.
// CHECK-LABEL: func.func @count
// CHECK: %[[N:.*]] = rota.grouped_bias_grad
// CHECK-NEXT: %[[R:.*]] = rota.reshard %[[N]] from <{{\[\[}}], []] unreduced [data]> to <{{\[\[}}], []]> reason "partial sums of 'rota.grouped_bias_grad'"
// CHECK-NEXT: %[[S:.*]] = rota.reshape %[[R]]
// CHECK-NEXT: arith.mulf %[[S]]
rota.mesh <data = 2>
func.func @count(%counts: tensor<4x2xi32> {rota.sharding = #rota.sharding<[[data], []]>}, %x: tensor<2xf32> {rota.sharding = #rota.sharding<[[]]>}) -> (tensor<4x2xf32> {rota.sharding = #rota.sharding<[[], []]>}) {
  %ones = arith.constant {rota.factors = [#rota.dimension<[data]>, #rota.dimension<[]>, #rota.dimension<[]>]} dense<1.0> : tensor<4x8x1xf32>
  %n = rota.grouped_bias_grad %ones, %counts : (tensor<4x8x1xf32>, tensor<4x2xi32>) -> tensor<2x1xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[data]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  %s = rota.reshape %n : tensor<2x1xf32> -> tensor<2xf32>
  %y = arith.mulf %s, %x : tensor<2xf32>
  %z = rota.broadcast %y dims [1] : tensor<2xf32> -> tensor<4x2xf32>
  return %z : tensor<4x2xf32>
}

// -----

// A count that is a gradient stays a sum, as gradients do.
// CHECK: rota.param @bias
// CHECK-SAME: compute<{{\[\[}}]] unreduced [data]>
// CHECK-LABEL: func.func @gradient
// CHECK-NOT: rota.reshard
rota.mesh <data = 2>
rota.param @bias : tensor<2xf32> axes ["experts"] init #rota.constant<value = 0.0> placement <whole [2] compute <[[]]> storage <[[]]> optimizer <[[]]>>
func.func @gradient(%counts: tensor<4x2xi32> {rota.sharding = #rota.sharding<[[data], []]>}) {
  %ones = arith.constant {rota.factors = [#rota.dimension<[data]>, #rota.dimension<[]>, #rota.dimension<[]>]} dense<1.0> : tensor<4x8x1xf32>
  %n = rota.grouped_bias_grad %ones, %counts : (tensor<4x8x1xf32>, tensor<4x2xi32>) -> tensor<2x1xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[data]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
  %s = rota.reshape %n : tensor<2x1xf32> -> tensor<2xf32>
  rota.accumulate @bias, %s : tensor<2xf32>
  return
}

// -----

// Each rank adds a quarter of a bias to rows that are a sum: the sum is made of the
// tokens, which are fewer.
// CHECK-LABEL: func.func @biased
// CHECK: %[[Y:.*]] = rota.grouped_product
// CHECK: %[[QUARTER:.*]] = arith.constant {{.*}}dense<2.500000e-01>
// CHECK: %[[SHARE:.*]] = arith.mulf %arg2, %[[QUARTER]]
// CHECK: %[[Z:.*]] = rota.grouped_bias %[[Y]], %[[SHARE]]
// CHECK: %[[T:.*]] = rota.combine %[[Z]]
// CHECK: %[[R:.*]] = rota.reshard %[[T]] from <{{.*}} unreduced [tensor]> to <{{.*}}> reason "partial sums of 'rota.combine'"
// CHECK-NOT: rota.reshard
// CHECK: return %[[R]]
rota.mesh <tensor = 4>
func.func @biased(%h: tensor<2x32x16xf32> {rota.sharding = #rota.sharding<[[], [], [tensor]]>}, %w: tensor<8x16x4xf32> {rota.sharding = #rota.sharding<[[], [tensor], []]>}, %b: tensor<8x4xf32>, %counts: tensor<2x8xi32>, %places: tensor<2x16x2xi32>) -> (tensor<2x16x4xf32> {rota.sharding = #rota.sharding<[[], [], []]>}) {
  %y = rota.grouped_product %h, %w, %counts : (tensor<2x32x16xf32>, tensor<8x16x4xf32>, tensor<2x8xi32>) -> tensor<2x32x4xf32> {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[tensor]>, #rota.dimension<[]>]}
  %z = rota.grouped_bias %y, %b, %counts : tensor<2x32x4xf32>, tensor<8x4xf32>, tensor<2x8xi32>
  %t = rota.combine %z, %places : (tensor<2x32x4xf32>, tensor<2x16x2xi32>) -> tensor<2x16x4xf32>
  return %t : tensor<2x16x4xf32>
}
