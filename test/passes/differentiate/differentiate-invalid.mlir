// RUN: rota-opt %s --split-input-file --verify-diagnostics --differentiate

// An op without a derivative, named.
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      // expected-error@+1 {{'math.tan' op has no derivative rule}}
      %y = math.tan %x : tensor<8xf32>
      return %y : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %s : tensor<f32>, tensor<f32>
}

// -----

// A table that depends on the input.
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      %q = rota.reshape %x : tensor<8xf32> -> tensor<1x2x1x4xf32>
      %t = rota.reshape %x : tensor<8xf32> -> tensor<2x2x2xf32>
      // expected-error@+1 {{'rota.rope' op has no derivative in its table}}
      %r = rota.rope %q, %t : tensor<1x2x1x4xf32>, tensor<2x2x2xf32>
      %y = rota.reshape %r : tensor<1x2x1x4xf32> -> tensor<8xf32>
      return %y : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %s : tensor<f32>, tensor<f32>
}

// -----

// Control flow.
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    // expected-error@+1 {{'func.func' op expected one block to differentiate, got 2}}
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      llvm.br ^bb1
    ^bb1:
      return %x : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %s : tensor<f32>, tensor<f32>
}

// -----

// A second differentiation.
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
    // expected-error@+1 {{'func.func' op expected a model as built, this function is there already}}
    func.func @backward(%x: tensor<8xf32>, %dy: tensor<8xf32>) -> tensor<8xf32> {
      return %dy : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %s : tensor<f32>, tensor<f32>
}

// -----

// A forward that is not as built.
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    // expected-error@+1 {{'func.func' op expected 1 argument and 1 result, got 1 and 2}}
    func.func @forward(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      return %x, %x : tensor<8xf32>, tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %s : tensor<f32>, tensor<f32>
}
// -----

// The cotangent of an auxiliary loss needs the main loss's weight before the
// first forward.
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
      rota.auxiliary_loss "s" %s weight = 8.0 coefficient = 0.5 : tensor<f32>
      return %x : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
// expected-error@+1 {{expected a weight that depends on the targets alone, as a layer has an auxiliary loss, got one that depends on the activation}}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %s : tensor<f32>, tensor<f32>
}
