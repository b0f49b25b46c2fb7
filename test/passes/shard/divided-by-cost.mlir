// The division of tokens and rows where an axis divides sequences and experts:
// along the sequences, so that rows travel to their experts and back, or along
// the rows, so that tokens travel to all.
// RUN: rota-opt %s --split-input-file --propagate-shardings | FileCheck %s
// RUN: rota-opt %s --split-input-file --propagate-shardings --remarks-filter=shard -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

// A sequence has 2048 rows: fewer than the 4 x 1024 tokens that ranks would
// gather.
// CHECK-LABEL: func.func @few
// CHECK: rota.dispatch {{.*}} {rota.factors = [#rota.dimension<[expert]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
// CHECK: rota.grouped_product {{.*}} {rota.factors = [#rota.dimension<[expert]>, #rota.dimension<[]>, {{.*}}]}
// CHECK: rota.combine {{.*}} {rota.factors = [#rota.dimension<[expert]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>]}
// REMARK: divided-by-cost {{.*}}Instead="#rota.sharding<{{\[\[}}], [expert], []]>", Reason="'rota.dispatch' is divided so that the fewest bytes move", Result="#rota.sharding<{{\[\[}}expert], [], []]>", Saved={{[1-9][0-9]*}}
// REMARK: divided-by-cost {{.*}}Instead="#rota.sharding<{{\[\[}}], [], []] unreduced [expert]>", Reason="'rota.combine' is {{.*}}Result="#rota.sharding<{{\[\[}}expert], [], []]>", Saved={{[1-9][0-9]*}}
rota.mesh <expert = 4>
rota.param @w : tensor<4x512x512xf32> axes ["experts", "mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 512, 512] compute <[[expert], [], []]> storage <[[expert], [], []]> optimizer <[[expert], [], []]>>
func.func @few(%x: tensor<4x1024x512xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, %places: tensor<4x1024x2xi32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, %counts: tensor<4x4xi32> {rota.sharding = #rota.sharding<[[expert], []]>}) -> (tensor<4x1024x512xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}) {
  %rows = rota.dispatch %x, %places : (tensor<4x1024x512xf32>, tensor<4x1024x2xi32>) -> tensor<4x2048x512xf32>
  %w = rota.read @w : tensor<4x512x512xf32>
  %made = rota.grouped_product %rows, %w, %counts blocks = 4 : (tensor<4x2048x512xf32>, tensor<4x512x512xf32>, tensor<4x4xi32>) -> tensor<4x2048x512xf32>
  %y = rota.combine %made, %places : (tensor<4x2048x512xf32>, tensor<4x1024x2xi32>) -> tensor<4x1024x512xf32>
  return %y : tensor<4x1024x512xf32>
}

// -----

// 8192 rows are more than the tokens.
// CHECK-LABEL: func.func @many
// CHECK: rota.dispatch {{.*}} {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[expert]>, #rota.dimension<[]>]}
// CHECK: rota.combine {{.*}} {rota.factors = [#rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[]>, #rota.dimension<[expert]>, #rota.dimension<[]>]}
// REMARK: divided-by-cost {{.*}}Instead="#rota.sharding<{{\[\[}}expert], [], []]>", Reason="'rota.dispatch' is {{.*}}Result="#rota.sharding<{{\[\[}}], [expert], []]>"
// REMARK: divided-by-cost {{.*}}Instead="#rota.sharding<{{\[\[}}expert], [], []]>", Reason="'rota.combine' is {{.*}}Result="#rota.sharding<{{\[\[}}], [], []] unreduced [expert]>"
rota.mesh <expert = 4>
rota.param @w : tensor<4x512x512xf32> axes ["experts", "mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 512, 512] compute <[[expert], [], []]> storage <[[expert], [], []]> optimizer <[[expert], [], []]>>
func.func @many(%x: tensor<4x1024x512xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, %places: tensor<4x1024x2xi32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, %counts: tensor<4x4xi32> {rota.sharding = #rota.sharding<[[expert], []]>}) -> (tensor<4x1024x512xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}) {
  %rows = rota.dispatch %x, %places : (tensor<4x1024x512xf32>, tensor<4x1024x2xi32>) -> tensor<4x8192x512xf32>
  %w = rota.read @w : tensor<4x512x512xf32>
  %made = rota.grouped_product %rows, %w, %counts blocks = 4 : (tensor<4x8192x512xf32>, tensor<4x512x512xf32>, tensor<4x4xi32>) -> tensor<4x8192x512xf32>
  %y = rota.combine %made, %places : (tensor<4x8192x512xf32>, tensor<4x1024x2xi32>) -> tensor<4x1024x512xf32>
  return %y : tensor<4x1024x512xf32>
}

// -----

// Two uses of one cotangent: as long as either is divided along rows, it is
// gathered. Both together are cheaper along sequences, though neither is alone.
// CHECK-LABEL: func.func @together
// CHECK: rota.dispatch {{.*}} {rota.factors = [#rota.dimension<[expert]>, {{.*}}]}
// CHECK: rota.choice_dot {{.*}} {rota.factors = [#rota.dimension<[expert]>, {{.*}}]}
rota.mesh <expert = 4>
rota.param @w : tensor<4x512x512xf32> axes ["experts", "mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 512, 512] compute <[[expert], [], []]> storage <[[expert], [], []]> optimizer <[[expert], [], []]>>
func.func @together(%dy: tensor<4x1024x512xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, %places: tensor<4x1024x2xi32> {rota.sharding = #rota.sharding<[[], [], []]>}, %counts: tensor<4x4xi32> {rota.sharding = #rota.sharding<[[], [expert]]>}, %made: tensor<4x1792x512xf32> {rota.sharding = #rota.sharding<[[], [expert], []]>}) -> (tensor<4x1792x512xf32> {rota.sharding = #rota.sharding<[[], [expert], []]>}, tensor<4x1024x2xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}) {
  %rows = rota.dispatch %dy, %places : (tensor<4x1024x512xf32>, tensor<4x1024x2xi32>) -> tensor<4x1792x512xf32>
  %w = rota.read @w : tensor<4x512x512xf32>
  %d = rota.grouped_product %rows, %w, %counts blocks = 4 : (tensor<4x1792x512xf32>, tensor<4x512x512xf32>, tensor<4x4xi32>) -> tensor<4x1792x512xf32>
  %dw = rota.choice_dot %dy, %made, %places : (tensor<4x1024x512xf32>, tensor<4x1792x512xf32>, tensor<4x1024x2xi32>) -> tensor<4x1024x2xf32>
  return %d, %dw : tensor<4x1792x512xf32>, tensor<4x1024x2xf32>
}

// -----

// With more rows, gathering the cotangent once is cheaper.
// CHECK-LABEL: func.func @apart
// CHECK: rota.dispatch {{.*}} {rota.factors = [#rota.dimension<[]>, {{.*}}]}
// CHECK: rota.choice_dot {{.*}} {rota.factors = [#rota.dimension<[]>, {{.*}}]}
rota.mesh <expert = 4>
rota.param @w : tensor<4x512x512xf32> axes ["experts", "mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 512, 512] compute <[[expert], [], []]> storage <[[expert], [], []]> optimizer <[[expert], [], []]>>
func.func @apart(%dy: tensor<4x1024x512xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, %places: tensor<4x1024x2xi32> {rota.sharding = #rota.sharding<[[], [], []]>}, %counts: tensor<4x4xi32> {rota.sharding = #rota.sharding<[[], [expert]]>}, %made: tensor<4x2304x512xf32> {rota.sharding = #rota.sharding<[[], [expert], []]>}) -> (tensor<4x2304x512xf32> {rota.sharding = #rota.sharding<[[], [expert], []]>}, tensor<4x1024x2xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}) {
  %rows = rota.dispatch %dy, %places : (tensor<4x1024x512xf32>, tensor<4x1024x2xi32>) -> tensor<4x2304x512xf32>
  %w = rota.read @w : tensor<4x512x512xf32>
  %d = rota.grouped_product %rows, %w, %counts blocks = 4 : (tensor<4x2304x512xf32>, tensor<4x512x512xf32>, tensor<4x4xi32>) -> tensor<4x2304x512xf32>
  %dw = rota.choice_dot %dy, %made, %places : (tensor<4x1024x512xf32>, tensor<4x2304x512xf32>, tensor<4x1024x2xi32>) -> tensor<4x1024x2xf32>
  return %d, %dw : tensor<4x2304x512xf32>, tensor<4x1024x2xf32>
}

// -----

// Of 8192 rows of a sequence a quarter is expected to be filled: fewer bytes than
// those of the tokens.
// CHECK-LABEL: func.func @filled
// CHECK: rota.dispatch {{.*}} {rota.factors = [#rota.dimension<[expert]>, {{.*}}]}
// CHECK: rota.combine {{.*}} {rota.factors = [#rota.dimension<[expert]>, {{.*}}]}
rota.mesh <expert = 4>
rota.param @w : tensor<4x512x512xf32> axes ["experts", "mlp", "embed"] init #rota.constant<value = 1.0> placement <whole [4, 512, 512] compute <[[expert], [], []]> storage <[[expert], [], []]> optimizer <[[expert], [], []]>>
func.func @filled(%x: tensor<4x1024x512xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, %places: tensor<4x1024x2xi32> {rota.sharding = #rota.sharding<[[expert], [], []]>}, %counts: tensor<4x4xi32> {rota.sharding = #rota.sharding<[[expert], []]>}) -> (tensor<4x1024x512xf32> {rota.sharding = #rota.sharding<[[expert], [], []]>}) {
  %rows = rota.dispatch %x, %places counts %counts blocks = 4 fill = 0.25 : (tensor<4x1024x512xf32>, tensor<4x1024x2xi32>, tensor<4x4xi32>) -> tensor<4x8192x512xf32>
  %w = rota.read @w : tensor<4x512x512xf32>
  %made = rota.grouped_product %rows, %w, %counts blocks = 4 fill = 0.25 : (tensor<4x8192x512xf32>, tensor<4x512x512xf32>, tensor<4x4xi32>) -> tensor<4x8192x512xf32>
  %y = rota.combine %made, %places counts %counts blocks = 4 fill = 0.25 : (tensor<4x8192x512xf32>, tensor<4x1024x2xi32>, tensor<4x4xi32>) -> tensor<4x1024x512xf32>
  return %y : tensor<4x1024x512xf32>
}
