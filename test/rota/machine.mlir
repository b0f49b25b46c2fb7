// RUN: rota-opt %s --split-input-file --verify-diagnostics --schedule-collectives | FileCheck %s

// The products take a second each on this machine, and the gather six: it starts
// before both, not between them as on the machine that is assumed.
// CHECK-LABEL: func.func @starts_before_both
// CHECK-NEXT: rota.all_gather
// CHECK-NEXT: rota.einsum
// CHECK-NEXT: rota.einsum
module attributes {rota.machine = {
  name = "slow network", device = "cuda", units = 1,
  types = {f32 = {flops_per_second = 8388608000.0}}, tiles = [{m = 1, n = 1, efficiency = 1}],
  product_efficiency = 1, depth = 0, attention = {forward = 1, backward = 1}, row_flops_per_second = 1.0e12,
  launch_seconds = 0,
  memory = {bytes = 1.0e10, bytes_per_second = 1.0e12, efficiency = 1, copied_bytes_per_second = 1.0e12},
  host = {bytes_per_second = 1.0e10, latency_seconds = 0},
  network = [{name = "network", devices = 0, bytes_per_second = 3.0e7, latency_seconds = 0, efficiency = 1, slows_work = 0}]
}} {
  rota.mesh <tensor = 2>
  func.func @starts_before_both(%x: tensor<64x256xf32>, %w: tensor<256x256xf32>, %part: tensor<128x128xf32>) -> tensor<64x128xf32> {
    %a = rota.einsum "bk,kn->bn" %x, %w : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
    %b = rota.einsum "bk,kn->bn" %a, %w : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
    %whole = rota.all_gather %part dim = 0 axes [<tensor>] reason "a" : tensor<128x128xf32> -> tensor<256x128xf32>
    %c = rota.einsum "bk,kn->bn" %b, %whole : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
    return %c : tensor<64x128xf32>
  }
}

// -----

// expected-error@+1 {{'rota.machine': 'device': is missing}}
module attributes {rota.machine = {name = "no device"}} {
}

// -----

// expected-error@+1 {{expected 'rota.machine' to be a dictionary of a module}}
module attributes {rota.machine = "h100"} {
}
