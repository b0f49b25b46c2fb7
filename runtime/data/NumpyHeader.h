// SPDX-License-Identifier: Apache-2.0
//
// The header of .npy files: see TokenFormat.h.
#ifndef ROTA_RUNTIME_DATA_NUMPYHEADER_H
#define ROTA_RUNTIME_DATA_NUMPYHEADER_H

#include "runtime/data/TokenFormat.h"

namespace rota {

/// The layout of a .npy file; nothing for a file that does not begin as one.
/// Throws InputError when the header is cut off or the array is not one
/// dimension of a token's type.
std::optional<TokenLayout> readNumpyHeader(const DataFile &file);

} // namespace rota

#endif // ROTA_RUNTIME_DATA_NUMPYHEADER_H
