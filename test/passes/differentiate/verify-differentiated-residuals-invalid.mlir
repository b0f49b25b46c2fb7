// RUN: rota-opt %s --split-input-file --verify-diagnostics --verify-differentiated

// V5 and V6 of verify-differentiated-invalid.mlir.

// V5: a residual that forward alone offloads
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> {rota.offload}) {
      %y = math.tanh %x : tensor<4x8xf32>
      return %y, %y, %x : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
    }
    // expected-error@+1 {{expected argument 2 to be offloaded as result 2 of 'forward' is}}
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %z: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
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

// V5: a residual that backward alone takes from the host
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
      %y = math.tanh %x : tensor<4x8xf32>
      return %y, %y, %x : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
    }
    // expected-error@+1 {{expected argument 2 to be offloaded as result 2 of 'forward' is not}}
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %z: tensor<4x8xf32> {rota.offload}, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
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

// V5: an offloaded residual before one that stays
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    // expected-error@+1 {{expected offloaded residuals last, result 2 is not offloaded and follows one that is}}
    func.func @forward(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32> {rota.offload}, tensor<4x8xf32>) {
      %y = math.tanh %x : tensor<4x8xf32>
      return %y, %y, %x : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %y: tensor<4x8xf32> {rota.offload}, %z: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
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

// V6: an auxiliary loss in a backward
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %s = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
      rota.auxiliary_loss "s" %s weight = 1.0 coefficient = 0.5 : tensor<f32>
      return %x : tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %s = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
      // expected-error@+1 {{expected no auxiliary loss in 'backward', which would count it again}}
      rota.auxiliary_loss "s" %s weight = 1.0 coefficient = 0.5 : tensor<f32>
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
func.func @loss_weight(%t: tensor<4xi32>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  return %one : tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V6: an observation in a backward
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      return %x : tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %c = arith.constant dense<1> : tensor<4x8xi32>
      // expected-error@+1 {{expected no observation in 'backward', which would count it again}}
      rota.observe "load" %c : tensor<4x8xi32>
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

// V6: two coefficients of one name
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %s = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
      // expected-note@+1 {{the other one}}
      rota.auxiliary_loss "s" %s weight = 1.0 coefficient = 0.5 : tensor<f32>
      // expected-error@+1 {{expected one coefficient of 's', got 0.5 and 0.25}}
      rota.auxiliary_loss "s" %s weight = 1.0 coefficient = 0.25 : tensor<f32>
      return %x : tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
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
func.func @loss_weight(%t: tensor<4xi32>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  return %one : tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}

// -----

// V6: no function of the weight
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %s = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
      rota.auxiliary_loss "s" %s weight = 1.0 coefficient = 0.5 : tensor<f32>
      return %x : tensor<4x8xf32>
    }
    func.func @backward(%x: tensor<4x8xf32>, %dz: tensor<4x8xf32>) -> tensor<4x8xf32> {
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
// expected-error@+1 {{expected 'loss_weight' beside it, for the auxiliary loss 's'}}
func.func @loss(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum : tensor<f32>, tensor<f32>
}
func.func @loss_backward(%x: tensor<4x8xf32>, %t: tensor<4xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>) {
  %sum = rota.reduce sum %x dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %sum, %sum, %x : tensor<f32>, tensor<f32>, tensor<4x8xf32>
}
