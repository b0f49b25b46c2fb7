// SPDX-License-Identifier: Apache-2.0
//
// Builds models from text in temporary files.
#include "ModelFixture.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <fstream>

using namespace mlir;
using namespace mlir::rota;

static DialectRegistry modelRegistry() {
  DialectRegistry registry;
  registerModelDialects(registry);
  return registry;
}

ModelFixture::ModelFixture() : context(modelRegistry()) {
  context.loadAllAvailableDialects();
  SmallString<128> path;
  EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("rota-models", path));
  folder = path.str();
}

ModelFixture::~ModelFixture() { llvm::sys::fs::remove_directories(folder); }

nlohmann::json ModelFixture::smallLlama() {
  return {{"model_type", "llama"},
          {"vocab_size", 64},
          {"hidden_size", 24},
          {"intermediate_size", 40},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 8},
          {"rope_theta", 500.0},
          {"rms_norm_eps", 1e-5},
          {"tie_word_embeddings", false},
          {"torch_dtype", "float32"}};
}

nlohmann::json ModelFixture::shipped(StringRef name) {
  std::ifstream file(std::string(ROTA_SOURCE_DIR "/models/configs/") +
                     name.str() + "/config.json");
  return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
}

FailureOr<BuiltModel> ModelFixture::buildPath(StringRef path,
                                              const BuildOptions &options) {
  diagnostics.clear();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation());
    if (place)
      diagnostics += std::to_string(place.getLine()) + ":" +
                     std::to_string(place.getColumn()) + ": ";
    diagnostics += diagnostic.str() + "\n";
    return success();
  });
  return buildModel(context, path, options);
}

FailureOr<BuiltModel> ModelFixture::buildText(StringRef text,
                                              StringRef fileName,
                                              const BuildOptions &options) {
  std::string path = folder + "/" + fileName.str();
  std::ofstream(path) << text.str();
  return buildPath(path, options);
}

FailureOr<BuiltModel> ModelFixture::build(const nlohmann::json &config,
                                          const BuildOptions &options) {
  return buildText(config.dump(2), "config.json", options);
}

std::string ModelFixture::diagnose(const nlohmann::json &config) {
  EXPECT_TRUE(failed(build(config))) << config.dump(2);
  return diagnostics;
}

std::string ModelFixture::print(const BuiltModel &model) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OwningOpRef<ModuleOp> &module = const_cast<BuiltModel &>(model).module;
  module->print(stream);
  return text;
}
