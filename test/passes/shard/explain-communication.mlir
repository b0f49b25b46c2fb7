// RUN: rota-opt %s --explain-communication --split-input-file --verify-diagnostics

// The documentation's example.
rota.mesh <tensor = 4>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-remark@+1 {{'rota.all_reduce' makes 'tensor<2x8xf32>', sends 96 bytes over [tensor] (4 ranks): partial products}}
  %y = rota.all_reduce sum %x axes [<tensor>] reason "partial products" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// The ring model's bytes of every kind, with n = 6 ranks or a part's.
rota.mesh <data = 2, tensor = 3>
func.func @every_kind(%x: tensor<6x12xbf16>) -> tensor<12x2xbf16> {
  // 72 elements of 2 bytes; 2 * 5 * 24.
  // expected-remark@+1 {{sends 240 bytes over [data, tensor] (6 ranks): a}}
  %a = rota.all_reduce max %x axes [<data>, <tensor>] reason "a" : tensor<6x12xbf16>
  // Parts of 12 elements; 5 * 24.
  // expected-remark@+1 {{'rota.reduce_scatter' makes 'tensor<6x2xbf16>', sends 120 bytes over [tensor, data] (6 ranks): b}}
  %b = rota.reduce_scatter %a dim = 1 axes [<tensor>, <data>] reason "b" : tensor<6x12xbf16> -> tensor<6x2xbf16>
  // 24 bytes to one neighbour.
  // expected-remark@+1 {{'rota.all_gather' makes 'tensor<6x4xbf16>', sends 24 bytes over [data] (2 ranks): c}}
  %c = rota.all_gather %b dim = 1 axes [<data>] reason "c" : tensor<6x2xbf16> -> tensor<6x4xbf16>
  // Half of 48 bytes.
  // expected-remark@+1 {{'rota.all_to_all' makes 'tensor<12x2xbf16>', sends 24 bytes over [data] (2 ranks): d}}
  %d = rota.all_to_all %c gather = 0 split = 1 axes [<data>] reason "d" : tensor<6x4xbf16> -> tensor<12x2xbf16>
  // expected-remark@+1 {{'rota.permute' makes 'tensor<12x2xbf16>', sends 48 bytes over [data, tensor] (6 ranks): e}}
  %e = rota.permute %d axes [<data>, <tensor>] order [<tensor>, <data>] reason "e" : tensor<12x2xbf16>
  // expected-remark@+1 {{'rota.shard_slice' makes 'tensor<4x2xbf16>', sends 0 bytes over [tensor] (3 ranks): f}}
  %f = rota.shard_slice %e dim = 0 axes [<tensor>] reason "f" : tensor<12x2xbf16> -> tensor<4x2xbf16>
  return %e : tensor<12x2xbf16>
}

// -----

// A part of an axis; a group of one rank, where nothing travels.
rota.mesh <tensor = 4>
func.func @parts(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark@+1 {{sends 32 bytes over [tensor:(2)2] (2 ranks): a}}
  %a = rota.all_reduce sum %x axes [<tensor:(2)2>] reason "a" : tensor<8xf32>
  // expected-remark@+1 {{sends 0 bytes over [data] (1 ranks): b}}
  %b = rota.permute %a axes [<data>] order [<data>] reason "b" : tensor<8xf32>
  return %b : tensor<8xf32>
}
