// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/sample/SampleText.h"

#include <cerrno>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

namespace rota {

nlohmann::ordered_json sampleJson(const Sample &sample) {
  nlohmann::ordered_json line = {{"event", "sample"},
                                 {"step", nullptr},
                                 {"prompt", sample.prompt},
                                 {"tokens", sample.tokens},
                                 {"text", nullptr}};
  if (sample.step)
    line["step"] = *sample.step;
  if (sample.text)
    line["text"] = *sample.text;
  return line;
}

/// No signal comes where the process is gone.
static bool writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = send(file, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

/// A line without its end; none where the process has ended before.
static std::optional<std::string> readLine(int file) {
  std::string line;
  for (char c = 0;;) {
    ssize_t n = read(file, &c, 1);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return std::nullopt;
    if (c == '\n')
      return line;
    line += c;
  }
}

std::optional<std::string>
SampleText::textOf(const std::vector<int32_t> &tokens) const {
  if (decoder.empty() || !writeAll(static_cast<int>(decoder[1]),
                                   fmt::format("{}\n", fmt::join(tokens, ","))))
    return std::nullopt;
  std::optional<std::string> line = readLine(static_cast<int>(decoder[0]));
  auto text = nlohmann::json::parse(line.value_or(""), nullptr,
                                    /*allow_exceptions=*/false);
  if (!text.is_string())
    return std::nullopt;
  return text.get<std::string>();
}

} // namespace rota
