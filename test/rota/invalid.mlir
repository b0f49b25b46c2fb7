// RUN: rota-opt %s --split-input-file --verify-diagnostics

// A case per constraint, named by its label in the op's description.

// normal: the deviation is not negative
// expected-error@+1 {{expected a deviation of at least 0, got -1}}
rota.param @p : tensor<8xf32> axes ["a"] init #rota.normal<mean = 0.0, deviation = -1.0>

// -----

// uniform: low is at most high
// expected-error@+1 {{expected low <= high, got 1 and 0}}
rota.param @p : tensor<8xf32> axes ["a"] init #rota.uniform<low = 1.0, high = 0.0>

// -----

// param C1: a static f32 tensor
// expected-error@+1 {{failed to satisfy constraint}}
rota.param @p : tensor<8xbf16> axes ["a"] init #rota.constant<value = 1.0>

// -----

// param C2: an axis per dimension
// expected-error@+1 {{expected an axis name per dimension, got 1 for 2}}
rota.param @p : tensor<8x8xf32> axes ["a"] init #rota.constant<value = 1.0>

// -----

// param C3: an initializer
// expected-error@+1 {{expected '#rota.normal', '#rota.uniform' or '#rota.constant', got 1 : i64}}
rota.param @p : tensor<8xf32> axes ["a"] init 1

// -----

// param C4: in a module or a layer
rota.stack @layers layers = 1 pattern [@a] {
  // expected-error@+1 {{expected to stand in a module or in a 'rota.layer'}}
  rota.param @p : tensor<8xf32> axes ["a"] init #rota.constant<value = 1.0>
  rota.layer @a {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// param C7: a dimension per placeholder
// expected-error@+1 {{expected a dimension for each placeholder of its name, got 1 for 2}}
rota.param @"a.{b}.{c}" : tensor<8xf32> axes ["a"] init #rota.constant<value = 1.0>

// -----

// param C7: placeholders end
// expected-error@+1 {{expected '}' after each '{' of its name}}
rota.param @"a.}.{b" : tensor<8xf32> axes ["a"] init #rota.constant<value = 1.0>

// -----

// param C7: placeholders of the joined tensor
// expected-error@+1 {{expected a dimension for each placeholder of its name, got 1 for 2}}
rota.param @a : tensor<8xf32> axes ["a"] init #rota.constant<value = 1.0> joined <tensor = "a.{b}.{c}", dimension = 0, begin = 0, size = 8>

// -----

// param C8: a dimension
// expected-error@+1 {{expected a joined dimension from 0 to 1, got 2}}
rota.param @a : tensor<8x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> joined <tensor = "ab", dimension = 2, begin = 0, size = 16>

// -----

// param C8: none with a placeholder
// expected-error@+1 {{expected a joined dimension from 1 to 1, got 0}}
rota.param @a : tensor<8x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> joined <tensor = "ab.{b}", dimension = 0, begin = 0, size = 16>

// -----

// param C8: inside of the tensor
// expected-error@+1 {{expected 8 elements of the 12 of 'ab', got those from 5 on}}
rota.param @a : tensor<8x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> joined <tensor = "ab", dimension = 1, begin = 5, size = 12>

// -----

// layer C1: a forward
rota.stack @layers layers = 1 pattern [@a] {
  // expected-error@+1 {{expected a function 'forward'}}
  rota.layer @a {
    func.func private @other()
  }
}

// -----

// layer C2: one activation type
rota.stack @layers layers = 1 pattern [@a] {
  // expected-error@+1 {{expected the first argument and the first result of 'forward' to be one tensor type}}
  rota.layer @a {
    func.func private @forward(tensor<8xf32>) -> tensor<4xf32>
  }
}

// -----

// stack C1: at least one layer
// expected-error@+1 {{expected at least 1 layer, got 0}}
rota.stack @layers layers = 0 pattern [@a] {
  rota.layer @a {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// stack C2: the pattern is not empty
// expected-error@+1 {{expected a pattern of layer kinds, got none}}
rota.stack @layers layers = 1 pattern [] {
  rota.layer @a {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// stack C2: the pattern has a layer for each kind
// expected-error@+1 {{expected a pattern of at most 1 kinds, one for each layer, got 2}}
rota.stack @layers layers = 1 pattern [@a, @b] {
  rota.layer @a {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
  rota.layer @b {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// stack C2: the pattern names layers
// expected-error@+1 {{expected the pattern to name layers of the stack, 'b' is none}}
rota.stack @layers layers = 1 pattern [@b] {
  rota.layer @a {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// stack C2: the pattern names every one
// expected-error@+1 {{expected the pattern to name every layer kind, 'b' is missing}}
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
  // expected-note@+1 {{the kind}}
  rota.layer @b {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// stack C3: one activation type
// expected-error@+1 {{expected one activation type, 'b' has 'tensor<4xf32>'}}
rota.stack @layers layers = 2 pattern [@a, @b] {
  // expected-note@+1 {{this kind has 'tensor<8xf32>'}}
  rota.layer @a {
    func.func private @forward(tensor<8xf32>) -> tensor<8xf32>
  }
  rota.layer @b {
    func.func private @forward(tensor<4xf32>) -> tensor<4xf32>
  }
}

// -----

// read C1: a parameter
func.func @f() {
  // expected-error@+1 {{expected a parameter, 'weight' is none here}}
  %w = rota.read @weight : tensor<8x8xf32>
  return
}

// -----

// read C2: the parameter's shape
// expected-note@+1 {{the parameter}}
rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
func.func @f() {
  // expected-error@+1 {{expected the parameter's shape 'tensor<8x8xf32>', got 'tensor<8x4xf32>'}}
  %w = rota.read @weight : tensor<8x4xf32>
  return
}

// -----

// read C3: its own layer's parameter
// expected-note@+1 {{the parameter}}
rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
      // expected-error@+1 {{expected a parameter of its own layer, 'weight' stands outside}}
      %w = rota.read @weight : tensor<8x8xf32>
      return %x : tensor<8x8xf32>
    }
  }
}

// -----

// accumulate C1: a parameter
func.func @f(%g: tensor<8x8xf32>) {
  // expected-error@+1 {{expected a parameter, 'weight' is none here}}
  rota.accumulate @weight, %g : tensor<8x8xf32>
  return
}

// -----

// accumulate C2: the parameter's shape
// expected-note@+1 {{the parameter}}
rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
func.func @f(%g: tensor<8x4xf32>) {
  // expected-error@+1 {{expected the parameter's shape 'tensor<8x8xf32>', got 'tensor<8x4xf32>'}}
  rota.accumulate @weight, %g : tensor<8x4xf32>
  return
}

// -----

// accumulate C3: not of a frozen parameter
// expected-note@+1 {{the parameter}}
rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0> frozen
func.func @f(%g: tensor<8x8xf32>) {
  // expected-error@+1 {{expected a parameter with a gradient, 'weight' is frozen}}
  rota.accumulate @weight, %g : tensor<8x8xf32>
  return
}

// -----

// accumulate C2: not bf16
rota.param @weight : tensor<8x8xf32> axes ["in", "out"] init #rota.constant<value = 1.0>
func.func @f(%g: tensor<8x8xbf16>) {
  // expected-error@+1 {{must be statically shaped tensor of 32-bit float or 64-bit float values, but got 'tensor<8x8xbf16>'}}
  rota.accumulate @weight, %g : tensor<8x8xbf16>
  return
}

// -----

// auxiliary_loss C1: a scalar
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
      // expected-error@+1 {{expected a scalar, got 'tensor<8xf32>'}}
      rota.auxiliary_loss "a" %x weight = 1.0 coefficient = 1.0 : tensor<8xf32>
      return %x : tensor<8xf32>
    }
  }
}

// -----

// auxiliary_loss C2: a positive weight
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<f32>) -> tensor<f32> {
      // expected-error@+1 {{expected a weight above 0, got 0}}
      rota.auxiliary_loss "a" %x weight = 0.0 coefficient = 1.0 : tensor<f32>
      return %x : tensor<f32>
    }
  }
}

// -----

// auxiliary_loss C2: a finite coefficient
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<f32>) -> tensor<f32> {
      // expected-error@+1 {{expected a finite coefficient, got}}
      rota.auxiliary_loss "a" %x weight = 1.0 coefficient = 0x7FF0000000000000 : tensor<f32>
      return %x : tensor<f32>
    }
  }
}

// -----

// auxiliary_loss C3: in a layer
func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{expected to stand in a function of a 'rota.layer'}}
  rota.auxiliary_loss "a" %x weight = 1.0 coefficient = 1.0 : tensor<f32>
  return
}

// -----

// auxiliary_cotangent C1: a scalar
func.func @f() {
  // expected-error@+1 {{expected a scalar, got 'tensor<8xf32>'}}
  %c = rota.auxiliary_cotangent "a" : tensor<8xf32>
  return
}

// -----

// name C1: not empty
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a name, got an empty string}}
  %y = rota.name "" %x : tensor<8xf32>
  return
}

// -----

// einsum C1: an equation
func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{expected an equation 'letters,letters->letters' with distinct letters in each, got 'bb,bn->bn'}}
  %y = rota.einsum "bb,bn->bn" %x, %w : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// einsum C2: letters and ranks
func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{expected rank 3 for 'bsk', got 'tensor<4x4xf32>'}}
  %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x4x8xf32>
  return
}

// -----

// einsum C2: a letter has one size
func.func @f(%x: tensor<4x4xf32>, %w: tensor<6x8xf32>) {
  // expected-error@+1 {{expected one size for 'k', got 4 and 6}}
  %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x4xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// einsum C3: a result letter stands in an operand
func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{expected 'm' in an operand of 'bk,kn->bnm'}}
  %y = rota.einsum "bk,kn->bnm" %x, %w : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8x2xf32>
  return
}

// -----

// einsum C3: an operand letter is not alone
func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{expected 'b' in the other operand or the result of 'bk,kn->n'}}
  %y = rota.einsum "bk,kn->n" %x, %w : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<8xf32>
  return
}

// -----

// einsum C4: one element type
func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x8xbf16>) {
  // expected-error@+1 {{expected the right operand with elements of type 'f32', got 'tensor<4x8xbf16>'}}
  %y = rota.einsum "bk,kn->bn" %x, %w : (tensor<4x4xf32>, tensor<4x8xbf16>) -> tensor<4x8xf32>
  return
}

// -----

// reshape C1: the same number of elements
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{expected 16 elements, got 8}}
  %y = rota.reshape %x : tensor<4x4xf32> -> tensor<2x4xf32>
  return
}

// -----

// reshape C2: one element type
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{expected a result with elements of type 'f32', got 'tensor<16xbf16>'}}
  %y = rota.reshape %x : tensor<4x4xf32> -> tensor<16xbf16>
  return
}

// -----

// reduce C1: dimensions of the operand
func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{expected ascending dims below 2, got [2]}}
  %y = rota.reduce sum %x dims [2] : tensor<4x6xf32> -> tensor<4xf32>
  return
}

// -----

// reduce C1: ascending
func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{expected ascending dims below 2, got [1, 0]}}
  %y = rota.reduce sum %x dims [1, 0] : tensor<4x6xf32> -> tensor<f32>
  return
}

// -----

// reduce C2: the shape without dims
func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{expected a result of shape [4], got 'tensor<6xf32>'}}
  %y = rota.reduce max %x dims [1] : tensor<4x6xf32> -> tensor<6xf32>
  return
}

// -----

// reduce C2: the same element type
func.func @f(%x: tensor<4x6xbf16>) {
  // expected-error@+1 {{expected a result with elements of type 'bf16', got 'tensor<4xf32>'}}
  %y = rota.reduce max %x dims [1] : tensor<4x6xbf16> -> tensor<4xf32>
  return
}

// -----

// broadcast C1: dimensions of the result
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected ascending dims below 2, got [2]}}
  %y = rota.broadcast %x dims [2] : tensor<4xf32> -> tensor<4x6xf32>
  return
}

// -----

// broadcast C1: one per operand dimension
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected a dim per operand dimension, got 2 for 'tensor<4xf32>'}}
  %y = rota.broadcast %x dims [0, 1] : tensor<4xf32> -> tensor<4x6xf32>
  return
}

// -----

// broadcast C2: sizes agree
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected size 4 in dimension 1, got 'tensor<4x6xf32>'}}
  %y = rota.broadcast %x dims [1] : tensor<4xf32> -> tensor<4x6xf32>
  return
}

// -----

// broadcast C2: one element type
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected a result with elements of type 'f32', got 'tensor<4x6xbf16>'}}
  %y = rota.broadcast %x dims [0] : tensor<4xf32> -> tensor<4x6xbf16>
  return
}

// -----

// rms_norm C1: the gain is the last dimension
func.func @f(%x: tensor<4x8xf32>, %g: tensor<4xf32>) {
  // expected-error@+1 {{expected a gain of shape [8], got 'tensor<4xf32>'}}
  %y = rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<4x8xf32>, tensor<4xf32>
  return
}

// -----

// rms_norm C2: one type
func.func @f(%x: tensor<4x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{all of {input, result} have same type}}
  %y = "rota.rms_norm"(%x, %g) {epsilon = 1.0e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xbf16>
  return
}

// -----

// rms_norm C3: epsilon is not negative
func.func @f(%x: tensor<4x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{expected an epsilon of at least 0, got -1}}
  %y = rota.rms_norm %x, %g epsilon = -1.0 : tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----

// rms_norm_grad C1: the gain is the last dimension
func.func @f(%x: tensor<4x8xf32>, %g: tensor<4xf32>) {
  // expected-error@+1 {{expected a gain of shape [8], got 'tensor<4xf32>'}}
  %dx, %dg = rota.rms_norm_grad %x, %x, %g epsilon = 1.0e-05 : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  return
}

// -----

// rms_norm_grad C2: one type
func.func @f(%dy: tensor<4x8xbf16>, %x: tensor<4x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{expected a cotangent of type 'tensor<4x8xf32>', got 'tensor<4x8xbf16>'}}
  %dx, %dg = rota.rms_norm_grad %dy, %x, %g epsilon = 1.0e-05 : (tensor<4x8xbf16>, tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}

// -----

// rms_norm_grad C2: the gain's cotangent
func.func @f(%x: tensor<4x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{expected a gain cotangent of shape [8], got 'tensor<4xf32>'}}
  %dx, %dg = rota.rms_norm_grad %x, %x, %g epsilon = 1.0e-05 : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  return
}

// -----

// activation_grad C1: a second result where there is an operand up
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected 2 results for 3 operands, got 1}}
  %dx = rota.activation_grad silu %x, %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// split C1: a dimension of the whole tensor
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected a dimension below 2, got 2}}
  %y = rota.split %x dim = 2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// split C2: the sizes of parts add up
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected parts of 8 in dimension 1, got 7}}
  %y:2 = rota.split %x dim = 1 : (tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x3xf32>)
  return
}

// -----

// concat C2: sizes are those of the whole elsewhere
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected a part of shape [5, 8], got 'tensor<4x8xf32>'}}
  %y = rota.concat %x, %x dim = 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<5x16xf32>
  return
}

// -----

// concat C3: one element type
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected a part with elements of type 'bf16', got 'tensor<4x8xf32>'}}
  %y = rota.concat %x dim = 1 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  return
}

// -----

// rotary_table C1: positions, frequencies, 2
func.func @f() {
  // expected-error@+1 {{expected a result of shape [16, 2, 2], got 'tensor<16x3x2xf32>'}}
  %t = rota.rotary_table frequencies [1.0, 0.1] scale = 1.0 : tensor<16x3x2xf32>
  return
}

// -----

// rotary_table C2: finite frequencies
func.func @f() {
  // expected-error@+1 {{expected finite frequencies, got}}
  %t = "rota.rotary_table"() {frequencies = array<f64: 0x7FF0000000000000>, scale = 1.0 : f64} : () -> tensor<16x1x2xf32>
  return
}

// -----

// rope C1: rank 4
func.func @f(%x: tensor<2x16x4xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error@+1 {{expected an operand of rank 4, got 'tensor<2x16x4xf32>'}}
  %y = rota.rope %x, %t : tensor<2x16x4xf32>, tensor<16x2x2xf32>
  return
}

// -----

// rope C1: an even head
func.func @f(%x: tensor<2x16x3x5xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error@+1 {{expected an even head size, got 5}}
  %y = rota.rope %x, %t : tensor<2x16x3x5xf32>, tensor<16x2x2xf32>
  return
}

// -----

// rope C2: a table of pairs
func.func @f(%x: tensor<2x16x3x4xf32>, %t: tensor<16x3x2xf32>) {
  // expected-error@+1 {{expected a table of shape [16, 2, 2], got 'tensor<16x3x2xf32>'}}
  %y = rota.rope %x, %t : tensor<2x16x3x4xf32>, tensor<16x3x2xf32>
  return
}

// -----

// rope C2: enough positions
func.func @f(%x: tensor<2x16x3x4xf32>, %t: tensor<8x2x2xf32>) {
  // expected-error@+1 {{expected a table of at least 16 positions, got 8}}
  %y = rota.rope %x, %t : tensor<2x16x3x4xf32>, tensor<8x2x2xf32>
  return
}

// -----

// attention C1: shapes of query and key
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x4xf32>, %v: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected a key of shape [2, 16, 2, 8], got 'tensor<2x16x2x4xf32>'}}
  %o, %l = rota.attention %q, %k, %v scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x4xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C1: heads of values
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected a value of shape [2, 16, 2, 8], got 'tensor<2x16x4x8xf32>'}}
  %o, %l = rota.attention %q, %k, %q scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C3: the output has the size of values
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x6xf32>) {
  // expected-error@+1 {{expected an output of shape [2, 16, 4, 6], got 'tensor<2x16x4x8xf32>'}}
  %o, %l = rota.attention %q, %k, %v scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x6xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C2: key heads divide query heads
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x3x8xf32>, %v: tensor<2x16x3x8xf32>) {
  // expected-error@+1 {{expected the key heads to divide the query heads, got 3 and 4}}
  %o, %l = rota.attention %q, %k, %v scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x3x8xf32>, tensor<2x16x3x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C3: the output has the query's type
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected an output of shape [2, 16, 4, 8], got 'tensor<2x16x2x8xf32>'}}
  %o, %l = rota.attention %q, %k, %v scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x2x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C3: logsumexp
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected a logsumexp of shape [2, 4, 16], got 'tensor<2x16x4xf32>'}}
  %o, %l = rota.attention %q, %k, %v scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4xf32>)
  return
}

// -----

// attention C4: a window holds the position itself
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected a window of 1 position or more, got 0}}
  %o, %l = rota.attention %q, %k, %k scale = 0.35 window = 0 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C4: a window is not negative
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected a window of 1 position or more, got -3}}
  %o, %l = rota.attention %q, %k, %k scale = 0.35 window = -3 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C5: a soft cap is positive
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected a finite soft cap above 0, got 0}}
  %o, %l = rota.attention %q, %k, %k scale = 0.35 soft_cap = 0.0 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C5: a soft cap is finite
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected a finite soft cap above 0, got}}
  %o, %l = rota.attention %q, %k, %k scale = 0.35 soft_cap = 0x7FF0000000000000 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C6: a sink for each query head
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{expected sinks of shape [4], got 'tensor<2xf32>'}}
  %o, %l = rota.attention %q, %k, %k sinks %s scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C6: sinks are as wide as logsumexp
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %s: tensor<4xf64>) {
  // expected-error@+1 {{expected sinks with elements of type 'f32', got 'tensor<4xf64>'}}
  %o, %l = rota.attention %q, %k, %k sinks %s scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<4xf64>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C3: an output is not narrower than the query
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected an output with elements of type 'f32', got 'tensor<2x16x4x8xbf16>'}}
  %o, %l = rota.attention %q, %k, %k scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xbf16>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C7: blocks behind without a position
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected 'behind' or a key position with a position}}
  %o, %l = rota.attention %q, %k, %k behind = 1 scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C7: no two places of the keys
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %p: tensor<i32>) {
  // expected-error@+1 {{expected 'behind' or a key position with a position}}
  %o, %l = rota.attention %q, %k, %k position %p behind = 1 key_position %p scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<i32>, tensor<i32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C7: a key position is a scalar
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %p: tensor<i32>, %s: tensor<1xi32>) {
  // expected-error@+1 {{expected a position of rank 0, got 'tensor<1xi32>'}}
  %o, %l = rota.attention %q, %k, %k position %p key_position %s scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<i32>, tensor<1xi32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C10: a position of each query
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %d: tensor<16xi32>) {
  // expected-error@+1 {{expected documents of shape [2, 16], got 'tensor<16xi32>'}}
  %o, %l = rota.attention %q, %k, %k documents %d scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<16xi32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C10: causal
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %d: tensor<2x16xi32>) {
  // expected-error@+1 {{expected causal attention, in no balanced order, with documents}}
  %o, %l = rota.attention %q, %k, %k documents %d scale = 0.35 bidirectional : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16xi32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C10: no balanced order
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %d: tensor<2x16xi32>) {
  // expected-error@+1 {{expected causal attention, in no balanced order, with documents}}
  %o, %l = rota.attention %q, %k, %k documents %d scale = 0.35 ring balanced : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16xi32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// document_positions C1: rank
func.func @f() {
  // expected-error@+1 {{expected a result of rank 2, got 'tensor<16xi32>'}}
  %p = rota.document_positions end = 2 : tensor<16xi32>
  return
}

// -----

// document_positions C2: an end token
func.func @f() {
  // expected-error@+1 {{expected an end token of 0 or more, got -1}}
  %p = rota.document_positions end = -1 : tensor<2x16xi32>
  return
}

// -----

// rope C3: a position of each row
func.func @f(%x: tensor<2x16x3x4xf32>, %t: tensor<16x2x2xf32>, %p: tensor<2x8xi32>) {
  // expected-error@+1 {{expected positions of shape [2, 16], got 'tensor<2x8xi32>'}}
  %y = rota.rope %x, %t at %p : tensor<2x16x3x4xf32>, tensor<16x2x2xf32>, tensor<2x8xi32>
  return
}

// -----

// attention C9: balanced order of a ring
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected 'ring' with 'balanced'}}
  %o, %l = rota.attention %q, %k, %k scale = 0.35 balanced : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C9: no window in balanced order
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected causal attention without a window in balanced order}}
  %o, %l = rota.attention %q, %k, %k scale = 0.35 window = 3 ring balanced : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C9: queries with a key position do not see all
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %p: tensor<i32>) {
  // expected-error@+1 {{expected causal attention without a window in balanced order}}
  %o, %l = rota.attention %q, %k, %k position %p key_position %p scale = 0.35 bidirectional : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<i32>, tensor<i32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C7: keys of another block
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %p: tensor<i32>) {
  // expected-error@+1 {{expected a distance of 1 block or more, got 0}}
  %o, %l = rota.attention %q, %k, %k position %p behind = 0 scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<i32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C7: a position is a scalar
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %p: tensor<1xi32>) {
  // expected-error@+1 {{expected a position of rank 0, got 'tensor<1xi32>'}}
  %o, %l = rota.attention %q, %k, %k position %p behind = 1 scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<1xi32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C7: no window in both directions
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error@+1 {{expected no window of bidirectional attention in a ring}}
  %o, %l = rota.attention %q, %k, %k scale = 0.35 window = 3 bidirectional ring : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention C8: the output before is like the output
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error@+1 {{expected a previous output of shape [2, 16, 4, 8], got 'tensor<2x16x2x8xf32>'}}
  %o, %m = rota.attention %q, %k, %k previous %k, %l scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x4x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

// attention_grad C1: the cotangent is like the output
func.func @f(%d: tensor<2x16x2x8xf32>, %q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error@+1 {{expected a cotangent of type 'tensor<2x16x4x8xf32>', got 'tensor<2x16x2x8xf32>'}}
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %k, %q, %l scale = 0.35 : (tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)
  return
}

// -----

// attention_grad C1: results are like the operands
func.func @f(%d: tensor<2x16x4x8xf32>, %q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error@+1 {{expected a value cotangent of type 'tensor<2x16x2x8xf32>', got 'tensor<2x16x4x8xf32>'}}
  %dq, %dk, %dv = rota.attention_grad %d, %q, %k, %k, %q, %l scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// -----

// attention_grad C2: sinks have a cotangent
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %l: tensor<2x4x16xf32>, %s: tensor<4xf32>) {
  // expected-error@+1 {{expected a cotangent of sinks where there are sinks, got sinks alone}}
  %dq, %dk, %dv = rota.attention_grad %q, %q, %k, %k, %q, %l sinks %s scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<4xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)
  return
}

// -----

// attention_grad C2: no sinks, no cotangent
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error@+1 {{expected a cotangent of sinks where there are sinks, got the cotangent alone}}
  %dq, %dk, %dv, %ds = rota.attention_grad %q, %q, %k, %k, %q, %l scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<4xf32>)
  return
}

// -----

// embedding C1: the result's shape
func.func @f(%t: tensor<2x16xi32>, %w: tensor<256x8xf32>) {
  // expected-error@+1 {{expected a result of shape [2, 16, 8], got 'tensor<2x16x4xf32>'}}
  %x = rota.embedding %t, %w : (tensor<2x16xi32>, tensor<256x8xf32>) -> tensor<2x16x4xf32>
  return
}

// -----

// embedding C1: the table's element type
func.func @f(%t: tensor<2x16xi32>, %w: tensor<256x8xf32>) {
  // expected-error@+1 {{expected a result with elements of type 'f32', got 'tensor<2x16x8xbf16>'}}
  %x = rota.embedding %t, %w : (tensor<2x16xi32>, tensor<256x8xf32>) -> tensor<2x16x8xbf16>
  return
}

// -----

// embedding_grad C1: the cotangent's shape
func.func @f(%t: tensor<2x16xi32>, %d: tensor<2x16x4xf32>) {
  // expected-error@+1 {{expected a cotangent of shape [2, 16, 8], got 'tensor<2x16x4xf32>'}}
  %w = rota.embedding_grad %t, %d : (tensor<2x16xi32>, tensor<2x16x4xf32>) -> tensor<256x8xf32>
  return
}

// -----

// embedding_grad C1: not bf16
func.func @f(%t: tensor<2x16xi32>, %d: tensor<2x16x8xbf16>) {
  // expected-error@+1 {{must be statically shaped tensor of 32-bit float or 64-bit float values, but got 'tensor<256x8xbf16>'}}
  %w = rota.embedding_grad %t, %d : (tensor<2x16xi32>, tensor<2x16x8xbf16>) -> tensor<256x8xbf16>
  return
}

// -----

// cross_entropy C1: targets
func.func @f(%x: tensor<2x16x64xf32>, %t: tensor<2x8xi32>) {
  // expected-error@+1 {{expected targets of shape [2, 16], got 'tensor<2x8xi32>'}}
  %s, %w, %l = rota.cross_entropy %x, %t : (tensor<2x16x64xf32>, tensor<2x8xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return
}

// -----

// cross_entropy C1: scalars
func.func @f(%x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>) {
  // expected-error@+1 {{expected a scalar of shape [], got 'tensor<1xf32>'}}
  %s, %w, %l = rota.cross_entropy %x, %t : (tensor<2x16x64xf32>, tensor<2x16xi32>) -> (tensor<1xf32>, tensor<f32>, tensor<2x16xf32>)
  return
}

// -----

// cross_entropy_grad C1: the result has the logits' type
func.func @f(%d: tensor<f32>, %x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %l: tensor<2x16xf32>) {
  // expected-error@+1 {{expected a result of type 'tensor<2x16x64xf32>', got 'tensor<2x16x64xbf16>'}}
  %g = rota.cross_entropy_grad %d, %x, %t, %l : (tensor<f32>, tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<2x16xf32>) -> tensor<2x16x64xbf16>
  return
}

// -----

// embedding C2: a scalar
func.func @f(%t: tensor<2x16xi32>, %w: tensor<256x8xf32>, %o: tensor<2xi32>) {
  // expected-error@+1 {{expected an offset of shape [], got 'tensor<2xi32>'}}
  %x = rota.embedding %t, %w offset %o : (tensor<2x16xi32>, tensor<256x8xf32>, tensor<2xi32>) -> tensor<2x16x8xf32>
  return
}

// -----

// embedding C3: an offset
func.func @f(%t: tensor<2x16xi32>, %w: tensor<256x8xf32>) {
  // expected-error@+1 {{expected an offset with a size of the vocabulary, got none}}
  %x = rota.embedding %t, %w of 250 : (tensor<2x16xi32>, tensor<256x8xf32>) -> tensor<2x16x8xf32>
  return
}

// -----

// embedding_grad C2: a scalar
func.func @f(%t: tensor<2x16xi32>, %d: tensor<2x16x8xf32>, %o: tensor<2xi32>) {
  // expected-error@+1 {{expected an offset of shape [], got 'tensor<2xi32>'}}
  %w = rota.embedding_grad %t, %d offset %o : (tensor<2x16xi32>, tensor<2x16x8xf32>, tensor<2xi32>) -> tensor<256x8xf32>
  return
}

// -----

// cross_entropy_grad C1: the logsumexp's cotangent
func.func @f(%d: tensor<f32>, %x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %l: tensor<2x16xf32>, %r: tensor<2x8xf32>) -> tensor<2x16x64xf32> {
  // expected-error@+1 {{expected a logsumexp's cotangent of shape [2, 16], got 'tensor<2x8xf32>'}}
  %g = rota.cross_entropy_grad %d, %x, %t, %l rows %r : (tensor<f32>, tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<2x8xf32>) -> tensor<2x16x64xf32>
  return %g : tensor<2x16x64xf32>
}

// -----

// cross_entropy_grad C2: a scalar
func.func @f(%d: tensor<f32>, %x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %l: tensor<2x16xf32>, %o: tensor<1xi32>) {
  // expected-error@+1 {{expected an offset of shape [], got 'tensor<1xi32>'}}
  %g = rota.cross_entropy_grad %d, %x, %t, %l offset %o : (tensor<f32>, tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<1xi32>) -> tensor<2x16x64xf32>
  return
}

// -----

// cross_entropy_grad C3: an offset
func.func @f(%d: tensor<f32>, %x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %l: tensor<2x16xf32>) {
  // expected-error@+1 {{expected an offset with a size of the vocabulary, got none}}
  %g = rota.cross_entropy_grad %d, %x, %t, %l of 60 : (tensor<f32>, tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<2x16xf32>) -> tensor<2x16x64xf32>
  return
}

// -----

// cross_entropy_shard C3: a size
func.func @f(%x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %o: tensor<i32>) {
  // expected-error@+1 {{expected a vocabulary of 1 entry or more, got 0}}
  %p = rota.cross_entropy_shard %x, %t offset %o of 0 : (tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<i32>) -> tensor<2x16x2xf32>
  return
}

// -----

// cross_entropy_shard C1: two numbers a row
func.func @f(%x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %o: tensor<i32>) {
  // expected-error@+1 {{expected parts of shape [2, 16, 2], got 'tensor<2x16x4xf32>'}}
  %p = rota.cross_entropy_shard %x, %t offset %o : (tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<i32>) -> tensor<2x16x4xf32>
  return
}

// -----

// cross_entropy_shard C1: targets
func.func @f(%x: tensor<2x16x64xf32>, %t: tensor<2x8xi32>, %o: tensor<i32>) {
  // expected-error@+1 {{expected targets of shape [2, 16], got 'tensor<2x8xi32>'}}
  %p = rota.cross_entropy_shard %x, %t offset %o : (tensor<2x16x64xf32>, tensor<2x8xi32>, tensor<i32>) -> tensor<2x16x2xf32>
  return
}

// -----

// cross_entropy_shard C2: a scalar
func.func @f(%x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %o: tensor<2xi32>) {
  // expected-error@+1 {{expected an offset of shape [], got 'tensor<2xi32>'}}
  %p = rota.cross_entropy_shard %x, %t offset %o : (tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<2xi32>) -> tensor<2x16x2xf32>
  return
}

// -----

// cross_entropy_merge C1: two columns a part
func.func @f(%p: tensor<2x16x3xf32>, %t: tensor<2x16xi32>) {
  // expected-error@+1 {{expected two columns a part, got 3}}
  %s, %w, %l = rota.cross_entropy_merge %p, %t : (tensor<2x16x3xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return
}

// -----

// cross_entropy_merge C1: at least one part
func.func @f(%p: tensor<2x16x0xf32>, %t: tensor<2x16xi32>) {
  // expected-error@+1 {{expected two columns a part, got 0}}
  %s, %w, %l = rota.cross_entropy_merge %p, %t : (tensor<2x16x0xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)
  return
}

// -----

// cross_entropy_merge C2: one element type
func.func @f(%p: tensor<2x16x4xf32>, %t: tensor<2x16xi32>) {
  // expected-error@+1 {{expected a result with elements of type 'f32', got 'tensor<f64>'}}
  %s, %w, %l = rota.cross_entropy_merge %p, %t : (tensor<2x16x4xf32>, tensor<2x16xi32>) -> (tensor<f32>, tensor<f64>, tensor<2x16xf32>)
  return
}

// -----

// kernel C1: a map per argument
// expected-error@+1 {{expected a map per argument, got 2 for 1}}
rota.kernel @k operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  rota.yield %x : tensor<8xf32>
}

// -----

// kernel C1: maps from one dimension to one
// expected-error@+1 {{expected maps from one dimension to one}}
rota.kernel @k operands [affine_map<(d0, d1) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  rota.yield %x : tensor<8xf32>
}

// -----

// kernel C2: a kind per yielded value
// expected-error@+1 {{expected a kind per yielded value, got 2 for 1}}
rota.kernel @k operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>, #rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  rota.yield %x : tensor<8xf32>
}

// -----

// kernel C3: rank 0 or 1
// expected-error@+1 {{expected arguments of rank 0 or 1, got 'tensor<8x8xf32>'}}
rota.kernel @k operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8x8xf32>):
  rota.yield %x : tensor<8x8xf32>
}

// -----

// kernel C4: what a body holds
rota.kernel @k operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  // expected-error@+1 {{expected arith, math, 'rota.reduce' or 'rota.broadcast' in a kernel}}
  %y = rota.name "y" %x : tensor<8xf32>
  rota.yield %y : tensor<8xf32>
}

// -----

// launch C1: a kernel
rota.kernel @k operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  rota.yield %x : tensor<8xf32>
}
func.func @f(%x: tensor<6x8xf32>) {
  // expected-error@+1 {{expected a 'rota.kernel', 'none' is none}}
  %y = rota.launch @none rows = 6 (%x) : (tensor<6x8xf32>) -> tensor<6x8xf32>
  return
}

// -----

// launch C2: as many operands as the kernel
rota.kernel @k operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  rota.yield %x : tensor<8xf32>
}
func.func @f(%x: tensor<6x8xf32>) {
  // expected-error@+1 {{expected 1 operands and 1 results as the kernel, got 2 and 1}}
  %y = rota.launch @k rows = 6 (%x, %x) : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return
}

// -----

// launch C2: the kernel's element type
rota.kernel @k operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  rota.yield %x : tensor<8xf32>
}
func.func @f(%x: tensor<6x8xbf16>) {
  // expected-error@+1 {{expected elements as in the kernel's 'tensor<8xf32>', got 'tensor<6x8xbf16>'}}
  %y = rota.launch @k rows = 6 (%x) : (tensor<6x8xbf16>) -> tensor<6x8xf32>
  return
}

// -----

// launch C3: rows times columns
rota.kernel @k operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  rota.yield %x : tensor<8xf32>
}
func.func @f(%x: tensor<5x8xf32>) {
  // expected-error@+1 {{expected 6 rows of 8 elements, got 'tensor<5x8xf32>'}}
  %y = rota.launch @k rows = 6 (%x) : (tensor<5x8xf32>) -> tensor<6x8xf32>
  return
}

// -----

// launch C4: one row stride
rota.kernel @k operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  rota.yield %x : tensor<8xf32>
}
func.func @f(%x: tensor<6x8xf32, #rota.row_stride<64>>) -> tensor<6x8xf32> {
  // expected-error@+1 {{expected rows with one stride, got 'tensor<6x8xf32, #rota.row_stride<64>>' and 'tensor<6x8xf32>'}}
  %y = rota.launch @k rows = 6 (%x) : (tensor<6x8xf32, #rota.row_stride<64>>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// launch C4: rows of the kernel's columns
rota.kernel @k operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
^bb0(%x: tensor<8xf32>):
  rota.yield %x : tensor<8xf32>
}
func.func @f(%x: tensor<6x2x4xf32, #rota.row_stride<64>>) -> tensor<6x8xf32, #rota.row_stride<64>> {
  // expected-error@+1 {{expected a last dimension of 8 with a row stride, got 'tensor<6x2x4xf32, #rota.row_stride<64>>'}}
  %y = rota.launch @k rows = 6 (%x) : (tensor<6x2x4xf32, #rota.row_stride<64>>) -> tensor<6x8xf32, #rota.row_stride<64>>
  return %y : tensor<6x8xf32, #rota.row_stride<64>>
}

// -----

// row_stride C1: no row reaches into the next one
// expected-error@+1 {{expected a row stride of at least 8, got 7}}
func.func private @f(tensor<6x8xf32, #rota.row_stride<7>>)

// -----

// row_stride C1: a tensor that has rows
// expected-error@+1 {{expected no row stride of a tensor without rows}}
func.func private @f(tensor<f32, #rota.row_stride<7>>)

// -----

// scalar: correction and complement have no factor
// expected-error@+1 {{expected no factor of complement, got 2.000000e+00 : f64}}
func.func private @f(tensor<f32> {rota.scalar = #rota.scalar<complement of "x" times 2.0 : f64>})
