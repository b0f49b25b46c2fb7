// SPDX-License-Identifier: Apache-2.0
//
// Whether a folder of adapters is one of the model.
#ifndef ROTA_TOOLS_ROTA_CHECKADAPTER_H
#define ROTA_TOOLS_ROTA_CHECKADAPTER_H

#include "models/Models.h"

#include <string>

namespace rota {

/// Compares the tensors of the adapter in `folder`, as PEFT writes it, with
/// those of a model that was built with its targets. Returns false, and an
/// `error` that names model, target and shapes, for a tensor that one of both
/// lacks or that has another shape.
bool checkAdapter(const mlir::rota::BuiltModel &model,
                  const std::string &folder, std::string &error);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_CHECKADAPTER_H
