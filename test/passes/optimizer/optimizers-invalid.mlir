// RUN: not rota-opt %s -build-updates='optimizer=sgd values=beta1=0.5' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not rota-opt %s -build-updates='optimizer=muon values=momentum=1' 2>&1 | FileCheck %s --check-prefix=BOUND
// RUN: not rota-opt %s -build-updates='optimizer=adamw values=epsilon=0' 2>&1 | FileCheck %s --check-prefix=EPSILON
// RUN: not rota-opt %s -build-updates='optimizer=adamw groups=nrom=decay:0' 2>&1 | FileCheck %s --check-prefix=NEAR
// RUN: not rota-opt %s -build-updates='optimizer=adamw groups=norm=rate:2' 2>&1 | FileCheck %s --check-prefix=FACTOR
// RUN: not rota-opt %s -build-updates='optimizer=adamw groups=norm=lr:-1' 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not rota-opt %s -build-updates='optimizer=adamw groups=norm=lr:1,lr:2' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not rota-opt %s -build-updates='optimizer=adamw groups=lr:1' 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not rota-opt %s -build-updates='optimizer=adamw gradient-dtype=bf16' 2>&1 | FileCheck %s --check-prefix=NARROW

// OPTION: error: expected an option of 'sgd', got 'beta1'
// BOUND: error: expected a value of 'momentum' within its bounds, got '1'
// EPSILON: error: expected a value of 'epsilon' within its bounds, got '0'
// NEAR: error: 'group': expected a part of a parameter's name, got 'nrom'; the nearest names are 'model.norm.weight', 'lm_head.weight'
// FACTOR: error: expected 'lr:X' or 'decay:X' for 'norm', got 'rate:2'
// NUMBER: error: expected a number of at least 0 for 'lr' of 'norm', got '-1'
// TWICE: error: expected 'lr' once for 'norm', got 'lr:2'
// NARROW: error: 'gradient-dtype': expected a parameter that products read in bf16, as with 'dtype' bf16, got none
// FORM: error: expected PATTERN=KEY:VALUE,..., got 'lr:1'
rota.param @lm_head.weight : tensor<8xf32> axes ["x"] init #rota.constant<value = 1.0>
rota.param @model.norm.weight : tensor<8xf32> axes ["x"] init #rota.constant<value = 1.0>
func.func @f() -> (tensor<8xf32>, tensor<8xf32>) {
  %a = rota.read @lm_head.weight : tensor<8xf32>
  %b = rota.read @model.norm.weight : tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}
