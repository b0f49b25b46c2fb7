// SPDX-License-Identifier: Apache-2.0
//
// The families of models, one row each. A new family is the file of its builder
// with the row, and its name in this list.
#ifndef ROTA_MODELS_FAMILY_H
#define ROTA_MODELS_FAMILY_H

#include "models/ModelBuilder.h"
#include "models/NeutralKeys.h"

#include <memory>

namespace mlir::rota {

struct Family {
  StringRef modelType;   // the value of `model_type`
  StringRef description; // for documents: one line
  /// Values of `architectures`, with and without the head of a language model;
  /// empty: any value.
  StringRef languageModel = {}, bareModel = {};
  ArrayRef<NeutralKey> neutralKeys = {}; // beside those of all families
  /// Reads the configuration and reports every mistake. The builder may build
  /// where there was none.
  std::unique_ptr<ModelBuilder> (*read)(Config &config,
                                        const Microbatch &microbatch,
                                        ModuleOp module);
};

/// All families, by the names of their rows.
#define ROTA_FAMILIES(ROW)                                                     \
  ROW(deepSeekV3)                                                              \
  ROW(gemma2)                                                                  \
  ROW(gemma3)                                                                  \
  ROW(gpt2)                                                                    \
  ROW(gptOss)                                                                  \
  ROW(llama)                                                                   \
  ROW(mistral)                                                                 \
  ROW(mixtral)                                                                 \
  ROW(olmo2)                                                                   \
  ROW(qwen2)                                                                   \
  ROW(qwen3)                                                                   \
  ROW(qwen3Moe)                                                                \
  ROW(simple)

#define ROTA_DECLARE_FAMILY(name) extern const Family name##Family;
ROTA_FAMILIES(ROTA_DECLARE_FAMILY)
#undef ROTA_DECLARE_FAMILY

/// The rows, in the order of the list.
ArrayRef<const Family *> allFamilies();

} // namespace mlir::rota

#endif // ROTA_MODELS_FAMILY_H
