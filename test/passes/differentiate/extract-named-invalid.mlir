// RUN: rota-opt %s --split-input-file --verify-diagnostics --extract-named=extract=logits

// No value of that name.
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
// expected-error@+1 {{expected a value named 'logits', got none}}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %s : tensor<f32>, tensor<f32>
}

// -----

// Two values of that name.
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  // expected-note@+1 {{the other value}}
  %a = rota.name "logits" %x : tensor<8xf32>
  // expected-error@+1 {{expected one value named 'logits' in 'loss'}}
  %b = rota.name "logits" %a : tensor<8xf32>
  %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %s : tensor<f32>, tensor<f32>
}

// -----

// The symbol is taken.
// expected-error@+1 {{expected the symbol 'logits' to be free for the named value}}
func.func private @logits()
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @loss(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %a = rota.name "logits" %x : tensor<8xf32>
  %s = rota.reduce sum %x dims [0] : tensor<8xf32> -> tensor<f32>
  return %s, %s : tensor<f32>, tensor<f32>
}

// -----

// A loss without a body.
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      return %x : tensor<8xf32>
    }
  }
}
func.func @embed(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
// expected-error@+1 {{expected one block, got 0}}
func.func private @loss(tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)
