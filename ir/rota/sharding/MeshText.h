// SPDX-License-Identifier: Apache-2.0
//
// Meshes as text, `data=2,stage=4`: the form of --mesh and of pass options.
#ifndef ROTA_IR_ROTA_SHARDING_MESHTEXT_H
#define ROTA_IR_ROTA_SHARDING_MESHTEXT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace mlir::rota {

/// A mesh has at most as many ranks, so that products of sizes fit an int64_t.
inline constexpr int64_t kMaxRanks = int64_t(1) << 24;

/// A size for each axis, in the order of MeshAxis. One may be kInferredSize.
using MeshSizes = llvm::SmallVector<int64_t, 8>;
inline constexpr int64_t kInferredSize = -1;

/// "data, stage, ..." in the order of MeshAxis.
std::string meshAxisNames();

/// Reads sizes; axes that are not there have size 1, and an empty text is a
/// mesh of one rank. Nothing, and an `error`, when an axis is unknown or stands
/// twice, a size is out of range, or two sizes are to be inferred.
std::optional<MeshSizes> parseMeshSizes(llvm::StringRef text,
                                        std::string &error);

/// Gives the axis of size kInferredSize, if there is one, what the others leave
/// of `ranks`. False, and an `error`, when the sizes do not fit `ranks`.
bool fitMeshSizes(MeshSizes &sizes, int64_t ranks, std::string &error);

/// The text of sizes; those of 1 are left out.
std::string meshText(llvm::ArrayRef<int64_t> sizes);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_SHARDING_MESHTEXT_H
