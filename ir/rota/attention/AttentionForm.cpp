// SPDX-License-Identifier: Apache-2.0
//
// The builder of rota.attention.
#include "ir/rota/Rota.h"

using namespace mlir;
using namespace mlir::rota;

void AttentionOp::build(OpBuilder &builder, OperationState &state, Value query,
                        Value key, Value value, const AttentionForm &form) {
  auto type = cast<RankedTensorType>(query.getType());
  ArrayRef<int64_t> q = type.getShape();
  int64_t size = cast<RankedTensorType>(value.getType()).getShape().back();
  Type wide = type.getElementType();
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  auto window =
      form.window ? builder.getI64IntegerAttr(*form.window) : IntegerAttr();
  auto softCap =
      form.softCap ? builder.getF64FloatAttr(*form.softCap) : FloatAttr();
  build(builder, state, type.clone({q[0], q[1], q[2], size}),
        RankedTensorType::get({q[0], q[2], q[1]}, wide), query, key, value,
        /*previous=*/{}, /*previous_logsumexp=*/{}, form.sinks, form.documents,
        /*position=*/{}, /*key_position=*/{},
        builder.getF64FloatAttr(form.scale), window, softCap,
        form.bidirectional ? builder.getUnitAttr() : UnitAttr(),
        /*ring=*/UnitAttr(), /*balanced=*/UnitAttr(),
        /*behind=*/IntegerAttr());
}
