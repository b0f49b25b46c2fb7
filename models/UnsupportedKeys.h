// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json that change the computation of some family. A builder
// that ignored one would train another model than the file describes.
#ifndef ROTA_MODELS_UNSUPPORTEDKEYS_H
#define ROTA_MODELS_UNSUPPORTEDKEYS_H

#include "models/Config.h"

namespace mlir::rota {

/// Reports each known key that changes the computation, that no reader asked
/// for, and that has another than its neutral value. A family calls it after it
/// has read the keys that it supports.
void refuseUnsupportedKeys(Config &config);

} // namespace mlir::rota

#endif // ROTA_MODELS_UNSUPPORTEDKEYS_H
