// RUN: rota-opt %s --explain-communication --split-input-file --remarks-filter=communication 2>&1 >%t | FileCheck %s

// The documentation's example.
rota.mesh <tensor = 4>
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // CHECK: remark: [Analysis] all_reduce | Category:communication | Axes=tensor, Bytes=96, Ranks=4, Reason="partial products", Tensor=tensor<2x8xf32>
  %y = rota.all_reduce sum %x axes [<tensor>] reason "partial products" : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// The ring model's bytes of every kind, with n = 6 ranks or a part's.
rota.mesh <data = 2, tensor = 3>
func.func @every_kind(%x: tensor<6x12xbf16>) -> tensor<12x2xbf16> {
  // 72 elements of 2 bytes; 2 * 5 * 24.
  // CHECK: all_reduce {{.*}} Axes=data+tensor, Bytes=240, Ranks=6, Reason=a, Tensor=tensor<6x12xbf16>
  %a = rota.all_reduce max %x axes [<data>, <tensor>] reason "a" : tensor<6x12xbf16>
  // Parts of 12 elements; 5 * 24.
  // CHECK: reduce_scatter {{.*}} Axes=tensor+data, Bytes=120, Ranks=6, Reason=b, Tensor=tensor<6x2xbf16>
  %b = rota.reduce_scatter %a dim = 1 axes [<tensor>, <data>] reason "b" : tensor<6x12xbf16> -> tensor<6x2xbf16>
  // 24 bytes to one neighbour.
  // CHECK: all_gather {{.*}} Axes=data, Bytes=24, Ranks=2, Reason=c, Tensor=tensor<6x4xbf16>
  %c = rota.all_gather %b dim = 1 axes [<data>] reason "c" : tensor<6x2xbf16> -> tensor<6x4xbf16>
  // Half of 48 bytes.
  // CHECK: all_to_all {{.*}} Axes=data, Bytes=24, Ranks=2, Reason=d, Tensor=tensor<12x2xbf16>
  %d = rota.all_to_all %c gather = 0 split = 1 axes [<data>] reason "d" : tensor<6x4xbf16> -> tensor<12x2xbf16>
  // CHECK: permute {{.*}} Axes=data+tensor, Bytes=48, Ranks=6, Reason=e, Tensor=tensor<12x2xbf16>
  %e = rota.permute %d axes [<data>, <tensor>] order [<tensor>, <data>] reason "e" : tensor<12x2xbf16>
  // CHECK: shard_slice {{.*}} Axes=tensor, Bytes=0, Ranks=3, Reason=f,
  %f = rota.shard_slice %e dim = 0 axes [<tensor>] reason "f" : tensor<12x2xbf16> -> tensor<4x2xbf16>
  return %e : tensor<12x2xbf16>
}

// -----

// A part of an axis; a group of one rank, which sends nothing.
rota.mesh <tensor = 4>
func.func @parts(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: all_reduce {{.*}} Axes=tensor:(2)2, Bytes=32, Ranks=2, Reason=a,
  %a = rota.all_reduce sum %x axes [<tensor:(2)2>] reason "a" : tensor<8xf32>
  // CHECK: permute {{.*}} Axes=data, Bytes=0, Ranks=1, Reason=b,
  %b = rota.permute %a axes [<data>] order [<data>] reason "b" : tensor<8xf32>
  return %b : tensor<8xf32>
}
