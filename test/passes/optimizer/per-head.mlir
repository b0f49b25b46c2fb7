// RUN: rota-opt %s -build-updates='optimizer=muon muon-per-head=true muon-scale=original' | FileCheck %s

// Four query heads: each of four ranks has one, and nothing is gathered.
// CHECK: rota.param @q {{.*}} rota.update = @update_0}
// CHECK: rota.param @k {{.*}} rota.update = @update_1}
// CHECK: rota.param @o {{.*}} rota.update = @update_2}
// CHECK: rota.param @up {{.*}} rota.update = @update_3}
// CHECK: func.func @update_0(
// CHECK: rota.constrain %{{.*}} <{{\[}}[tensor, fsdp], []]> : tensor<8x6xf32>
// CHECK: rota.reshape %{{.*}} : tensor<8x6xf32> -> tensor<4x2x6xf32>
// CHECK: rota.einsum "aik,ajk->aij" {{.*}} -> tensor<4x2x2xf32>
// CHECK: rota.reshape %{{.*}} : tensor<4x2x6xf32> -> tensor<8x6xf32>
// CHECK-NEXT: rota.constrain %{{.*}} <{{\[}}[tensor, fsdp], []]> : tensor<8x6xf32>

// Two key heads of two rows: only the first axis leaves whole ones.
// CHECK: func.func @update_1(
// CHECK: rota.constrain %{{.*}} <{{\[}}[tensor], []]> : tensor<4x6xf32>
// CHECK: rota.reshape %{{.*}} : tensor<4x6xf32> -> tensor<2x2x6xf32>
// CHECK: rota.constrain %{{.*}} <{{\[}}[tensor], []]> : tensor<4x6xf32>
// CHECK-NEXT: rota.constrain %{{.*}} <{{\[}}[tensor, fsdp], []]> : tensor<4x6xf32>

// Columns of heads; rows are whole.
// CHECK: func.func @update_2(
// CHECK: rota.constrain %{{.*}} <{{\[}}[], [tensor]]> : tensor<6x8xf32>
// CHECK: rota.reshape %{{.*}} : tensor<6x8xf32> -> tensor<6x4x2xf32>
// CHECK: rota.einsum "kai,kaj->aij" {{.*}} -> tensor<4x2x2xf32>
// CHECK: rota.constrain %{{.*}} <{{\[}}[], [tensor]]> : tensor<6x8xf32>
// CHECK-NEXT: rota.constrain %{{.*}} <{{\[}}[fsdp], [tensor]]> : tensor<6x8xf32>

// Others are whole matrices.
// CHECK: func.func @update_3(
// CHECK-NOT: rota.reshape
// CHECK: rota.constrain %{{.*}} <{{\[}}[], []]> : tensor<8x6xf32>
rota.mesh <fsdp = 2, tensor = 2>
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    rota.param @q : tensor<8x6xf32> axes ["heads", "embed"] init #rota.constant<value = 1.0> placement <whole [8, 6] compute <[[tensor], []]> storage <[[tensor, fsdp], []]> optimizer <[[tensor, fsdp], []]>>
    rota.param @k : tensor<4x6xf32> axes ["kv_heads", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 6] compute <[[tensor], []]> storage <[[tensor, fsdp], []]> optimizer <[[tensor, fsdp], []]>>
    rota.param @o : tensor<6x8xf32> axes ["embed", "heads"] init #rota.constant<value = 1.0> placement <whole [6, 8] compute <[[], [tensor]]> storage <[[fsdp], [tensor]]> optimizer <[[fsdp], [tensor]]>>
    rota.param @up : tensor<8x6xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [8, 6] compute <[[], []]> storage <[[fsdp], []]> optimizer <[[fsdp], []]>>
    func.func @forward(%x: tensor<1x3x4x2xf32>, %y: tensor<1x3x2x2xf32>) -> tensor<1x3x4x2xf32> {
      %a = rota.read @q : tensor<8x6xf32>
      %b = rota.read @k : tensor<4x6xf32>
      %c = rota.read @o : tensor<6x8xf32>
      %d = rota.read @up : tensor<8x6xf32>
      %out, %sums = rota.attention %x, %y, %y scale = 0.5 : (tensor<1x3x4x2xf32>, tensor<1x3x2x2xf32>, tensor<1x3x2x2xf32>) -> (tensor<1x3x4x2xf32>, tensor<1x4x3xf32>)
      return %out : tensor<1x3x4x2xf32>
    }
  }
}
