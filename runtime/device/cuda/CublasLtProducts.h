// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices through cuBLASLt.
//
// The algorithm of a product is chosen when its description is first met:
//   - the one that the file of algorithms has, else
//   - the fastest of those that the library proposes, measured with the
//     operands at hand, in C, or in a copy of C where it is accumulated into;
//     those that fail are left out, and a line on stderr says why;
//   - the library's first proposal while the stream is captured, where there is
//     no memory for the copy, and without a file.
// A product that can be cut in two (GemmParts.h) is cut where that was measured
// to be faster.
//
// Each choice is written to the file, measured or not, so it is that of all
// ranks and all later runs. The library promises the same bits each time for
// the same algorithm, version and kind of GPU, as long as products of several
// streams have workspaces of their own. So a run without a file repeats its
// bits, and so do all runs with the same file, the first one included.
//
// The library is opened for the first product, and CUDA loads the code of an
// algorithm when it first runs.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_CUBLASLTPRODUCTS_H
#define ROTA_RUNTIME_DEVICE_CUDA_CUBLASLTPRODUCTS_H

#include "runtime/device/cuda/AlgorithmFile.h"
#include "runtime/device/cuda/BlasLtProduct.h"
#include "runtime/device/cuda/GemmParts.h"
#include "runtime/device/cuda/MeasureAlgorithms.h"
#include "runtime/device/cuda/Products.h"

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace rota::cuda {

struct CublasLtOptions {
  /// Whether products of f32 matrices may round their operands to TF32.
  bool allowTf32 = false;
  /// Empty for no file.
  std::string algorithmFile = defaultAlgorithmFile();
  /// Whether `prepare` chooses and runs each product, so that nothing is loaded
  /// later: loading code may wait for all that the GPU does, transfers that
  /// wait for another rank included.
  bool loadsAhead = false;
};

/// Finds the library; throws InputError where there is none.
using BlasLtLoader = std::function<const BlasLtApi &()>;

class CublasLtProducts : public Products {
public:
  /// `device` is the GPU's name. That GPU's context is current to the thread,
  /// here and in all calls.
  CublasLtProducts(const DriverApi &driver, std::string device,
                   BlasLtLoader load, CublasLtOptions options = {});
  ~CublasLtProducts() override;
  CublasLtProducts(const CublasLtProducts &) = delete;
  CublasLtProducts &operator=(const CublasLtProducts &) = delete;

  void multiply(const RotaGemm &gemm, const void *a, const void *b, void *c,
                void *workspace, int64_t workspaceBytes,
                StreamHandle stream) override;
  void prepare(const RotaGemm &gemm, const void *a, const void *b, void *c,
               void *workspace, int64_t workspaceBytes,
               StreamHandle stream) override;

private:
  /// All that an algorithm depends on, for one library, GPU and options.
  struct Key {
    RotaGemm gemm;
    BlasLtLimits limits;
    bool operator==(const Key &other) const;
  };
  struct KeyHash {
    size_t operator()(const Key &key) const;
  };
  /// A product that the library is asked for.
  struct Part {
    BlasLtProduct product;
    BlasLtAlgorithm algorithm;
    GemmPart place;

    BlasStatus start(const BlasLtOperands &operands, StreamHandle stream) const;
  };
  using Parts = std::vector<Part>; // in order

  void open();
  static Key keyOf(const RotaGemm &gemm, const BlasLtOperands &operands);
  std::string nameOf(const Key &key) const;
  /// The product itself or, where that was measured to be faster, its parts.
  Parts chooseParts(const Key &key, const BlasLtOperands &operands,
                    StreamHandle stream);
  Parts chooseEach(std::span<const GemmPart> parts,
                   const BlasLtOperands &operands, StreamHandle stream);
  BlasLtAlgorithm choose(const BlasLtProduct &product, const Key &key,
                         const BlasLtOperands &operands, StreamHandle stream);
  /// Which of `count` computes the product in the least time: the first where
  /// nothing can be measured. `changesC`: C is not replaced as a whole.
  Fastest measure(
      const RotaGemm &gemm, bool changesC, size_t count,
      const std::function<BlasStatus(size_t, const BlasLtOperands &operands)>
          &start,
      BlasLtOperands operands, StreamHandle stream);
  void clear(const RotaGemm &g, void *c, StreamHandle stream);

  const DriverApi &driver;
  std::string device;
  BlasLtLoader load;
  const BlasLtApi *api = nullptr; // null: not opened yet, and no context
  bool allowTf32, loadsAhead;
  AlgorithmFile file;
  BlasLtContext *context = nullptr;
  std::unordered_map<Key, Parts, KeyHash> entries; // gone before `context`
};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_CUBLASLTPRODUCTS_H
