// RUN: rota-opt %s --split-input-file --verify-diagnostics --verify-differentiated

// A case per rule, named by its label in the pass's description.

// V1: a missing embed_backward
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return %dz : tensor<4x8xf32>
    }
  }
}
// expected-error@+1 {{expected 'embed_backward' beside it}}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V1: neither a backward nor two halves
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return %dz : tensor<4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
// expected-error@+1 {{expected 'loss_backward', or 'loss_backward_input' and 'loss_backward_weight', for 'loss'}}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}

// -----

// V1: a half without the other
rota.stack @layers layers = 2 pattern [@a] {
  // expected-error@+1 {{expected 'backward', or 'backward_input' and 'backward_weight', for 'a'}}
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward_input(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      return %dz, %dz : tensor<4x8xf32>, tensor<4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V1: a backward and its halves
rota.stack @layers layers = 2 pattern [@a] {
  // expected-error@+1 {{expected 'backward', or 'backward_input' and 'backward_weight', for 'a'}}
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return %dz : tensor<4x8xf32>
    }
    func.func @backward_input(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      return %dz, %dz : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward_weight(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V1: parts that disagree
rota.stack @layers layers = 2 pattern [@a] {
  // expected-error@+1 {{expected 'a' to be split as 'loss' is}}
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward_input(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      return %dz, %dz : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward_weight(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V2: a backward without its residual
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    // expected-error@+1 {{expected the signature '(tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>', got '(tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>'}}
    func.func @backward(%x: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return %dz : tensor<4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V2: halves that disagree about what crosses
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward_input(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      return %dz : tensor<4x8xf32>
    }
    // expected-error@+1 {{expected the signature '(tensor<4x8xf32>, tensor<4x8xf32>) -> ()', got}}
    func.func @backward_weight(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward_input(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}
func.func @loss_backward_weight(%x: tensor<4x8xf32>, %t: tensor<4xi32>) {
  return
}

// -----

// V2: a loss_backward without a cotangent
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return %dz : tensor<4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
// expected-error@+1 {{expected the signature '(tensor<4x8xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>)', got}}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}

// -----

// V3: a gradient that is never accumulated
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    // expected-note@+1 {{the parameter}}
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    // expected-error@+1 {{expected 1 accumulations into the gradient of 'weight', got 0}}
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      return %dz : tensor<4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V3: one that is accumulated twice
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    // expected-note@+1 {{the parameter}}
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    // expected-error@+1 {{expected 1 accumulations into the gradient of 'weight', got 2}}
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return %dz : tensor<4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V3: one of a parameter that is not used
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    // expected-note@+1 {{the parameter}}
    rota.param @unused : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    // expected-error@+1 {{expected 0 accumulations into the gradient of 'unused', got 1}}
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      rota.accumulate @unused, %g : tensor<8x8xf32>
      return %dz : tensor<4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V3: an accumulation in the forward
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      // expected-error@+1 {{expected gradients of 'weight' outside 'forward'}}
      rota.accumulate @weight, %w : tensor<8x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return %dz : tensor<4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V3: an accumulation in the input half
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward_input(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      // expected-error@+1 {{expected gradients of 'weight' outside 'backward_input'}}
      rota.accumulate @weight, %w : tensor<8x8xf32>
      return %dz, %dz : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward_weight(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      return
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward_input(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}
func.func @loss_backward_weight(%x: tensor<4x8xf32>, %t: tensor<4xi32>) {
  return
}

// -----

// V4: a name in a backward
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %w = rota.read @weight : tensor<8x8xf32>
      %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %z = math.tanh %y : tensor<4x8xf32>
      return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %g = rota.einsum "bn,bk->kn" %dz, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      rota.accumulate @weight, %g : tensor<8x8xf32>
      // expected-error@+1 {{expected no name in 'backward', where residuals are settled}}
      %n = rota.name "out_proj" %dz : tensor<4x8xf32>
      return %n : tensor<4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
func.func @embed_backward(%x: tensor<4x8xf32>, %dx: tensor<4x8xf32>) {
  return
}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}
