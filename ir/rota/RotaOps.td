//===- RotaOps.td - All ops but those of experts -----------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
include "ir/rota/AttentionOps.td"
include "ir/rota/CollectiveOps.td"
include "ir/rota/KernelOps.td"
include "ir/rota/ModelOps.td"
include "ir/rota/TensorOps.td"
include "ir/rota/Updates.td"
include "ir/rota/VocabularyOps.td"
