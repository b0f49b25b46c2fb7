# Every token of experts.mlir chooses experts 0 and 1: scores are below 1.
s/%weights, %chosen = rota.route %logits normalize/%skew = arith.constant dense<[9.0, 9.0, 0.0, 0.0]> : tensor<4xf32>\n      %weights, %chosen = rota.route %logits bias %skew normalize/
s/: (tensor<\(.\)x32x4xf32>) -> (tensor/: (tensor<\1x32x4xf32>, tensor<4xf32>) -> (tensor/
