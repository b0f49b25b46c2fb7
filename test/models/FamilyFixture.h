// SPDX-License-Identifier: Apache-2.0
//
// Small configurations of families, and what the models built of them have in
// each layer.
#ifndef ROTA_TEST_MODELS_FAMILYFIXTURE_H
#define ROTA_TEST_MODELS_FAMILYFIXTURE_H

#include "ModelFixture.h"

#include "ir/rota/model/Model.h"

#include <cmath>

namespace mlir::rota {

class FamilyFixture : public ModelFixture {
protected:
  /// A small configuration of the family, for sequences of 8 tokens.
  nlohmann::json small(const char *family) {
    auto config = smallLlama();
    config["model_type"] = family;
    return config;
  }

  /// A small GPT-2.
  static nlohmann::json smallGPT2() {
    return {{"model_type", "gpt2"}, {"vocab_size", 64}, {"n_embd", 24},
            {"n_layer", 4},         {"n_head", 4},      {"n_positions", 8}};
  }

  /// Expects exactly one error, which says `message`.
  void refuse(const nlohmann::json &config, StringRef message) {
    std::string said = diagnose(config);
    EXPECT_TRUE(StringRef(said).contains(message))
        << "expected: " << message.str() << "\ngot: " << said;
    EXPECT_EQ(StringRef(said).count('\n'), 1u) << said;
  }

  /// The names and sizes of the parameters of one layer.
  std::vector<std::string> layerParams(const nlohmann::json &config,
                                       int64_t layer = 0) {
    auto built = build(config);
    EXPECT_TRUE(succeeded(built)) << diagnostics;
    std::vector<std::string> names;
    if (failed(built))
      return names;
    auto model = Model::get(*built->module);
    for (ParamOp param : Model::params(model->kindOf(layer))) {
      std::string name = param.getSymName().str();
      for (int64_t size : param.getTensorType().getShape())
        name += " " + std::to_string(size);
      names.push_back(name);
    }
    return names;
  }

  using Windows = std::vector<std::optional<uint64_t>>;

  /// The results of `read` for the function of each layer.
  template <typename T>
  std::vector<T> ofLayers(const nlohmann::json &config, int64_t length,
                          llvm::function_ref<T(LayerOp)> read) {
    std::vector<T> values;
    auto built = build(config, {1, length, {}});
    EXPECT_TRUE(succeeded(built)) << diagnostics;
    if (failed(built))
      return values;
    auto model = Model::get(*built->module);
    for (uint64_t layer = 0; layer < model->stack.getLayers(); ++layer)
      values.push_back(read(model->kindOf(layer)));
    return values;
  }

  Windows windows(const nlohmann::json &config, int64_t length = 8) {
    return ofLayers<std::optional<uint64_t>>(config, length, [](LayerOp kind) {
      std::optional<uint64_t> window;
      kind.walk([&](AttentionOp op) { window = op.getWindow(); });
      return window;
    });
  }

  /// theta of each layer, whose head size is 8, out of its second frequency.
  std::vector<double> thetas(const nlohmann::json &config) {
    return ofLayers<double>(config, 8, [](LayerOp kind) {
      double theta = 0;
      kind.walk([&](RotaryTableOp op) {
        theta = std::round(std::pow(op.getFrequencies()[1], -4.0));
      });
      return theta;
    });
  }

  static bool has(const std::vector<std::string> &names, StringRef name) {
    return llvm::is_contained(names, name);
  }
};

} // namespace mlir::rota

#endif // ROTA_TEST_MODELS_FAMILYFIXTURE_H
