// RUN: rota-opt %s -split-input-file -build-updates='optimizer=muon muon-per-head=true' -verify-diagnostics

rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    // expected-error@+1 {{'muon-per-head': expected dimension 0 of parameter 'q' to be a multiple of 4 heads, got 6}}
    rota.param @q : tensor<6x8xf32> axes ["heads", "embed"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<1x3x4x2xf32>) -> tensor<1x3x4x2xf32> {
      %a = rota.read @q : tensor<6x8xf32>
      %out, %sums = rota.attention %x, %x, %x scale = 0.5 : (tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>) -> (tensor<1x3x4x2xf32>, tensor<1x4x3xf32>)
      return %out : tensor<1x3x4x2xf32>
    }
  }
}

// -----

rota.mesh <fsdp = 3>
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    // expected-error@+1 {{'muon-per-head': expected ranks to divide the 8 elements of dimension 1 of parameter 'o' evenly, got parts of 9 in all}}
    rota.param @o : tensor<6x8xf32> axes ["embed", "heads"] init #rota.constant<value = 1.0> placement <whole [6, 8] compute <[[], []]> storage <[[], [fsdp]]> optimizer <[[], [fsdp]]>>
    func.func @forward(%x: tensor<1x3x4x2xf32>) -> tensor<1x3x4x2xf32> {
      %a = rota.read @o : tensor<6x8xf32>
      %out, %sums = rota.attention %x, %x, %x scale = 0.5 : (tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>) -> (tensor<1x3x4x2xf32>, tensor<1x4x3xf32>)
      return %out : tensor<1x3x4x2xf32>
    }
  }
}

// -----

rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @q : tensor<8x8xf32> axes ["heads", "embed"] init #rota.constant<value = 1.0>
    func.func @forward(%x: tensor<1x3x4x2xf32>, %y: tensor<1x3x2x2xf32>) -> tensor<1x3x4x2xf32> {
      %a = rota.read @q : tensor<8x8xf32>
      %out, %sums = rota.attention %x, %y, %y scale = 0.5 : (tensor<1x3x4x2xf32>, tensor<1x3x2x2xf32>, tensor<1x3x2x2xf32>) -> (tensor<1x3x4x2xf32>, tensor<1x4x3xf32>)
      // expected-error@+1 {{'muon-per-head': expected one number of 'kv_heads' in all layers, got 2 and 4}}
      %more, %others = rota.attention %x, %x, %x scale = 0.5 : (tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>) -> (tensor<1x3x4x2xf32>, tensor<1x4x3xf32>)
      return %more : tensor<1x3x4x2xf32>
    }
  }
}
