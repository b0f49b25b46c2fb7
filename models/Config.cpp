// SPDX-License-Identifier: Apache-2.0
//
// Typed reading of config.json.
#include "models/Config.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

static Location locationOf(MLIRContext &context, const FileLocation &place) {
  return FileLineColLoc::get(&context, place.file, place.line, place.column);
}

std::optional<Config> Config::read(MLIRContext &context, StringRef path,
                                   StringRef text) {
  auto report = [&](const FileLocation &place, const Twine &message) {
    emitError(locationOf(context, place)) << message;
  };
  auto file = text.empty() ? JsonFile::read(path, report)
                           : JsonFile::parse(path, text, report);
  if (!file)
    return std::nullopt;
  return Config(context, std::move(*file));
}

Location Config::location(StringRef key) const {
  return locationOf(*mlirContext, file.locationOf(key));
}

InFlightDiagnostic Config::error(StringRef key) {
  hasFailed = true;
  auto diagnostic = emitError(location(key));
  diagnostic << "'" << key << "': ";
  return diagnostic;
}

InFlightDiagnostic Config::warning(StringRef key) {
  auto diagnostic = emitWarning(location(key));
  diagnostic << "'" << key << "': ";
  return diagnostic;
}

void Config::expected(StringRef key, const Twine &rule) {
  const nlohmann::json *value = find(key);
  error(key) << "expected " << rule << ", got "
             << (value ? shortText(*value) : std::string("nothing"));
}

StringRef Config::spelling(StringRef key, StringRef other) {
  const nlohmann::json *value = find(key), *second = find(other);
  if (value && second && *value != *second)
    error(other) << "expected the value of '" << key << "', "
                 << shortText(*value) << ", got " << shortText(*second);
  return value || !second ? key : other;
}

SmallVector<StringRef> Config::keysAskedFor() const {
  SmallVector<StringRef> keys(readKeys.keys());
  llvm::sort(keys);
  return keys;
}

SmallVector<std::pair<std::string, const nlohmann::json *>>
Config::otherKeys(llvm::function_ref<bool(StringRef)> isKnown) const {
  SmallVector<std::pair<std::string, const nlohmann::json *>> keys;
  auto isPart = [&](StringRef object) {
    return llvm::any_of(readKeys.keys(), [&](StringRef key) {
      return key.consume_front(object) && key.starts_with(".");
    });
  };
  auto visit = [&](auto &self, const nlohmann::json &object,
                   const std::string &prefix) -> void {
    for (const auto &[name, value] : object.items()) {
      std::string path = prefix + name;
      if (value.is_null() || ignored.contains(path) || isKnown(path))
        continue;
      bool isPath = StringRef(name).contains('.'); // as no key that is read
      if (!isPath && value.is_object() && isPart(path))
        self(self, value, path + ".");
      else if (isPath || !readKeys.contains(path))
        keys.emplace_back(path, &value);
    }
  };
  visit(visit, file.root(), "");
  return keys;
}

const nlohmann::json *Config::find(StringRef key) {
  readKeys.insert(key);
  const nlohmann::json *value = &file.root();
  for (StringRef rest = key; !rest.empty();) {
    auto [name, inner] = rest.split('.');
    if (!value->is_object())
      return nullptr;
    auto it = value->find(name.str());
    if (it == value->end() || it->is_null())
      return nullptr;
    value = &*it;
    rest = inner;
  }
  return value;
}

const nlohmann::json *Config::require(StringRef key, bool hasFallback) {
  const nlohmann::json *value = find(key);
  if (!value && !hasFallback)
    error(key) << "the key is missing";
  return value;
}

int64_t Config::size(StringRef key, std::optional<int64_t> fallback,
                     int64_t limit) {
  const nlohmann::json *value = require(key, fallback.has_value());
  if (!value)
    return fallback.value_or(1);
  bool fits = value->is_number_unsigned()
                  ? value->get<uint64_t>() <= uint64_t(limit) &&
                        value->get<uint64_t>() > 0
                  : value->is_number_integer() && value->get<int64_t>() > 0 &&
                        value->get<int64_t>() <= limit;
  if (fits)
    return value->get<int64_t>();
  expected(key, "an integer from 1 to " + Twine(limit));
  return fallback.value_or(1);
}

double Config::real(StringRef key, std::optional<double> fallback,
                    StringRef rule, llvm::function_ref<bool(double)> accepts) {
  const nlohmann::json *value = require(key, fallback.has_value());
  if (!value)
    return fallback.value_or(1.0);
  if (value->is_number()) {
    double number = value->get<double>();
    if (std::isfinite(number) && accepts(number))
      return number;
  }
  expected(key, rule);
  return fallback.value_or(1.0);
}

double Config::positive(StringRef key, std::optional<double> fallback) {
  return real(key, fallback, "a number above 0",
              [](double value) { return value > 0; });
}

double Config::share(StringRef key, std::optional<double> fallback) {
  return real(key, fallback, "a number from 0 to 1",
              [](double value) { return value >= 0 && value <= 1; });
}

bool Config::flag(StringRef key, std::optional<bool> fallback) {
  const nlohmann::json *value = require(key, fallback.has_value());
  if (!value)
    return fallback.value_or(false);
  if (value->is_boolean())
    return value->get<bool>();
  expected(key, "true or false");
  return fallback.value_or(false);
}

std::string Config::text(StringRef key, std::optional<std::string> fallback) {
  const nlohmann::json *value = require(key, fallback.has_value());
  if (!value)
    return fallback.value_or("");
  if (value->is_string())
    return value->get<std::string>();
  expected(key, "a string");
  return fallback.value_or("");
}
