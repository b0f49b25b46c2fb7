// RUN: rota-opt %s --split-input-file --verify-diagnostics

// Meshes, shardings and collectives: a case per constraint, named by its label.

// mesh attribute: known axes
// expected-error@+1 {{expected a mesh axis (data, stage, fsdp, expert, context, sequence or tensor), got 'model'}}
rota.mesh <model = 2>

// -----

// mesh attribute: one size for each axis
// expected-error@+1 {{expected one size for each axis, got two for 'data'}}
rota.mesh <data = 2, data = 4>

// -----

// mesh attribute: sizes
// expected-error@+1 {{expected a size of at least 1 for axis 'data', got 0}}
rota.mesh <data = 0>

// -----

// mesh attribute: number of ranks
// expected-error@+1 {{expected at most 16777216 ranks in a mesh}}
rota.mesh <data = 4096, fsdp = 4096, tensor = 2>

// -----

// mesh C1: one in a module
// expected-note@+1 {{the other mesh}}
rota.mesh <data = 2>
// expected-error@+1 {{'rota.mesh' op expected one mesh in a module}}
rota.mesh <data = 2>

// -----

// axis attribute: the size of a part
func.func private @f(tensor<8xf32>
  // expected-error@+1 {{expected a part of axis 'tensor' of size 2 or more with a positive size in front, got (2)1}}
  {rota.sharding = #rota.sharding<[[tensor:(2)1]]>})

// -----

// sharding attribute C1: an axis at most once
func.func private @f(tensor<8x8xf32>
  // expected-error@+1 {{expected each axis at most once in a sharding, got 'tensor' twice}}
  {rota.sharding = #rota.sharding<[[tensor], [tensor]]>})

// -----

// sharding attribute C1: nor a part of it
func.func private @f(tensor<8x8xf32>
  // expected-error@+1 {{expected each axis at most once in a sharding, got 'tensor' twice}}
  {rota.sharding = #rota.sharding<[[tensor:(1)4], []] unreduced [tensor:(2)2]>})

// -----

// sharding of an argument: an entry per dimension
// expected-error@+1 {{expected a sharding with an entry for each of the 2 dimensions, got 1}}
func.func private @f(tensor<8x8xf32> {rota.sharding = #rota.sharding<[[tensor]]>})

// -----

// sharding of a result: an entry per dimension
// expected-error@+1 {{expected a sharding with an entry for each of the 0 dimensions, got 1}}
func.func private @f() -> (tensor<f32> {rota.sharding = #rota.sharding<[[tensor]]>})

// -----

// sharding of an argument: a sharding
// expected-error@+1 {{expected a '#rota.sharding' as 'rota.sharding', got "tensor"}}
func.func private @f(tensor<8xf32> {rota.sharding = "tensor"})

// -----

// sharding of an argument: of a tensor
// expected-error@+1 {{expected a tensor where a sharding is, got 'f32'}}
func.func private @f(f32 {rota.sharding = #rota.sharding<[]>})

// -----

// sharding of an argument: parts that divide the axis
// expected-note@+1 {{the mesh}}
rota.mesh <tensor = 6>
// expected-error@+1 {{expected parts that divide axis 'tensor' of size 6, got (2)2}}
func.func private @f(tensor<8xf32> {rota.sharding = #rota.sharding<[[tensor:(2)2]]>})

// -----

// constrain C1: an entry per dimension
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected a sharding with an entry for each of the 2 dimensions, got 1}}
  %y = rota.constrain %x <[[data]]> : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// constrain C1: parts of the mesh's axes
// expected-note@+1 {{the mesh}}
rota.mesh <tensor = 4>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected parts that divide axis 'tensor' of size 4, got (1)8}}
  %y = rota.constrain %x <[[], []] unreduced [tensor:(1)8]> : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// reshard C1: an entry per dimension
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected a sharding with an entry for each of the 2 dimensions, got 3}}
  %y = rota.reshard %x from <[[data], []]> to <[[], [data], []]> reason "test" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// reshard C2: a sum does not come from nothing
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected a value that is unreduced over 'data' already}}
  %y = rota.reshard %x from <[[], []]> to <[[], []] unreduced [data]> reason "test" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// all_gather C1: a dimension
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected a dimension below 2, got 2}}
  %y = rota.all_gather %x dim = 2 axes [<tensor>] reason "test" : tensor<2x4xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// all_gather C1: the others keep their sizes
rota.mesh <tensor = 2>
func.func @f(%x: tensor<3x4xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected a part of size 2 along dimension 0 of size 2, got 3}}
  %y = rota.all_gather %x dim = 1 axes [<tensor>] reason "test" : tensor<3x4xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// all_gather C2: the ceiling
rota.mesh <tensor = 3>
func.func @f(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected a part of size 3 along dimension 1 of size 8, got 4}}
  %y = rota.all_gather %x dim = 1 axes [<tensor>] reason "test" : tensor<2x4xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// all_gather C3: an axis at most once
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected each axis at most once in a group, got 'tensor' twice}}
  %y = rota.all_gather %x dim = 1 axes [<tensor>, <tensor>] reason "test" : tensor<2x4xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// reduce_scatter C1: one rank
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x4xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{expected operand and result of one rank}}
  %y = rota.reduce_scatter %x dim = 1 axes [<tensor>] reason "test" : tensor<2x4xf32> -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// reduce_scatter C2: the ceiling
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x7xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{expected a part of size 4 along dimension 1 of size 7, got 3}}
  %y = rota.reduce_scatter %x dim = 1 axes [<tensor>] reason "test" : tensor<2x7xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// reduce_scatter C3: parts of the mesh's axes
// expected-note@+1 {{the mesh}}
rota.mesh <tensor = 6>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x2xf32> {
  // expected-error@+1 {{expected parts that divide axis 'tensor' of size 6, got (1)4}}
  %y = rota.reduce_scatter %x dim = 1 axes [<tensor:(1)4>] reason "test" : tensor<2x8xf32> -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// shard_slice C2: without a mesh every group is one rank
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{expected a part of size 8 along dimension 1 of size 8, got 4}}
  %y = rota.shard_slice %x dim = 1 axes [<tensor>] reason "test" : tensor<2x8xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// all_reduce C1: an axis at most once
rota.mesh <tensor = 4>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected each axis at most once in a group, got 'tensor' twice}}
  %y = rota.all_reduce sum %x axes [<tensor>, <tensor:(1)2>] reason "test" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// all_to_all C1: two dimensions
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected two dimensions below 2, got 1 and 1}}
  %y = rota.all_to_all %x gather = 1 split = 1 axes [<tensor>] reason "test" : tensor<2x8xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// all_to_all C2: ranks divide what is cut
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x7xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{expected 2 ranks to divide size 7 of dimension 1}}
  %y = rota.all_to_all %x gather = 0 split = 1 axes [<tensor>] reason "test" : tensor<2x7xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// all_to_all C2: ranks multiply what is gathered
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<3x4xf32> {
  // expected-error@+1 {{expected a result of type 'tensor<4x4xf32>', got 'tensor<3x4xf32>'}}
  %y = rota.all_to_all %x gather = 0 split = 1 axes [<tensor>] reason "test" : tensor<2x8xf32> -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// all_to_all C3: an axis at most once
rota.mesh <tensor = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<8x2xf32> {
  // expected-error@+1 {{expected each axis at most once in a group, got 'tensor' twice}}
  %y = rota.all_to_all %x gather = 0 split = 1 axes [<tensor>, <tensor>] reason "test" : tensor<2x8xf32> -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}

// -----

// permute C1: the same axes
rota.mesh <data = 2, tensor = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected the same axes in 'axes' and 'order'}}
  %y = rota.permute %x axes [<data>, <tensor>] order [<tensor>] reason "test" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// permute C2: an axis at most once
rota.mesh <data = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected each axis at most once in a group, got 'data' twice}}
  %y = rota.permute %x axes [<data>, <data>] order [<data>, <data>] reason "test" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// permute C3: a shift is a position
rota.mesh <data = 2>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected a shift below the 2 ranks of the group, got 2}}
  %y = rota.permute %x axes [<data>] order [<data>] shift = 2 reason "test" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// shard_offset C1: parts of the mesh's axes
// expected-note@+1 {{the mesh}}
rota.mesh <tensor = 6>
func.func @f() -> tensor<i32> {
  // expected-error@+1 {{expected parts that divide axis 'tensor' of size 6, got (1)4}}
  %o = rota.shard_offset axes [<tensor:(1)4>] factor = 128 : tensor<i32>
  return %o : tensor<i32>
}

// -----

// shard_offset C3: a shift is a position
rota.mesh <tensor = 2>
func.func @f() -> tensor<i32> {
  // expected-error@+1 {{expected a shift below the 2 ranks of the group, got 2}}
  %o = rota.shard_offset axes [<tensor>] shift = 2 factor = 128 : tensor<i32>
  return %o : tensor<i32>
}

// -----

// shard_offset C2: a scalar
rota.mesh <tensor = 2>
func.func @f() -> tensor<1xi32> {
  // expected-error@+1 {{expected a tensor of rank 0, got 'tensor<1xi32>'}}
  %o = rota.shard_offset axes [<tensor>] factor = 128 : tensor<1xi32>
  return %o : tensor<1xi32>
}

// -----

// param C5: a whole size per dimension
// expected-error@+1 {{expected a whole size for each of the 1 dimensions, got 2}}
rota.param @p : tensor<8xf32> axes ["a"] init #rota.constant<value = 1.0> placement <whole [8, 8] compute <[[]]> storage <[[]]> optimizer <[[]]>>

// -----

// param C5: an entry per dimension
// expected-error@+1 {{expected a sharding with an entry for each of the 1 dimensions, got 0}}
rota.param @p : tensor<8xf32> axes ["a"] init #rota.constant<value = 1.0> placement <whole [8] compute <[[]]> storage <[]> optimizer <[[]]>>

// -----

// param C5: the type is the whole's or a part's
rota.mesh <fsdp = 2, tensor = 2>
// expected-error@+1 {{expected the whole type 'tensor<8xf32>' or a rank's 'tensor<4xf32>', got 'tensor<2xf32>'}}
rota.param @p : tensor<2xf32> axes ["a"] init #rota.constant<value = 1.0> placement <whole [8] compute <[[tensor]]> storage <[[tensor, fsdp]]> optimizer <[[tensor, fsdp]]>>

// -----

// param C6: appended axes
// expected-error@+1 {{expected the storage sharding to be #rota.sharding<[[tensor]]> with axes appended on at most one dimension, got #rota.sharding<[[fsdp, tensor]]>}}
rota.param @p : tensor<8xf32> axes ["a"] init #rota.constant<value = 1.0> placement <whole [8] compute <[[tensor]]> storage <[[fsdp, tensor]]> optimizer <[[fsdp, tensor]]>>

// -----

// param C6: at most one dimension
// expected-error@+1 {{expected the optimizer sharding to be}}
rota.param @p : tensor<8x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0> placement <whole [8, 8] compute <[[], []]> storage <[[], []]> optimizer <[[fsdp], [data]]>>

// -----

// param C6: reduced
// expected-error@+1 {{expected no unreduced axes in the storage sharding}}
rota.param @p : tensor<8xf32> axes ["a"] init #rota.constant<value = 1.0> placement <whole [8] compute <[[]]> storage <[[]] unreduced [data]> optimizer <[[]]>>
