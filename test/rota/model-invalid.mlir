// RUN: rota-opt %s --split-input-file --verify-diagnostics --extract-named=extract=logits

// Modules that are no model (ir/rota/model/Model.h), found by the first pass that
// needs one.

// expected-error@+1 {{expected a 'rota.stack' in the model}}
module {
}

// -----

// expected-note@+1 {{the other stack}}
rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
// expected-error@+1 {{expected one stack in a model}}
rota.stack @b layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// expected-error@+1 {{expected functions 'embed' and 'loss' in the model, 'loss' is missing}}
module {
  rota.stack @a layers = 1 pattern [@x] {
    rota.layer @x {
      func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
    }
  }
  func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
}

// -----

rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
// expected-error@+1 {{expected 1 argument and 1 result, got 2 and 1}}
func.func private @embed(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)

// -----

rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
// expected-error@+1 {{expected 2 arguments and 2 results, got 2 and 1}}
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> tensor<f32>

// -----

// A term of the loss says which it is.
rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
// expected-error@+1 {{expected 2 arguments and 2 results, got 2 and 3}}
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)

// -----

// A loss takes the sequence or an equal part of it.
rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
  }
}
func.func private @embed(tensor<2x6xi32>) -> tensor<2x6x8xf32>
// expected-error@+1 {{expected an activation of type 'tensor<2x6x8xf32>' as in the layers, got 'tensor<2x4x8xf32>'}}
func.func private @loss(tensor<2x4x8xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// Terms of the loss have names of their own.
rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
// expected-error@+1 {{expected a name that no other part of the loss has, got 'z'}}
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32> {rota.loss_term = #rota.loss_term<name = "z", coefficient = 1.0>}, tensor<f32> {rota.loss_term = #rota.loss_term<name = "z", coefficient = 2.0>})

// -----

// A term of the loss is a scalar.
rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
// expected-error@+1 {{expected the sum, the weight and terms to be floating-point scalars, got 'tensor<8xf32>'}}
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>, tensor<8xf32> {rota.loss_term = #rota.loss_term<name = "z", coefficient = 1.0>})

// -----

rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
// expected-error@+1 {{expected an activation of type 'tensor<8xf32>' as in the layers, got 'tensor<4xf32>'}}
func.func private @loss(tensor<4xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)

// -----

// expected-error@+1 {{expected an activation of static shape and floating-point elements, got 'tensor<8xi32>'}}
rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<8xi32>) -> tensor<8xi32>
  }
}
func.func private @embed(tensor<8xi32>) -> tensor<8xi32>
func.func private @loss(tensor<8xi32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)

// -----

rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
// expected-error@+1 {{expected the sum, the weight and terms to be floating-point scalars, got 'tensor<8xf32>'}}
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>)

// -----

// Joined parameters have the whole tensor.
rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    rota.param @a : tensor<4x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> joined <tensor = "ab", dimension = 1, begin = 0, size = 16>
    // expected-error@+1 {{expected parameters of all 16 elements of 'ab', got 12}}
    rota.param @b : tensor<4x4xf32> axes ["a", "b"] init #rota.constant<value = 1.0> joined <tensor = "ab", dimension = 1, begin = 8, size = 16>
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)

// -----

// They stand in order.
rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    // expected-error@+1 {{expected the elements of 'ab' from 0 on, got 8}}
    rota.param @b : tensor<4x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> joined <tensor = "ab", dimension = 1, begin = 8, size = 16>
    rota.param @a : tensor<4x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> joined <tensor = "ab", dimension = 1, begin = 0, size = 16>
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)

// -----

// They agree in the other dimensions.
rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    rota.param @a : tensor<4x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> joined <tensor = "ab", dimension = 1, begin = 0, size = 16>
    // expected-error@+1 {{expected all parameters of 'ab' to be joined along one dimension of one shape}}
    rota.param @b : tensor<5x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> joined <tensor = "ab", dimension = 1, begin = 8, size = 16>
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)

// -----

// A tensor's name is no parameter's.
rota.stack @a layers = 1 pattern [@x] {
  rota.layer @x {
    rota.param @a : tensor<4x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> joined <tensor = "ab", dimension = 1, begin = 0, size = 8>
    // expected-error@+1 {{expected all parameters of 'ab' to be joined along one dimension of one shape}}
    rota.param @ab : tensor<4x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0>
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}
func.func private @embed(tensor<8xf32>) -> tensor<8xf32>
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)
