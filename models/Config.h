// SPDX-License-Identifier: Apache-2.0
//
// A model's config.json as builders read it: typed values with rules, and
// diagnostics at the key that breaks one.
#ifndef ROTA_MODELS_CONFIG_H
#define ROTA_MODELS_CONFIG_H

#include "models/JsonFile.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringSet.h"

#include <optional>

namespace mlir::rota {

/// Reads values by key; "outer.inner" names a key of an inner object. A key
/// that is missing or null has the value of `fallback`, and is an error where
/// there is no fallback. After an error each function returns a valid value, so
/// that one run reports every mistake; `failed()` is true from then on.
class Config {
public:
  /// Largest size of one dimension and largest number of layers.
  static constexpr int64_t maxSize = (int64_t(1) << 31) - 1;
  static constexpr int64_t maxLayers = 100000;

  /// Reads the file, or `text` where it is not empty, for which `path` is a
  /// name; null after an error that was reported.
  static std::optional<Config> read(MLIRContext &context, StringRef path,
                                    StringRef text = "");

  /// An integer in [1, limit].
  int64_t size(StringRef key, std::optional<int64_t> fallback = {},
               int64_t limit = maxSize);
  /// A finite number for which `accepts` is true. `rule` describes it in
  /// messages: "a number above 0".
  double real(StringRef key, std::optional<double> fallback, StringRef rule,
              llvm::function_ref<bool(double)> accepts);
  /// A number above 0.
  double positive(StringRef key, std::optional<double> fallback);
  /// A number from 0 to 1.
  double share(StringRef key, std::optional<double> fallback);
  bool flag(StringRef key, std::optional<bool> fallback);
  std::string text(StringRef key, std::optional<std::string> fallback = {});

  /// The value of a key; null when it is missing or null.
  const nlohmann::json *find(StringRef key);
  /// True when the outermost object has the key, be it null.
  bool has(StringRef key) const { return file.root().contains(key.str()); }
  /// The spelling that the file has of a key with two; `key` where it has
  /// neither. Reports values of both that differ.
  StringRef spelling(StringRef key, StringRef other);

  /// Counts the key as asked for, with all keys of its object.
  void ignore(StringRef key) { ignored.insert(key); }
  /// The keys that were asked for, by their dotted paths.
  SmallVector<StringRef> keysAskedFor() const;
  /// The keys with a value that were not asked for, by their dotted paths, but
  /// for those for which `isKnown` is true, and all in their objects. An object
  /// of which no key was asked for counts as one key.
  SmallVector<std::pair<std::string, const nlohmann::json *>>
  otherKeys(llvm::function_ref<bool(StringRef)> isKnown) const;
  StringRef path() const { return file.path(); }
  StringRef source() const { return file.source(); }

  /// Starts an error at a key: "'KEY': " stands in front of the message.
  InFlightDiagnostic error(StringRef key);
  /// A warning at a key: a run goes on.
  InFlightDiagnostic warning(StringRef key);
  /// "expected RULE, got VALUE" at a key.
  void expected(StringRef key, const Twine &rule);

  bool failed() const { return hasFailed; }
  MLIRContext &context() const { return *mlirContext; }
  Location location(StringRef key) const;

private:
  Config(MLIRContext &context, JsonFile file)
      : mlirContext(&context), file(std::move(file)) {}

  const nlohmann::json *require(StringRef key, bool hasFallback);

  MLIRContext *mlirContext;
  JsonFile file;
  llvm::StringSet<> readKeys, ignored;
  bool hasFailed = false;
};

} // namespace mlir::rota

#endif // ROTA_MODELS_CONFIG_H
