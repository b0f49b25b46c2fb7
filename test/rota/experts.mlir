// RUN: rota-opt %s | FileCheck %s
// Every op of a mixture of experts reads and prints back; what has a default is
// left out.

// CHECK-LABEL: @routes
// CHECK: rota.route %{{.*}} scaling = 1.000000e+00 : (tensor<2x3x4xf32>)
// CHECK: rota.route %{{.*}} bias %{{.*}} sigmoid normalize groups = 2 top_groups = 1 scaling = 2.500000e+00 : (tensor<2x3x4xf32>, tensor<4xf32>)
// CHECK: rota.route %{{.*}} bias %{{.*}} scaling = 1.000000e+00 bias_rate = 1.000000e-03 : (tensor<2x3x4xf32>, tensor<4xf32>)
// CHECK: rota.route_grad %{{.*}}, %{{.*}}, %{{.*}} sigmoid normalize scaling = 2.500000e+00
func.func @routes(%z: tensor<2x3x4xf32>, %b: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %w, %e = rota.route %z scaling = 1.0 : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi32>)
  %v, %f = rota.route %z bias %b sigmoid normalize groups = 2 top_groups = 1 scaling = 2.5 : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi32>)
  %u, %g = rota.route %z bias %b scaling = 1.0 bias_rate = 0.001 : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi32>)
  %d = rota.route_grad %w, %z, %f sigmoid normalize scaling = 2.5 : (tensor<2x3x2xf32>, tensor<2x3x4xf32>, tensor<2x3x2xi32>) -> tensor<2x3x4xf32>
  return %d : tensor<2x3x4xf32>
}

// CHECK-LABEL: @places
// CHECK: rota.expert_places %{{.*}} rows = 8 : tensor<2x3x2xi32> -> tensor<2x4xi32>
// CHECK: rota.expert_places %{{.*}} rows = 8 blocks = 2 capacity = 3 : tensor<2x3x2xi32> -> tensor<2x4xi32>
func.func @places(%e: tensor<2x3x2xi32>) -> tensor<2x3x2xi32> {
  %p, %c = rota.expert_places %e rows = 8 blocks = 1 : tensor<2x3x2xi32> -> tensor<2x4xi32>
  %q, %d = rota.expert_places %e rows = 8 blocks = 2 capacity = 3 : tensor<2x3x2xi32> -> tensor<2x4xi32>
  return %q : tensor<2x3x2xi32>
}

// CHECK-LABEL: @parts
// CHECK: rota.expert_places %{{.*}} rows = 4 parts = 2 : tensor<2x4x2xi32> -> tensor<4x4xi32>
// CHECK: rota.expert_places %{{.*}} others %{{.*}} offset %{{.*}} rows = 8 capacity = 3 : tensor<2x4x2xi32>, tensor<6x4xi32>, tensor<i32> -> tensor<2x4xi32>
// CHECK: rota.dispatch %{{.*}}, %{{.*}} counts %{{.*}} parts = 2 :
// CHECK: rota.combine %{{.*}}, %{{.*}} parts = 2 :
// CHECK: rota.choice_dot %{{.*}}, %{{.*}}, %{{.*}} parts = 2 :
// CHECK: rota.row_dot %{{.*}}, %{{.*}} : tensor<4x4x5xbf16> -> tensor<4x4x1xf32>
func.func @parts(%e: tensor<2x4x2xi32>, %x: tensor<2x4x5xbf16>, %a: tensor<6x4xi32>, %o: tensor<i32>) -> tensor<4x4x1xf32> {
  %p, %c = rota.expert_places %e rows = 4 parts = 2 : tensor<2x4x2xi32> -> tensor<4x4xi32>
  %q, %n = rota.expert_places %e others %a offset %o rows = 8 capacity = 3 parts = 1 : tensor<2x4x2xi32>, tensor<6x4xi32>, tensor<i32> -> tensor<2x4xi32>
  %r = rota.dispatch %x, %p counts %c parts = 2 : (tensor<2x4x5xbf16>, tensor<2x4x2xi32>, tensor<4x4xi32>) -> tensor<4x4x5xbf16>
  %y = rota.combine %r, %p parts = 2 : (tensor<4x4x5xbf16>, tensor<2x4x2xi32>) -> tensor<2x4x5xbf16>
  %d = rota.choice_dot %y, %r, %p parts = 2 : (tensor<2x4x5xbf16>, tensor<4x4x5xbf16>, tensor<2x4x2xi32>) -> tensor<2x4x2xf32>
  %s = rota.row_dot %r, %r : tensor<4x4x5xbf16> -> tensor<4x4x1xf32>
  return %s : tensor<4x4x1xf32>
}

// CHECK-LABEL: @moves
// CHECK: rota.dispatch %{{.*}}, %{{.*}} : (tensor<2x3x5xbf16>, tensor<2x3x2xi32>) -> tensor<2x8x5xbf16>
// CHECK: rota.dispatch %{{.*}}, %{{.*}} weights %{{.*}} offset %{{.*}} :
// CHECK: rota.combine %{{.*}}, %{{.*}} offset %{{.*}} :
// CHECK: rota.combine %{{.*}}, %{{.*}} weights %{{.*}} :
// CHECK: rota.choice_dot %{{.*}}, %{{.*}}, %{{.*}} offset %{{.*}} :
func.func @moves(%x: tensor<2x3x5xbf16>, %p: tensor<2x3x2xi32>, %w: tensor<2x3x2xf32>, %o: tensor<i32>) -> tensor<2x3x2xf32> {
  %r = rota.dispatch %x, %p : (tensor<2x3x5xbf16>, tensor<2x3x2xi32>) -> tensor<2x8x5xbf16>
  %s = rota.dispatch %x, %p weights %w offset %o : (tensor<2x3x5xbf16>, tensor<2x3x2xi32>, tensor<2x3x2xf32>, tensor<i32>) -> tensor<2x8x5xbf16>
  %y = rota.combine %s, %p offset %o : (tensor<2x8x5xbf16>, tensor<2x3x2xi32>, tensor<i32>) -> tensor<2x3x5xbf16>
  %z = rota.combine %r, %p weights %w : (tensor<2x8x5xbf16>, tensor<2x3x2xi32>, tensor<2x3x2xf32>) -> tensor<2x3x5xbf16>
  %d = rota.choice_dot %z, %s, %p offset %o : (tensor<2x3x5xbf16>, tensor<2x8x5xbf16>, tensor<2x3x2xi32>, tensor<i32>) -> tensor<2x3x2xf32>
  return %d : tensor<2x3x2xf32>
}

// CHECK-LABEL: @groups
// CHECK: rota.grouped_product %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x8x5xbf16>, tensor<4x5x6xbf16>, tensor<2x4xi32>) -> tensor<2x8x6xf32>
// CHECK: rota.grouped_product %{{.*}}, %{{.*}}, %{{.*}} offset %{{.*}} transposed blocks = 2 :
// CHECK: rota.grouped_product_grad %{{.*}}, %{{.*}}, %{{.*}} blocks = 4 fill = 2.500000e-01 :
// CHECK: rota.grouped_bias %{{.*}}, %{{.*}}, %{{.*}} blocks = 2 : tensor<2x8x5xbf16>, tensor<4x5xf32>, tensor<2x4xi32>
// CHECK: rota.grouped_bias_grad %{{.*}}, %{{.*}} : (tensor<2x8x5xbf16>, tensor<2x4xi32>) -> tensor<4x5xf32>
func.func @groups(%x: tensor<2x8x5xbf16>, %w: tensor<4x5x6xbf16>, %v: tensor<4x5x5xbf16>, %b: tensor<4x5xf32>, %c: tensor<2x4xi32>, %o: tensor<i32>) -> tensor<4x5xf32> {
  %y = rota.grouped_product %x, %w, %c blocks = 1 : (tensor<2x8x5xbf16>, tensor<4x5x6xbf16>, tensor<2x4xi32>) -> tensor<2x8x6xf32>
  %z = rota.grouped_product %x, %v, %c offset %o transposed blocks = 2 : (tensor<2x8x5xbf16>, tensor<4x5x5xbf16>, tensor<2x4xi32>, tensor<i32>) -> tensor<2x8x5xbf16>
  %d = rota.grouped_product_grad %x, %z, %c blocks = 4 fill = 0.25 : (tensor<2x8x5xbf16>, tensor<2x8x5xbf16>, tensor<2x4xi32>) -> tensor<4x5x5xf32>
  %s = rota.grouped_bias %x, %b, %c blocks = 2 : tensor<2x8x5xbf16>, tensor<4x5xf32>, tensor<2x4xi32>
  %t = rota.grouped_bias_grad %s, %c : (tensor<2x8x5xbf16>, tensor<2x4xi32>) -> tensor<4x5xf32>
  return %t : tensor<4x5xf32>
}

// CHECK-LABEL: @counted
// CHECK: rota.dispatch %{{.*}}, %{{.*}} counts %{{.*}} blocks = 2 fill = 2.500000e-01 :
// CHECK: rota.combine %{{.*}}, %{{.*}} weights %{{.*}} counts %{{.*}} : {{.*}}, tensor<2x4xi32>) -> tensor<2x3x5xbf16>
// CHECK: rota.choice_dot %{{.*}}, %{{.*}}, %{{.*}} counts %{{.*}} blocks = 4 :
// CHECK: rota.reshard_rows %{{.*}} sent %{{.*}} received %{{.*}} blocks = 2 fill = 2.500000e-01 from <{{.*}}> to <{{.*}}> reason "test" : tensor<2x8x5xbf16>, tensor<2x4xi32>
// CHECK: rota.ragged_all_to_all %{{.*}} sent %{{.*}} received %{{.*}} blocks = 2 gather = 1 axes [<expert>] reason "test" : (tensor<2x8x5xbf16>, tensor<2x4xi32>, tensor<1x8xi32>) -> tensor<1x16x5xbf16>
rota.mesh <expert = 2>
func.func @counted(%x: tensor<2x3x5xbf16>, %p: tensor<2x3x2xi32>, %w: tensor<2x3x2xf32>, %c: tensor<2x4xi32>, %d: tensor<1x8xi32>) -> tensor<1x16x5xbf16> {
  %r = rota.dispatch %x, %p counts %c blocks = 2 fill = 0.25 : (tensor<2x3x5xbf16>, tensor<2x3x2xi32>, tensor<2x4xi32>) -> tensor<2x8x5xbf16>
  %y = rota.combine %r, %p weights %w counts %c blocks = 1 : (tensor<2x8x5xbf16>, tensor<2x3x2xi32>, tensor<2x3x2xf32>, tensor<2x4xi32>) -> tensor<2x3x5xbf16>
  %e = rota.choice_dot %y, %r, %p counts %c blocks = 4 : (tensor<2x3x5xbf16>, tensor<2x8x5xbf16>, tensor<2x3x2xi32>, tensor<2x4xi32>) -> tensor<2x3x2xf32>
  %s = rota.reshard_rows %r sent %c received %c blocks = 2 fill = 0.25 from <[[expert], [], []]> to <[[], [expert], []]> reason "test" : tensor<2x8x5xbf16>, tensor<2x4xi32>
  %t = rota.ragged_all_to_all %s sent %c received %d blocks = 2 gather = 1 axes [<expert>] reason "test" : (tensor<2x8x5xbf16>, tensor<2x4xi32>, tensor<1x8xi32>) -> tensor<1x16x5xbf16>
  return %t : tensor<1x16x5xbf16>
}

// CHECK-LABEL: rota.layer @observed
// CHECK: rota.observe "expert_load" %{{.*}} : tensor<2x4xi32>
// CHECK: rota.observe "dropping" %{{.*}} each = 6 : tensor<2x4xi32>
// CHECK: %{{.*}} = rota.observed_mean "expert_load" : tensor<4xf32>
rota.stack @layers layers = 2 pattern [@observed] {
  rota.layer @observed {
    func.func @forward(%c: tensor<2x4xi32>) -> tensor<2x4xi32> {
      rota.observe "expert_load" %c : tensor<2x4xi32>
      rota.observe "dropping" %c each = 6 : tensor<2x4xi32>
      %mean = rota.observed_mean "expert_load" : tensor<4xf32>
      return %c : tensor<2x4xi32>
    }
  }
}
