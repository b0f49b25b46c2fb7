// RUN: rota-opt %s --verify-partitioned --split-input-file --verify-diagnostics

// A case per rule, named by its label in the pass's description.

// V1: a mesh
// expected-error@below {{expected a 'rota.mesh' in the module}}
module {
  rota.stack @layers layers = 1 pattern [@a] {
    rota.layer @a {
      func.func private @forward(tensor<2x4xf32>) -> tensor<2x4xf32>
    }
  }
  func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
  func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)
}

// -----

// V1: no reshard
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
      // expected-error@+1 {{expected no reshard or constraint in a partitioned module}}
      %y = rota.reshard %x from <[[data], []]> to <[[], [data]]> reason "test" : tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    }
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// V1: no constraint
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
      // expected-error@+1 {{expected no reshard or constraint in a partitioned module}}
      %y = rota.constrain %x <[[data], []]> : tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    }
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// V2: within a stage
rota.mesh <data = 2, stage = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
      // expected-error@+1 {{expected a group within a stage, got the axis 'stage', whose ranks run different functions}}
      %y = rota.all_reduce sum %x axes [<data>, <stage>] reason "test" : tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    }
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// V3: a placement
rota.mesh <data = 2, tensor = 2>
// expected-error@+1 {{expected a placement}}
rota.param @p : tensor<4x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func private @forward(tensor<2x4xf32>) -> tensor<2x4xf32>
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// V3: one rank's part
rota.mesh <data = 2, tensor = 2>
// expected-error@+1 {{expected the type of one rank's part 'tensor<4x4xf32>', got 'tensor<4x8xf32>'}}
rota.param @p : tensor<4x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> placement <whole [4, 8] compute <[[], [tensor]]> storage <[[], [tensor]]> optimizer <[[], [tensor]]>>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func private @forward(tensor<2x4xf32>) -> tensor<2x4xf32>
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// V4: a residual's type
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    // expected-note@+1 {{the other function}}
    func.func private @forward(tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
    // expected-error@+1 {{expected argument 1 of 'backward' to be as result 1 of 'forward', tensor<2xf32>, got tensor<4xf32>}}
    func.func private @backward(tensor<2x4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// V4: a residual's sharding
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    // expected-note@+1 {{the other function}}
    func.func private @forward(tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32> {rota.sharding = #rota.sharding<[[data]]>})
    // expected-error@+1 {{expected argument 1 of 'backward' to be as result 1 of 'forward', #rota.sharding<[[data]]>, got #rota.sharding<[[tensor]]>}}
    func.func private @backward(tensor<2x4xf32>, tensor<2xf32> {rota.sharding = #rota.sharding<[[tensor]]>}, tensor<2x4xf32>) -> tensor<2x4xf32>
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// V4: an argument for each residual
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func private @forward(tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
    // expected-error@+1 {{expected argument 2 of 'backward'}}
    func.func private @backward(tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// V4: the activation's sums
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func private @forward(tensor<2x4xf32>) -> tensor<2x4xf32>
  }
}
// expected-note@+1 {{the other function}}
func.func private @embed(tensor<2xi32>) -> (tensor<2x4xf32> {rota.sharding = #rota.sharding<[[], []] unreduced [tensor]>})
// expected-error@+1 {{expected argument 0 of 'loss' to be as result 0 of 'embed', #rota.sharding<[[], []] unreduced [tensor]>, got #rota.sharding<[[], []]>}}
func.func private @loss(tensor<2x4xf32> {rota.sharding = #rota.sharding<[[], []]>}, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// V4: the layer's activation
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    // expected-error@+1 {{expected result 0 of 'forward' to be as result 0 of 'embed', #rota.sharding<[[data], []]>, got #rota.sharding<[[tensor], []]>}}
    func.func private @forward(tensor<2x4xf32>) -> (tensor<2x4xf32> {rota.sharding = #rota.sharding<[[tensor], []]>})
  }
}
// expected-note@+1 {{the other function}}
func.func private @embed(tensor<2xi32>) -> (tensor<2x4xf32> {rota.sharding = #rota.sharding<[[data], []]>})
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)

// -----

// V4: the cotangent
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func private @forward(tensor<2x4xf32>) -> tensor<2x4xf32>
  }
}
// expected-note@+1 {{the other function}}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)
// expected-error@+1 {{expected result 2 of 'loss_backward' to be as result 0 of 'embed', tensor<2x4xf32>, got tensor<2x2xf32>}}
func.func private @loss_backward(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x2xf32>)

// -----

// V4: tokens
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func private @forward(tensor<2x4xf32>) -> tensor<2x4xf32>
  }
}
// expected-note@+1 {{the other function}}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)
// expected-error@+1 {{expected argument 0 of 'embed_backward' to be as argument 0 of 'embed', tensor<2xi32>, got tensor<4xi32>}}
func.func private @embed_backward(tensor<4xi32>, tensor<2x4xf32>)

// -----

// V4: what the halves of a backward share
rota.mesh <data = 2, tensor = 2>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func private @forward(tensor<2x4xf32>) -> tensor<2x4xf32>
    // expected-note@+1 {{the other function}}
    func.func private @backward_input(tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>)
    // expected-error@+1 {{expected argument 1 of 'backward_weight' to be as result 1 of 'backward_input', tensor<4xf32>, got tensor<2xf32>}}
    func.func private @backward_weight(tensor<2x4xf32>, tensor<2xf32>)
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)
