// SPDX-License-Identifier: Apache-2.0
//
// Builds models from text in temporary files and collects the diagnostics.
#ifndef ROTA_TEST_MODELS_MODELFIXTURE_H
#define ROTA_TEST_MODELS_MODELFIXTURE_H

#include "models/Models.h"

#include "gtest/gtest.h"

#include <nlohmann/json.hpp>

namespace mlir::rota {

class ModelFixture : public ::testing::Test {
protected:
  ModelFixture();
  ~ModelFixture() override;

  /// A small valid Llama configuration to change keys of.
  static nlohmann::json smallLlama();
  /// A configuration of models/configs/.
  static nlohmann::json shipped(StringRef name);

  /// Builds from a file's text, a configuration, or a path.
  FailureOr<BuiltModel> buildText(StringRef text, StringRef fileName,
                                  const BuildOptions &options = {2, 8, {}});
  FailureOr<BuiltModel> build(const nlohmann::json &config,
                              const BuildOptions &options = {2, 8, {}});
  FailureOr<BuiltModel> buildPath(StringRef path,
                                  const BuildOptions &options = {2, 8, {}});
  /// Builds the configuration with one key changed and returns the diagnostics,
  /// a line each: "line:column: message".
  std::string diagnose(const nlohmann::json &config);

  static std::string print(const BuiltModel &model);

  MLIRContext context;
  std::string diagnostics; // diagnostics of the last build
  std::string folder;      // temporary, removed at the end
};

} // namespace mlir::rota

#endif // ROTA_TEST_MODELS_MODELFIXTURE_H
