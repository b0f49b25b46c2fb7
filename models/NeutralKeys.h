// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json that no builder reads and that change nothing. A builder
// that ignored any other would train another model than the file describes.
#ifndef ROTA_MODELS_NEUTRALKEYS_H
#define ROTA_MODELS_NEUTRALKEYS_H

#include "models/Config.h"

namespace mlir::rota {

/// A key, and the values with which it changes nothing. Null is always one.
struct NeutralKey {
  StringLiteral key;
  enum Values { Any, False, Zero, One, Empty, FullAttention } values;
};

/// Checks each key of the file that has a value and that no function asked for.
/// A key among `ofFamily`, or those of all families, must have one of its
/// neutral values. Other keys are errors that name the nearest known key, or
/// warnings where the user `allowsUnknown` ones. A reader has asked for all its
/// keys, in objects as well.
void checkOtherKeys(Config &config, StringRef family,
                    ArrayRef<NeutralKey> ofFamily, bool allowsUnknown);

} // namespace mlir::rota

#endif // ROTA_MODELS_NEUTRALKEYS_H
