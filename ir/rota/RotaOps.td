//===- RotaOps.td - All ops but those of experts -----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
include "ir/rota/attention/AttentionOps.td"
include "ir/rota/attention/RotaryOps.td"
include "ir/rota/composite/CompositeOps.td"
include "ir/rota/kernels/KernelOps.td"
include "ir/rota/model/ModelOps.td"
include "ir/rota/model/Updates.td"
include "ir/rota/sharding/CollectiveOps.td"
include "ir/rota/tensor/TensorOps.td"
include "ir/rota/vocabulary/VocabularyOps.td"
