// RUN: rota-opt %s --split-input-file --verify-diagnostics --extract-named

// Modules that are no model (ir/rota/Model.h), found by the first pass that
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
// expected-error@+1 {{expected the sum and the weight to be floating-point scalars, got 'tensor<8xf32>'}}
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>)
