// SPDX-License-Identifier: Apache-2.0
//
// A tensor of weights as hubs publish it: numbers, or numbers of few bits and
// their scales, from which readFloats makes f32 as transformers does.
#ifndef ROTA_RUNTIME_CHECKPOINT_STOREDTENSOR_H
#define ROTA_RUNTIME_CHECKPOINT_STOREDTENSOR_H

#include "runtime/checkpoint/Safetensors.h"

#include <functional>

namespace rota {

struct StoredTensor {
  enum Form {
    Plain,
    /// `values` are F8_E4M3 [..., rows, columns], `scales` [..., blocks of
    /// rows, blocks of columns]: each value times the scale of its block.
    BlockScaled,
    /// `values` are U8 [matrices, columns, groups, 16], each byte two E2M1
    /// numbers, the first in its low bits; `scales` U8 [matrices, columns,
    /// groups], exponents of 2 plus 127. `shape` is [matrices, 32 * groups,
    /// columns]: files hold the columns of each matrix.
    Mxfp4
  };

  TensorView values = {}, scales = {};
  Form form = Plain;
  std::vector<int64_t> shape = {};         // of the weights
  int64_t blockRows = 0, blockColumns = 0; // of BlockScaled

  int64_t elements() const;
  /// True for what readFloats takes.
  bool isFloat() const;
  /// "BF16", "F8_E4M3", "MXFP4".
  std::string type() const;
};

/// Elements [begin, end) as f32. `tensor.isFloat()` must hold.
void readFloats(const StoredTensor &tensor, int64_t begin, int64_t end,
                float *out);

/// The weights among `views`, by name. "X" of type F8_E4M3 takes
/// "X_scale_inv" with it, "X_blocks" and "X_scales" of type U8 become "X".
/// `fail(name, why)` throws where their shapes do not agree.
std::map<std::string, StoredTensor> storedTensorsOf(
    const std::map<std::string, TensorView> &views,
    const std::function<void(const std::string &, const std::string &)> &fail);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_STOREDTENSOR_H
