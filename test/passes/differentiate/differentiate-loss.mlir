// RUN: rota-opt %s --differentiate | FileCheck %s --check-prefixes=LOSS,JOINT
// RUN: rota-opt %s --differentiate=split=true | FileCheck %s --check-prefixes=LOSS,SPLIT

// A loss with a term, which takes half of the sequence. The cotangent of the term
// is its coefficient, and goes to the rows of the logsumexp. The weights' half
// keeps no cotangent of the other: it computes the logits again.

// LOSS: func.func @loss(%{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<f32> {rota.loss_term = #rota.loss_term<name = "z", coefficient = 2.500000e-01>})

// JOINT:     func.func @loss_backward(%[[X:.*]]: tensor<2x4x8xf32>, %[[T:.*]]: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<2x4x8xf32>)
// JOINT:       %[[SUM:.*]], %[[WEIGHT:.*]], %[[LSE:.*]] = rota.cross_entropy %[[LOGITS:.*]], %[[T]]
// JOINT:       %[[TERM:.*]] = rota.reduce sum %[[LSE]]
// JOINT-DAG:   %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// JOINT-DAG:   %[[QUARTER:.*]] = arith.constant dense<2.500000e-01> : tensor<f32>
// JOINT:       %[[ROWS:.*]] = rota.broadcast %[[QUARTER]]
// JOINT:       rota.cross_entropy_grad %[[ONE]], %[[LOGITS]], %[[T]], %[[LSE]] rows %[[ROWS]]
// JOINT:       return %[[SUM]], %[[WEIGHT]], %[[TERM]], %{{.*}}

// SPLIT:     func.func @loss_backward_input({{.*}}) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<2x4x8xf32>) {
// SPLIT:     func.func @loss_backward_weight(%{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<2x4xi32>) {
// SPLIT:       rota.cross_entropy %
// SPLIT:       rota.cross_entropy_grad %
// SPLIT:       rota.accumulate @head

rota.param @head : tensor<8x16xf32> axes ["embed", "vocab"] init #rota.constant<value = 1.0>
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func @forward(%x: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
      return %x : tensor<2x8x8xf32>
    }
  }
}
func.func @embed(%x: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  return %x : tensor<2x8x8xf32>
}
func.func @loss(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<f32> {rota.loss_term = #rota.loss_term<name = "z", coefficient = 2.5e-01>}) {
  %head = rota.read @head : tensor<8x16xf32>
  %logits = rota.einsum "bsk,kn->bsn" %x, %head : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  %sum, %weight, %lse = rota.cross_entropy %logits, %targets : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
  %z = rota.reduce sum %lse dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %sum, %weight, %z : tensor<f32>, tensor<f32>, tensor<f32>
}
