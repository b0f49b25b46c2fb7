// SPDX-License-Identifier: Apache-2.0
//
// Tables of an engine's settings. A row is a setting's name and the variable of
// the engine's run that it stands for, so one table writes and reads.
#ifndef ROTA_TOOLS_PLANNER_ENGINES_ROWS_H
#define ROTA_TOOLS_PLANNER_ENGINES_ROWS_H

#include "runtime/text/Text.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace rota::engines {

/// A setting of a run of type `Run`. One without a value is not written.
template <typename Run> struct Row {
  using Field =
      std::variant<std::optional<int64_t> Run::*, std::optional<double> Run::*,
                   std::optional<bool> Run::*,
                   std::optional<std::string> Run::*>;
  const char *group;
  const char *name;
  Field field;
  double least = -1e300; // least number

  bool isSwitch() const {
    return std::holds_alternative<std::optional<bool> Run::*>(field);
  }
  bool isText() const {
    return std::holds_alternative<std::optional<std::string> Run::*>(field);
  }

  /// The value in `run`; nothing where it has none.
  std::optional<std::string> text(const Run &run) const {
    return std::visit(
        [&](auto member) -> std::optional<std::string> {
          const auto &value = run.*member;
          if (!value)
            return std::nullopt;
          return textOf(*value);
        },
        field);
  }

  /// Sets the value in `run`. Returns an empty string, or what was expected.
  std::string assign(Run &run, const std::string &text) const {
    return std::visit([&](auto member) { return read(text, run.*member); },
                      field);
  }

private:
  static std::string textOf(int64_t value) { return std::to_string(value); }
  static std::string textOf(double value) { return numberText(value); }
  static std::string textOf(bool value) { return value ? "true" : "false"; }
  static std::string textOf(const std::string &value) { return value; }

  template <typename Number>
  std::string readNumber(const std::string &text, std::optional<Number> &value,
                         const char *kind) const {
    Number number{};
    auto [end, code] =
        std::from_chars(text.data(), text.data() + text.size(), number);
    bool fits = code == std::errc() && end == text.data() + text.size() &&
                std::isfinite(double(number)) && double(number) >= least;
    if (!fits)
      return std::string("expected ") + kind +
             (least > -1e300 ? " of at least " + numberText(least) : "") +
             ", got '" + text + "'";
    value = number;
    return "";
  }
  std::string read(const std::string &text,
                   std::optional<int64_t> &value) const {
    return readNumber(text, value, "an integer");
  }
  std::string read(const std::string &text,
                   std::optional<double> &value) const {
    return readNumber(text, value, "a number");
  }
  static std::string read(const std::string &text, std::optional<bool> &value) {
    if (text != "true" && text != "false")
      return "expected true or false, got '" + text + "'";
    value = text == "true";
    return "";
  }
  static std::string read(const std::string &text,
                          std::optional<std::string> &value) {
    value = text;
    return "";
  }
};

} // namespace rota::engines

#endif // ROTA_TOOLS_PLANNER_ENGINES_ROWS_H
