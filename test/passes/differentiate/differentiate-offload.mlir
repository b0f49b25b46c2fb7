// RUN: rota-opt %s --differentiate=remat=mlpwi=offload,context=device | FileCheck %s --check-prefix=BOTH
// RUN: rota-opt %s --differentiate=remat=minimal_offloaded | FileCheck %s --check-prefix=NAMED
// RUN: rota-opt %s --differentiate="split=true remat=full,decoder_layer_input=offload" | FileCheck %s --check-prefix=INPUT
// RUN: rota-opt %s --differentiate="split=true remat=none,mlpwi=offload" | FileCheck %s --check-prefix=SPLIT
// RUN: rota-opt %s --differentiate=remat=mlpwi=offload,qkv_proj=offload 2>&1 >%t | FileCheck %s --check-prefix=ABSENT
// RUN: rota-opt %s --differentiate=remat=mlpwi=offload,context=device --remarks-filter=differentiate 2>&1 >%t | FileCheck %s --check-prefix=REMARK

// Residuals that wait in the host's memory come after those that stay, although
// "mlpwi" is made before "context", and are marked on either side.
// BOTH: func @forward({{.*}}) -> (tensor<2x4x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32> {rota.offload})
// BOTH:   %[[U:.*]] = rota.einsum "bsk,nk->bsn"
// BOTH:   %[[A:.*]] = math.tanh
// BOTH:   return %{{.*}}, %[[A]], %[[U]]
// BOTH: func @backward(%{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<2x4x16xf32>, %{{.*}}: tensor<2x4x16xf32> {rota.offload}, %{{.*}}: tensor<2x4x8xf32>)

// NAMED: func @forward({{.*}}) -> (tensor<2x4x8xf32>, tensor<2x4x16xf32> {rota.offload})
// NAMED: func @backward(%{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<2x4x16xf32> {rota.offload}, %{{.*}}: tensor<2x4x8xf32>)

// A layer's input is the activation: backward alone says where it waits.
// INPUT: func @forward(%{{.*}}: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
// INPUT: func @backward_input(%{{.*}}: tensor<2x4x8xf32> {rota.offload}, %{{.*}}: tensor<2x4x8xf32>)
// INPUT: func @backward_weight(%{{.*}}: tensor<2x4x8xf32> {rota.offload}, %{{.*}}: tensor<2x4x8xf32>,

// Everything is kept, one value of it in the host's memory.
// SPLIT: func @forward({{.*}}) -> (tensor<2x4x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32> {rota.offload})
// SPLIT: func @backward_input(%{{[^:]*}}: tensor<2x4x8xf32>, %{{[^:]*}}: tensor<2x4x16xf32>, %{{[^:]*}}: tensor<2x4x16xf32>, %{{[^:]*}}: tensor<2x4x16xf32> {rota.offload}, %{{[^:]*}}: tensor<2x4x8xf32>)
// SPLIT: func @backward_weight(%{{[^:]*}}: tensor<2x4x8xf32>, %{{[^:]*}}: tensor<2x4x16xf32>, %{{[^:]*}}: tensor<2x4x16xf32>, %{{[^:]*}}: tensor<2x4x16xf32> {rota.offload},

// A name of other models has no effect here.
// ABSENT: warning: 'remat': no layer has a value named 'qkv_proj', so that its entry has no effect

// REMARK: saved{{.*}}Function=mlp.forward{{.*}}Bytes=512, Name=context
// REMARK: offloaded{{.*}}Function=mlp.forward{{.*}}Bytes=512, Name=mlpwi

rota.stack @layers layers = 2 pattern [@mlp] {
  rota.layer @mlp {
    rota.param @up : tensor<16x8xf32> axes ["mlp", "embed"] init #rota.constant<value = 1.0>
    rota.param @down : tensor<8x16xf32> axes ["embed", "mlp"] init #rota.constant<value = 1.0>
    func.func @forward(%input: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
      %x = rota.name "decoder_layer_input" %input : tensor<2x4x8xf32>
      %wup = rota.read @up : tensor<16x8xf32>
      %u = rota.einsum "bsk,nk->bsn" %x, %wup : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
      %named = rota.name "mlpwi" %u : tensor<2x4x16xf32>
      %a = math.tanh %named : tensor<2x4x16xf32>
      %c = rota.name "context" %a : tensor<2x4x16xf32>
      %t = arith.mulf %named, %c : tensor<2x4x16xf32>
      %wdown = rota.read @down : tensor<8x16xf32>
      %d = rota.einsum "bsk,nk->bsn" %t, %wdown : (tensor<2x4x16xf32>, tensor<8x16xf32>) -> tensor<2x4x8xf32>
      %y = arith.addf %x, %d : tensor<2x4x8xf32>
      return %y : tensor<2x4x8xf32>
    }
  }
}
func.func @embed(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  return %x : tensor<2x4x8xf32>
}
func.func @loss(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>) {
  %sum, %weight, %lse = rota.cross_entropy %x, %targets : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
  return %sum, %weight : tensor<f32>, tensor<f32>
}
