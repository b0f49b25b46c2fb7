// RUN: rota-opt %s --split-input-file --verify-diagnostics
// A case for each constraint of the ops of a mixture of experts.

// route C1: more choices than experts
func.func @f(%z: tensor<1x2x2xf32>) {
  // expected-error @+1 {{expected from 1 to 2 choices of 2 experts, got 3}}
  %w, %e = rota.route %z scaling = 1.0 : (tensor<1x2x2xf32>) -> (tensor<1x2x3xf32>, tensor<1x2x3xi32>)
  return
}

// -----

// route C1: weights beside experts
func.func @f(%z: tensor<1x2x4xf32>) {
  // expected-error @+1 {{expected weights of shape [1, 2, 2], got 'tensor<1x2x3xf32>'}}
  %w, %e = rota.route %z scaling = 1.0 : (tensor<1x2x4xf32>) -> (tensor<1x2x3xf32>, tensor<1x2x2xi32>)
  return
}

// -----

// route C1: the element type of logits
func.func @f(%z: tensor<1x2x4xf32>) {
  // expected-error @+1 {{expected weights with elements of type 'f32', got 'tensor<1x2x2xf64>'}}
  %w, %e = rota.route %z scaling = 1.0 : (tensor<1x2x4xf32>) -> (tensor<1x2x2xf64>, tensor<1x2x2xi32>)
  return
}

// -----

// route C2: a bias of another size
func.func @f(%z: tensor<1x2x4xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{expected a bias of shape [4], got 'tensor<2xf32>'}}
  %w, %e = rota.route %z bias %b scaling = 1.0 : (tensor<1x2x4xf32>, tensor<2xf32>) -> (tensor<1x2x2xf32>, tensor<1x2x2xi32>)
  return
}

// -----

// route C3: groups alone
func.func @f(%z: tensor<1x2x4xf32>) {
  // expected-error @+1 {{expected groups and top_groups together, got groups alone}}
  %w, %e = rota.route %z groups = 2 scaling = 1.0 : (tensor<1x2x4xf32>) -> (tensor<1x2x2xf32>, tensor<1x2x2xi32>)
  return
}

// -----

// route C3: groups of unequal size
func.func @f(%z: tensor<1x2x4xf32>) {
  // expected-error @+1 {{expected a number of groups that divides 4 experts, got 3}}
  %w, %e = rota.route %z groups = 3 top_groups = 2 scaling = 1.0 : (tensor<1x2x4xf32>) -> (tensor<1x2x2xf32>, tensor<1x2x2xi32>)
  return
}

// -----

// route C3: too few groups for the choices
func.func @f(%z: tensor<1x2x4xf32>) {
  // expected-error @+1 {{expected from 1 to 2 top groups of 2 experts each that have 3 experts or more, got 1}}
  %w, %e = rota.route %z groups = 2 top_groups = 1 scaling = 1.0 : (tensor<1x2x4xf32>) -> (tensor<1x2x3xf32>, tensor<1x2x3xi32>)
  return
}

// -----

// route C4: a scaling of zero
func.func @f(%z: tensor<1x2x4xf32>) {
  // expected-error @+1 {{expected a finite scaling above 0, got 0}}
  %w, %e = rota.route %z scaling = 0.0 : (tensor<1x2x4xf32>) -> (tensor<1x2x2xf32>, tensor<1x2x2xi32>)
  return
}

// -----

// route_grad C1: the result's type
func.func @f(%w: tensor<1x2x2xf32>, %z: tensor<1x2x4xf32>, %e: tensor<1x2x2xi32>) {
  // expected-error @+1 {{expected a result of type 'tensor<1x2x4xf32>', got 'tensor<1x2x2xf32>'}}
  %d = rota.route_grad %w, %z, %e scaling = 1.0 : (tensor<1x2x2xf32>, tensor<1x2x4xf32>, tensor<1x2x2xi32>) -> tensor<1x2x2xf32>
  return
}

// -----

// route_grad C2: a negative scaling
func.func @f(%w: tensor<1x2x2xf32>, %z: tensor<1x2x4xf32>, %e: tensor<1x2x2xi32>) {
  // expected-error @+1 {{expected a finite scaling above 0, got -1}}
  %d = rota.route_grad %w, %z, %e scaling = -1.0 : (tensor<1x2x2xf32>, tensor<1x2x4xf32>, tensor<1x2x2xi32>) -> tensor<1x2x4xf32>
  return
}

// -----

// expert_places C1: counts of another batch
func.func @f(%e: tensor<2x3x2xi32>) {
  // expected-error @+1 {{expected counts of shape [2, 4], got 'tensor<1x4xi32>'}}
  %p, %c = rota.expert_places %e rows = 8 : tensor<2x3x2xi32> -> tensor<1x4xi32>
  return
}

// -----

// expert_places C1: parts of unequal size
func.func @f(%e: tensor<2x3x2xi32>) {
  // expected-error @+1 {{expected a number of parts that divides 3 tokens of a sequence, got 2}}
  %p, %c = rota.expert_places %e rows = 8 parts = 2 : tensor<2x3x2xi32> -> tensor<4x4xi32>
  return
}

// -----

// expert_places C1: counts of sequences, not of their parts
func.func @f(%e: tensor<2x4x2xi32>) {
  // expected-error @+1 {{expected counts of shape [4, 4], got 'tensor<2x4xi32>'}}
  %p, %c = rota.expert_places %e rows = 8 parts = 2 : tensor<2x4x2xi32> -> tensor<2x4xi32>
  return
}

// -----

// expert_places C2: blocks that do not divide the rows
func.func @f(%e: tensor<2x3x2xi32>) {
  // expected-error @+1 {{expected a number of blocks that divides 9 rows and 4 experts, got 2}}
  %p, %c = rota.expert_places %e rows = 9 blocks = 2 : tensor<2x3x2xi32> -> tensor<2x4xi32>
  return
}

// -----

// expert_places C3: no capacity
func.func @f(%e: tensor<2x3x2xi32>) {
  // expected-error @+1 {{expected a capacity of 1 row or more, got 0}}
  %p, %c = rota.expert_places %e rows = 8 capacity = 0 : tensor<2x3x2xi32> -> tensor<2x4xi32>
  return
}

// -----

// expert_places C4: others without a capacity
func.func @f(%e: tensor<2x3x2xi32>, %a: tensor<4x4xi32>, %o: tensor<i32>) {
  // expected-error @+1 {{expected a capacity beside others, got none}}
  %p, %c = rota.expert_places %e others %a offset %o rows = 8 : tensor<2x3x2xi32>, tensor<4x4xi32>, tensor<i32> -> tensor<2x4xi32>
  return
}

// -----

// expert_places C4: others of some sequences alone
func.func @f(%e: tensor<2x3x2xi32>, %a: tensor<3x4xi32>, %o: tensor<i32>) {
  // expected-error @+1 {{expected others of a multiple of 2 parts, got 3}}
  %p, %c = rota.expert_places %e others %a offset %o rows = 8 capacity = 2 : tensor<2x3x2xi32>, tensor<3x4xi32>, tensor<i32> -> tensor<2x4xi32>
  return
}

// -----

// expert_places C4: other experts
func.func @f(%e: tensor<2x3x2xi32>, %a: tensor<4x3xi32>, %o: tensor<i32>) {
  // expected-error @+1 {{expected others of shape [4, 4], got 'tensor<4x3xi32>'}}
  %p, %c = rota.expert_places %e others %a offset %o rows = 8 capacity = 2 : tensor<2x3x2xi32>, tensor<4x3xi32>, tensor<i32> -> tensor<2x4xi32>
  return
}

// -----

// dispatch C1: parts of unequal size
func.func @f(%x: tensor<1x3x4xf32>, %p: tensor<1x3x2xi32>) {
  // expected-error @+1 {{expected a number of parts that divides 3 tokens of a sequence, got 2}}
  %r = rota.dispatch %x, %p parts = 2 : (tensor<1x3x4xf32>, tensor<1x3x2xi32>) -> tensor<2x8x4xf32>
  return
}

// -----

// dispatch C1: rows of sequences, not of their parts
func.func @f(%x: tensor<1x4x4xf32>, %p: tensor<1x4x2xi32>) {
  // expected-error @+1 {{expected rows of shape [2, 8, 4], got 'tensor<1x8x4xf32>'}}
  %r = rota.dispatch %x, %p parts = 2 : (tensor<1x4x4xf32>, tensor<1x4x2xi32>) -> tensor<1x8x4xf32>
  return
}

// -----

// dispatch C1: rows of another width
func.func @f(%x: tensor<1x2x4xf32>, %p: tensor<1x2x2xi32>) {
  // expected-error @+1 {{expected rows of shape [1, 8, 4], got 'tensor<1x8x3xf32>'}}
  %r = rota.dispatch %x, %p : (tensor<1x2x4xf32>, tensor<1x2x2xi32>) -> tensor<1x8x3xf32>
  return
}

// -----

// dispatch C1: rows of another element type
func.func @f(%x: tensor<1x2x4xf32>, %p: tensor<1x2x2xi32>) {
  // expected-error @+1 {{expected rows with elements of type 'f32', got 'tensor<1x8x4xbf16>'}}
  %r = rota.dispatch %x, %p : (tensor<1x2x4xf32>, tensor<1x2x2xi32>) -> tensor<1x8x4xbf16>
  return
}

// -----

// dispatch C2: weights beside places
func.func @f(%x: tensor<1x2x4xf32>, %p: tensor<1x2x2xi32>, %w: tensor<1x2x3xf32>) {
  // expected-error @+1 {{expected weights of shape [1, 2, 2], got 'tensor<1x2x3xf32>'}}
  %r = rota.dispatch %x, %p weights %w : (tensor<1x2x4xf32>, tensor<1x2x2xi32>, tensor<1x2x3xf32>) -> tensor<1x8x4xf32>
  return
}

// -----

// dispatch C3: an offset is a scalar
func.func @f(%x: tensor<1x2x4xf32>, %p: tensor<1x2x2xi32>, %o: tensor<1xi32>) {
  // expected-error @+1 {{expected an offset of shape [], got 'tensor<1xi32>'}}
  %r = rota.dispatch %x, %p offset %o : (tensor<1x2x4xf32>, tensor<1x2x2xi32>, tensor<1xi32>) -> tensor<1x8x4xf32>
  return
}

// -----

// combine C1: places of other tokens
func.func @f(%r: tensor<1x8x4xf32>, %p: tensor<1x3x2xi32>) {
  // expected-error @+1 {{expected places of shape [1, 2, 2], got 'tensor<1x3x2xi32>'}}
  %x = rota.combine %r, %p : (tensor<1x8x4xf32>, tensor<1x3x2xi32>) -> tensor<1x2x4xf32>
  return
}

// -----

// row_dot C1: the result's shape
func.func @f(%r: tensor<1x8x4xf32>) {
  // expected-error @+1 {{expected a result of shape [1, 8, 1], got 'tensor<1x1x8xf32>'}}
  %d = rota.row_dot %r, %r : tensor<1x8x4xf32> -> tensor<1x1x8xf32>
  return
}

// -----

// choice_dot C1: the result's shape
func.func @f(%x: tensor<1x2x4xf32>, %r: tensor<1x8x4xf32>, %p: tensor<1x2x2xi32>) {
  // expected-error @+1 {{expected a result of shape [1, 2, 2], got 'tensor<1x2x1xf32>'}}
  %d = rota.choice_dot %x, %r, %p : (tensor<1x2x4xf32>, tensor<1x8x4xf32>, tensor<1x2x2xi32>) -> tensor<1x2x1xf32>
  return
}

// -----

// grouped_product C1: weights stored the other way
func.func @f(%x: tensor<1x8x4xf32>, %w: tensor<2x4x6xf32>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected weights of shape [2, 4, 4], got 'tensor<2x4x6xf32>'}}
  %y = rota.grouped_product %x, %w, %c transposed : (tensor<1x8x4xf32>, tensor<2x4x6xf32>, tensor<1x2xi32>) -> tensor<1x8x4xf32>
  return
}

// -----

// grouped_product C1: counts of other experts
func.func @f(%x: tensor<1x8x4xf32>, %w: tensor<2x4x6xf32>, %c: tensor<1x3xi32>) {
  // expected-error @+1 {{expected counts of shape [1, 2], got 'tensor<1x3xi32>'}}
  %y = rota.grouped_product %x, %w, %c : (tensor<1x8x4xf32>, tensor<2x4x6xf32>, tensor<1x3xi32>) -> tensor<1x8x6xf32>
  return
}

// -----

// grouped_product C2: blocks that do not divide the experts
func.func @f(%x: tensor<1x8x4xf32>, %w: tensor<2x4x6xf32>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected a number of blocks that divides 8 rows and 2 experts, got 4}}
  %y = rota.grouped_product %x, %w, %c blocks = 4 : (tensor<1x8x4xf32>, tensor<2x4x6xf32>, tensor<1x2xi32>) -> tensor<1x8x6xf32>
  return
}

// -----

// grouped_product C3: one element type
func.func @f(%x: tensor<1x8x4xf32>, %w: tensor<2x4x6xbf16>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected weights with elements of type 'f32', got 'tensor<2x4x6xbf16>'}}
  %y = rota.grouped_product %x, %w, %c : (tensor<1x8x4xf32>, tensor<2x4x6xbf16>, tensor<1x2xi32>) -> tensor<1x8x6xf32>
  return
}

// -----

// grouped_product C5: an offset is a scalar
func.func @f(%x: tensor<1x8x4xf32>, %w: tensor<2x4x6xf32>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected an offset of shape [], got 'tensor<1x2xi32>'}}
  %y = rota.grouped_product %x, %w, %c offset %c : (tensor<1x8x4xf32>, tensor<2x4x6xf32>, tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x8x6xf32>
  return
}

// -----

// grouped_product_grad C1: rows of both operands
func.func @f(%x: tensor<1x8x4xf32>, %d: tensor<1x6x6xf32>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected rhs of shape [1, 8, 6], got 'tensor<1x6x6xf32>'}}
  %w = rota.grouped_product_grad %x, %d, %c : (tensor<1x8x4xf32>, tensor<1x6x6xf32>, tensor<1x2xi32>) -> tensor<2x4x6xf32>
  return
}

// -----

// grouped_product_grad C2: no blocks
func.func @f(%x: tensor<1x8x4xf32>, %d: tensor<1x8x6xf32>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected a number of blocks that divides 8 rows and 2 experts, got 0}}
  %w = rota.grouped_product_grad %x, %d, %c blocks = 0 : (tensor<1x8x4xf32>, tensor<1x8x6xf32>, tensor<1x2xi32>) -> tensor<2x4x6xf32>
  return
}

// -----

// grouped_product_grad C3: one element type
func.func @f(%x: tensor<1x8x4xf32>, %d: tensor<1x8x6xbf16>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected rhs with elements of type 'f32', got 'tensor<1x8x6xbf16>'}}
  %w = rota.grouped_product_grad %x, %d, %c : (tensor<1x8x4xf32>, tensor<1x8x6xbf16>, tensor<1x2xi32>) -> tensor<2x4x6xf32>
  return
}

// -----

// grouped_bias C1: a bias of another width
func.func @f(%x: tensor<1x8x4xf32>, %b: tensor<2x3xf32>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected a bias of shape [2, 4], got 'tensor<2x3xf32>'}}
  %y = rota.grouped_bias %x, %b, %c : tensor<1x8x4xf32>, tensor<2x3xf32>, tensor<1x2xi32>
  return
}

// -----

// grouped_bias C2: blocks that do not divide the rows
func.func @f(%x: tensor<1x7x4xf32>, %b: tensor<2x4xf32>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected a number of blocks that divides 7 rows and 2 experts, got 2}}
  %y = rota.grouped_bias %x, %b, %c blocks = 2 : tensor<1x7x4xf32>, tensor<2x4xf32>, tensor<1x2xi32>
  return
}

// -----

// grouped_bias_grad C1: the result's width
func.func @f(%d: tensor<1x8x4xf32>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected a result of shape [2, 4], got 'tensor<2x3xf32>'}}
  %b = rota.grouped_bias_grad %d, %c : (tensor<1x8x4xf32>, tensor<1x2xi32>) -> tensor<2x3xf32>
  return
}

// -----

// grouped_bias_grad C2: counts of other experts
func.func @f(%d: tensor<1x8x4xf32>, %c: tensor<1x3xi32>) {
  // expected-error @+1 {{expected counts of shape [1, 2], got 'tensor<1x3xi32>'}}
  %b = rota.grouped_bias_grad %d, %c : (tensor<1x8x4xf32>, tensor<1x3xi32>) -> tensor<2x4xf32>
  return
}

// -----

// grouped_product C4: more rows than there are
func.func @f(%x: tensor<1x8x4xf32>, %w: tensor<2x4x6xf32>, %c: tensor<1x2xi32>) -> tensor<1x8x6xf32> {
  // expected-error@+1 {{expected a fill above 0 and at most 1, got 1.5}}
  %y = rota.grouped_product %x, %w, %c fill = 1.5 : (tensor<1x8x4xf32>, tensor<2x4x6xf32>, tensor<1x2xi32>) -> tensor<1x8x6xf32>
  return %y : tensor<1x8x6xf32>
}

// -----

// grouped_product_grad C4: no rows
func.func @f(%x: tensor<1x8x4xf32>, %y: tensor<1x8x6xf32>, %c: tensor<1x2xi32>) -> tensor<2x4x6xf32> {
  // expected-error@+1 {{expected a fill above 0 and at most 1, got 0}}
  %d = rota.grouped_product_grad %x, %y, %c fill = 0.0 : (tensor<1x8x4xf32>, tensor<1x8x6xf32>, tensor<1x2xi32>) -> tensor<2x4x6xf32>
  return %d : tensor<2x4x6xf32>
}

// -----

// route C5: a rate of no bias
func.func @f(%z: tensor<2x3x4xf32>) {
  // expected-error @+1 {{expected a bias for a bias_rate of 0.001}}
  %w, %e = rota.route %z scaling = 1.0 bias_rate = 0.001 : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi32>)
  return
}

// -----

// route C5: a rate of 0
func.func @f(%z: tensor<2x3x4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{expected a finite bias_rate above 0, got 0}}
  %w, %e = rota.route %z bias %b scaling = 1.0 bias_rate = 0.0 : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi32>)
  return
}

// -----

// observe C1: counts without sequences
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%c: tensor<4xi32>) -> tensor<4xi32> {
      // expected-error @+1 {{expected counts of rank 2, got 'tensor<4xi32>'}}
      rota.observe "load" %c : tensor<4xi32>
      return %c : tensor<4xi32>
    }
  }
}

// -----

// observe C2: rows that add up to nothing
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%c: tensor<2x4xi32>) -> tensor<2x4xi32> {
      // expected-error @+1 {{expected 1 or more for each row, got 0}}
      rota.observe "load" %c each = 0 : tensor<2x4xi32>
      return %c : tensor<2x4xi32>
    }
  }
}

// -----

// observe C2: no part
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%c: tensor<2x4xi32>) -> tensor<2x4xi32> {
      // expected-error @+1 {{expected 1 part of a sequence or more, got 0}}
      rota.observe "load" %c parts = 0 : tensor<2x4xi32>
      return %c : tensor<2x4xi32>
    }
  }
}

// -----

// observe C3: outside of layers
func.func @f(%c: tensor<2x4xi32>) {
  // expected-error @+1 {{expected to stand in a function of a 'rota.layer'}}
  rota.observe "load" %c : tensor<2x4xi32>
  return
}

// -----

// observed_mean C1: a mean without columns
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%c: tensor<2x4xi32>) -> tensor<f32> {
      rota.observe "load" %c : tensor<2x4xi32>
      // expected-error @+1 {{expected a result of rank 1, got 'tensor<f32>'}}
      %mean = rota.observed_mean "load" : tensor<f32>
      return %mean : tensor<f32>
    }
  }
}

// -----

// observed_mean C2: outside of layers
func.func @f() -> tensor<4xf32> {
  // expected-error @+1 {{expected to stand in a function of a 'rota.layer'}}
  %mean = rota.observed_mean "load" : tensor<4xf32>
  return %mean : tensor<4xf32>
}

// -----

// dispatch C4: blocks that do not divide the experts
func.func @f(%x: tensor<1x2x4xf32>, %p: tensor<1x2x2xi32>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected a number of blocks that divides 8 rows and 2 experts, got 4}}
  %r = rota.dispatch %x, %p counts %c blocks = 4 : (tensor<1x2x4xf32>, tensor<1x2x2xi32>, tensor<1x2xi32>) -> tensor<1x8x4xf32>
  return
}

// -----

// dispatch C5: a fill without counts
func.func @f(%x: tensor<1x2x4xf32>, %p: tensor<1x2x2xi32>) {
  // expected-error @+1 {{expected counts with blocks or a fill, got none}}
  %r = rota.dispatch %x, %p fill = 0.5 : (tensor<1x2x4xf32>, tensor<1x2x2xi32>) -> tensor<1x8x4xf32>
  return
}

// -----

// combine C4: counts of other sequences
func.func @f(%r: tensor<1x8x4xf32>, %p: tensor<1x2x2xi32>, %c: tensor<2x2xi32>) {
  // expected-error @+1 {{expected counts of shape [1, 2], got 'tensor<2x2xi32>'}}
  %x = rota.combine %r, %p counts %c : (tensor<1x8x4xf32>, tensor<1x2x2xi32>, tensor<2x2xi32>) -> tensor<1x2x4xf32>
  return
}

// -----

// combine C5: blocks without counts
func.func @f(%r: tensor<1x8x4xf32>, %p: tensor<1x2x2xi32>) {
  // expected-error @+1 {{expected counts with blocks or a fill, got none}}
  %x = rota.combine %r, %p blocks = 2 : (tensor<1x8x4xf32>, tensor<1x2x2xi32>) -> tensor<1x2x4xf32>
  return
}

// -----

// choice_dot C4: more than all
func.func @f(%x: tensor<1x2x4xf32>, %r: tensor<1x8x4xf32>, %p: tensor<1x2x2xi32>, %c: tensor<1x2xi32>) {
  // expected-error @+1 {{expected a fill above 0 and at most 1, got 1.5}}
  %d = rota.choice_dot %x, %r, %p counts %c fill = 1.5 : (tensor<1x2x4xf32>, tensor<1x8x4xf32>, tensor<1x2x2xi32>, tensor<1x2xi32>) -> tensor<1x2x2xf32>
  return
}

// -----

// reshard_rows C1: a matrix
rota.mesh <expert = 2>
func.func @f(%x: tensor<8x4xf32>, %c: tensor<8x2xi32>) {
  // expected-error @+1 {{expected rows of rank 3, got 'tensor<8x4xf32>'}}
  %y = rota.reshard_rows %x sent %c received %c from <[[expert], []]> to <[[], [expert]]> reason "test" : tensor<8x4xf32>, tensor<8x2xi32>
  return
}

// -----

// reshard_rows C2: blocks that do not divide the rows
rota.mesh <expert = 2>
func.func @f(%x: tensor<2x9x4xf32>, %c: tensor<2x2xi32>) {
  // expected-error @+1 {{expected a number of blocks that divides 9 rows and 2 experts, got 2}}
  %y = rota.reshard_rows %x sent %c received %c blocks = 2 from <[[expert], [], []]> to <[[], [expert], []]> reason "test" : tensor<2x9x4xf32>, tensor<2x2xi32>
  return
}

// -----

// reshard_rows C3: no part
rota.mesh <expert = 2>
func.func @f(%x: tensor<2x8x4xf32>, %c: tensor<2x2xi32>) {
  // expected-error @+1 {{expected a fill above 0 and at most 1, got 0}}
  %y = rota.reshard_rows %x sent %c received %c fill = 0.0 from <[[expert], [], []]> to <[[], [expert], []]> reason "test" : tensor<2x8x4xf32>, tensor<2x2xi32>
  return
}

// -----

// reshard_rows C4: a sum that was none
rota.mesh <expert = 2>
func.func @f(%x: tensor<2x8x4xf32>, %c: tensor<2x2xi32>) {
  // expected-error @+1 {{expected a value that is unreduced over 'expert' already}}
  %y = rota.reshard_rows %x sent %c received %c from <[[], [], []]> to <[[], [], []] unreduced [expert]> reason "test" : tensor<2x8x4xf32>, tensor<2x2xi32>
  return
}

// -----

// ragged_all_to_all C1: elements of rows
rota.mesh <expert = 2>
func.func @f(%x: tensor<2x8x4xf32>, %s: tensor<2x2xi32>, %r: tensor<2x2xi32>) {
  // expected-error @+1 {{expected to gather dimension 0 or 1, got 2}}
  %y = rota.ragged_all_to_all %x sent %s received %r gather = 2 axes [<expert>] reason "test" : (tensor<2x8x4xf32>, tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x4x8xf32>
  return
}

// -----

// ragged_all_to_all C2: the result gathers nothing
rota.mesh <expert = 2>
func.func @f(%x: tensor<2x8x4xf32>, %s: tensor<2x2xi32>, %r: tensor<1x4xi32>) {
  // expected-error @+1 {{expected a result of type 'tensor<1x16x4xf32>', got 'tensor<1x8x4xf32>'}}
  %y = rota.ragged_all_to_all %x sent %s received %r gather = 1 axes [<expert>] reason "test" : (tensor<2x8x4xf32>, tensor<2x2xi32>, tensor<1x4xi32>) -> tensor<1x8x4xf32>
  return
}

// -----

// ragged_all_to_all C3: counts of the sequences before
rota.mesh <expert = 2>
func.func @f(%x: tensor<2x8x4xf32>, %s: tensor<2x4xi32>, %r: tensor<2x2xi32>) {
  // expected-error @+1 {{expected counts of shape [4, 2], got 'tensor<2x2xi32>'}}
  %y = rota.ragged_all_to_all %x sent %s received %r gather = 0 axes [<expert>] reason "test" : (tensor<2x8x4xf32>, tensor<2x4xi32>, tensor<2x2xi32>) -> tensor<4x4x4xf32>
  return
}

// -----

// ragged_all_to_all C3: counts of too few experts
rota.mesh <expert = 2>
func.func @f(%x: tensor<2x8x4xf32>, %s: tensor<2x2xi32>, %r: tensor<4x2xi32>) {
  // expected-error @+1 {{expected sent counts of shape [2, 4], got 'tensor<2x2xi32>'}}
  %y = rota.ragged_all_to_all %x sent %s received %r gather = 0 axes [<expert>] reason "test" : (tensor<2x8x4xf32>, tensor<2x2xi32>, tensor<4x2xi32>) -> tensor<4x4x4xf32>
  return
}

// -----

// ragged_all_to_all C3: blocks that do not divide the rows of a rank
rota.mesh <expert = 2>
func.func @f(%x: tensor<2x8x4xf32>, %s: tensor<2x4xi32>, %r: tensor<4x2xi32>) {
  // expected-error @+1 {{expected a number of blocks that divides 4 rows and 2 experts, got 3}}
  %y = rota.ragged_all_to_all %x sent %s received %r blocks = 3 gather = 0 axes [<expert>] reason "test" : (tensor<2x8x4xf32>, tensor<2x4xi32>, tensor<4x2xi32>) -> tensor<4x4x4xf32>
  return
}

// -----

// ragged_all_to_all C4: a negative fill
rota.mesh <expert = 2>
func.func @f(%x: tensor<2x8x4xf32>, %s: tensor<2x4xi32>, %r: tensor<4x2xi32>) {
  // expected-error @+1 {{expected a fill above 0 and at most 1, got -0.5}}
  %y = rota.ragged_all_to_all %x sent %s received %r fill = -0.5 gather = 0 axes [<expert>] reason "test" : (tensor<2x8x4xf32>, tensor<2x4xi32>, tensor<4x2xi32>) -> tensor<4x4x4xf32>
  return
}

// -----

// ragged_all_to_all C5: an axis twice
rota.mesh <expert = 2>
func.func @f(%x: tensor<2x8x4xf32>, %s: tensor<2x4xi32>, %r: tensor<4x2xi32>) {
  // expected-error @+1 {{expected each axis at most once in a group, got 'expert' twice}}
  %y = rota.ragged_all_to_all %x sent %s received %r gather = 0 axes [<expert>, <expert>] reason "test" : (tensor<2x8x4xf32>, tensor<2x4xi32>, tensor<4x2xi32>) -> tensor<4x4x4xf32>
  return
}
