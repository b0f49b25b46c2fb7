// SPDX-License-Identifier: Apache-2.0
//
// Compares two safetensors files tensor by tensor:
//
//   compare-safetensors ACTUAL EXPECTED TOLERANCE
//
// Both must hold the same tensors. A tensor's error is max|a - b| / max|b|, or
// max|a| where b is zero everywhere. Prints each tensor above the tolerance and
// the worst; exits with 1 when there is one, 2 when a file cannot be read.
// Tolerance 0 asks for equal values. It shares no code with the runtime's
// reader, which is under test.
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> values;
};
using Tensors = std::map<std::string, Tensor>;

[[noreturn]] void fail(const std::string &message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::exit(2);
}

template <typename Element>
std::vector<double> widen(const char *data, size_t bytes) {
  std::vector<Element> elements(bytes / sizeof(Element));
  std::memcpy(elements.data(), data, elements.size() * sizeof(Element));
  return {elements.begin(), elements.end()};
}

std::vector<double> valuesOf(const std::string &type, const char *data,
                             size_t bytes) {
  if (type == "F64")
    return widen<double>(data, bytes);
  if (type == "F32")
    return widen<float>(data, bytes);
  if (type == "I64")
    return widen<int64_t>(data, bytes);
  if (type == "I32")
    return widen<int32_t>(data, bytes);
  fail("expected elements of type F64, F32, I64 or I32, got " + type);
}

Tensors read(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  uint64_t headerBytes = 0;
  if (!file.is_open() || text.size() < 8)
    fail(std::string("cannot read ") + path);
  std::memcpy(&headerBytes, text.data(), 8);
  if (headerBytes > text.size() - 8)
    fail(std::string("the header is longer than the file: ") + path);
  auto header = nlohmann::json::parse(text.substr(8, headerBytes), nullptr,
                                      /*allow_exceptions=*/false);
  if (!header.is_object())
    fail(std::string("the header is no JSON object: ") + path);
  Tensors tensors;
  for (const auto &[name, entry] : header.items()) {
    if (name == "__metadata__")
      continue;
    uint64_t begin = entry.at("data_offsets").at(0);
    uint64_t end = entry.at("data_offsets").at(1);
    if (begin > end || end > text.size() - 8 - headerBytes)
      fail("tensor '" + name + "' lies outside " + path);
    tensors[name] = {entry.at("shape"),
                     valuesOf(entry.at("dtype"),
                              text.data() + 8 + headerBytes + begin,
                              end - begin)};
  }
  return tensors;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  return nlohmann::json(shape).dump();
}

/// max|a - b| / max|b|; infinite where a value is not a number.
double relativeError(const Tensor &actual, const Tensor &expected) {
  double difference = 0, scale = 0;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    double error = std::abs(actual.values[i] - expected.values[i]);
    if (std::isnan(error))
      return INFINITY;
    difference = std::max(difference, error);
    scale = std::max(scale, std::abs(expected.values[i]));
  }
  return scale > 0 ? difference / scale : difference;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4)
    fail("usage: compare-safetensors ACTUAL EXPECTED TOLERANCE");
  double tolerance = std::atof(argv[3]);
  Tensors actual = read(argv[1]), expected = read(argv[2]);
  bool isWrong = false;
  double worst = -1;
  std::string worstName = "none";
  for (const auto &[name, tensor] : actual)
    if (!expected.contains(name)) {
      std::printf("unexpected tensor '%s'\n", name.c_str());
      isWrong = true;
    }
  for (const auto &[name, tensor] : expected) {
    auto found = actual.find(name);
    if (found == actual.end()) {
      std::printf("missing tensor '%s'\n", name.c_str());
      isWrong = true;
      continue;
    }
    if (found->second.shape != tensor.shape ||
        found->second.values.size() != tensor.values.size()) {
      std::printf("'%s': expected shape %s, got %s\n", name.c_str(),
                  shapeText(tensor.shape).c_str(),
                  shapeText(found->second.shape).c_str());
      isWrong = true;
      continue;
    }
    double error = relativeError(found->second, tensor);
    if (!(error <= tolerance)) {
      std::printf("'%s': relative error %.3g\n", name.c_str(), error);
      isWrong = true;
    }
    if (error > worst) {
      worst = error;
      worstName = name;
    }
  }
  std::printf("%zu tensors, worst relative error %.3g in '%s'\n",
              expected.size(), worst, worstName.c_str());
  return isWrong || expected.empty() ? 1 : 0;
}
