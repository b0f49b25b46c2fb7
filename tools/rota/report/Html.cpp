// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/report/Html.h"

#include "passes/pipeline/drawing/Markup.h"
#include "runtime/program/MeshText.h"
#include "runtime/text/Text.h"

#include <cmath>
#include <fmt/format.h>

namespace rota::report {

namespace {

/// Colours for light and dark pages. s: series, k: kinds of actions, u: uses of
/// memory.
constexpr const char *kStyle = R"(
:root{color-scheme:light dark;--back:#fff;--card:#f6f7f9;--text:#1c2128;
--faint:#667080;--grid:#e1e5ea;--axis:#98a2b0;--warn:#9a5b00;
--s1:#1f6fd0;--s2:#d1581b;--s3:#23854b;--s4:#8146b8;
--F:#5b9be8;--B:#f0a04b;--I:#5dbb7d;--W:#b48be0;--T:#9aa4b2;--boxtext:#10151b;
--u0:#4c8fe0;--u1:#8fbdf0;--u2:#e8963f;--u3:#8fcb9f;--u4:#b48be0;--u5:#e8c547;
--u6:#8c95a1;--u7:#4fb3a9;--u8:#e07a8b;--u9:#b9936c}
@media(prefers-color-scheme:dark){:root{--back:#14181d;--card:#1c2228;
--text:#e4e8ee;--faint:#97a3b3;--grid:#2c343d;--axis:#5a6675;--warn:#e8b257;
--s1:#6fb0ff;--s2:#ff9a5c;--s3:#63d08f;--s4:#c79bf0}}
body{margin:0;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,"DejaVu Sans",sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px;overflow-wrap:break-word}
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:32px 0 8px}
p{margin:4px 0 10px}.faint{color:var(--faint)}.warn{color:var(--warn)}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:16px;
align-items:start}
.card,.wide{background:var(--card);border-radius:8px;padding:10px;overflow-x:auto}
.card svg{min-width:460px}.wide svg{min-width:760px}svg{display:block;width:100%;height:auto}
svg text{fill:var(--text);font-size:12px}svg .title{font-size:14px;font-weight:600}
svg .tick{fill:var(--faint)}svg .faint{opacity:.75}svg .box{fill:var(--boxtext);font-size:11px}
.grid line,line.grid{stroke:var(--grid)}line.axis{stroke:var(--axis)}
line.mark{stroke:var(--text);stroke-width:2}
.line{fill:none;stroke-width:1.6;stroke-linejoin:round}
.planned{opacity:.55}@media(prefers-color-scheme:dark){.planned{opacity:.75}}
line.device{stroke:var(--warn);stroke-width:2;stroke-dasharray:7 4}
line.arena{stroke:var(--text);stroke-dasharray:2 3}
svg .warn{fill:var(--warn)}.best{stroke:var(--text);stroke-width:2}
.other{fill:var(--axis)}
.scroll{overflow-x:auto;margin:12px 0}.scroll table{min-width:520px}
.scroll th,.scroll td:not(.left){white-space:nowrap}.scroll td.left{min-width:120px}
table{border-collapse:collapse;background:var(--card);border-radius:8px;width:100%}
th,td{padding:4px 12px;border-bottom:1px solid var(--grid);text-align:right;
font-variant-numeric:tabular-nums}
th{font-weight:500;color:var(--faint);text-align:left}
.grid th,details>table th{white-space:nowrap}
.grid td,details>table td{overflow-wrap:anywhere}
td.left,th.left{text-align:left}.many th{text-align:right}
.many th[colspan]{text-align:center}
.many tr>th:first-child{text-align:left}.many th.left{text-align:left}
tr:last-child>*{border-bottom:0}
.key{display:inline-block;min-width:16px;padding:0 4px;border-radius:3px;
color:var(--boxtext);text-align:center;font-size:12px}.item{white-space:nowrap;margin-right:12px}
.key.kF{background:var(--F)}.key.kB{background:var(--B)}.key.kI{background:var(--I)}
.key.kW{background:var(--W)}.key.transfer{background:var(--T)}
.kF{fill:var(--F)}.kB{fill:var(--B)}.kI{fill:var(--I)}.kW{fill:var(--W)}
rect.transfer{fill:var(--T)}.c1{filter:brightness(.9)}.c2{filter:brightness(.8)}
@media(max-width:600px){main{padding:12px}}
details{margin-top:24px}summary{cursor:pointer}
pre{background:var(--card);border-radius:8px;padding:10px;overflow-x:auto;font-size:12px}
)";

/// The classes of numbered colours.
std::string numberedStyles() {
  std::string styles;
  for (int i = 1; i <= 4; ++i)
    styles += fmt::format(".line.s{0}{{stroke:var(--s{0})}}"
                          ".fill.s{0}{{fill:var(--s{0})}}\n",
                          i);
  for (int i = 0; i < 10; ++i)
    styles += fmt::format(".key.u{0}{{background:var(--u{0})}}"
                          ".fill.u{0}{{fill:var(--u{0})}}\n",
                          i);
  return styles;
}

} // namespace

std::string htmlPage(const std::string &title, const std::string &body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
         "charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width,initial-scale=1\">\n<title>" +
         escaped(title) + "</title>\n<style>" + kStyle + numberedStyles() +
         "</style>\n</head>\n<body>\n<main>\n<h1>" + escaped(title) +
         "</h1>\n" + body + "</main>\n</body>\n</html>\n";
}

std::string percentText(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string wholeText(double value) { return grouped(std::llround(value)); }

std::string rateText(double value) {
  return value < 100 ? fmt::format("{:.3g}", value) : wholeText(value);
}

std::string meshText(const Json &mesh) {
  std::string text;
  if (mesh.is_object())
    for (const auto &[axis, size] : mesh.items())
      if (size.is_number_integer())
        addAxis(text, axis, size.get<int64_t>());
  return text;
}

void Table::addHtml(const std::string &name, const std::string &value) {
  html +=
      fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escaped(name), value);
}

void Table::add(const std::string &name, const std::string &value) {
  if (!value.empty())
    addHtml(name, escaped(value));
}

void Table::add(const std::string &name, const Json &object, const char *key,
                std::string (*format)(double)) {
  if (auto value = number(object, key))
    add(name, format(*value));
}

} // namespace rota::report
