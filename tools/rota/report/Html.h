// SPDX-License-Identifier: Apache-2.0
//
// The frame of HTML pages and their tables of names and values.
#ifndef ROTA_TOOLS_ROTA_REPORT_HTML_H
#define ROTA_TOOLS_ROTA_REPORT_HTML_H

#include "tools/planner/LooseJson.h"

#include <string>

namespace rota::report {

using json::Json, json::member, json::number, json::parseJson, json::text;

/// A page that needs no other file and no network, with the style sheet of all
/// classes that this folder uses. `title` is a text, `body` HTML.
std::string htmlPage(const std::string &title, const std::string &body);

/// "12.5 %".
std::string percentText(double share);
/// "1,234,567".
std::string wholeText(double value);
/// The same, or three digits of a number below 100.
std::string rateText(double value);

/// "data=2, stage=4": sizes of axes by name; empty for what is no object.
std::string meshText(const Json &mesh);

/// A table of names and values.
class Table {
public:
  /// Empty values are left out.
  void add(const std::string &name, const std::string &value);
  /// A number of `object`, where it has that.
  void add(const std::string &name, const Json &object, const char *key,
           std::string (*format)(double));

  /// `value` is HTML.
  void addHtml(const std::string &name, const std::string &value);

  std::string html; // its rows
};

} // namespace rota::report

#endif // ROTA_TOOLS_ROTA_REPORT_HTML_H
