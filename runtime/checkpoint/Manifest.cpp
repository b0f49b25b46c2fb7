// SPDX-License-Identifier: Apache-2.0
//
// The JSON form of a manifest: an object with a line for each of its keys and
// for each tensor. Numbers that are not finite are text: the 16 hexadecimal
// digits of their bits, as hashes are.
#include "runtime/checkpoint/Manifest.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/files/Nesting.h"
#include "runtime/program/JsonText.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

using nlohmann::json;
using nlohmann::ordered_json;

namespace rota {

static constexpr const char *kFormat = "rota checkpoint";
static constexpr int64_t kVersion = 2;
/// Dimensions of a tensor at most. The check of pieces recurses once for each.
static constexpr size_t kMostDimensions = 64;

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static ordered_json toJson(double value) {
  if (std::isfinite(value))
    return value; // written with as many digits as its bits need
  return hexadecimal(std::bit_cast<uint64_t>(value));
}

static ordered_json toJson(const RunState &run) {
  ordered_json values = ordered_json::object();
  for (const auto &[name, numbers] : run.values) {
    ordered_json &list = values[name] = ordered_json::array();
    for (double number : numbers)
      list.push_back(toJson(number));
  }
  return {{"step", run.step}, {"sequences", run.sequences}, {"values", values}};
}

static ordered_json toJson(const SavedTensor &tensor) {
  ordered_json pieces = ordered_json::array();
  for (const SavedPiece &piece : tensor.pieces)
    pieces.push_back({{"file", piece.file},
                      {"offset", piece.offset},
                      {"begin", piece.begin},
                      {"size", piece.size},
                      {"hash", hexadecimal(piece.hash)}});
  return {{"name", tensor.name},
          {"type", tensor.type},
          {"shape", tensor.shape},
          {"pieces", pieces}};
}

std::string toJson(const Manifest &manifest) {
  ordered_json files = ordered_json::array();
  for (const Manifest::File &file : manifest.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  std::string text = fmt::format(
      "{{\n\"format\": {},\n\"version\": {},\n\"run\": {},\n\"identity\": {},\n"
      "\"config\": {},\n\"files\": {},\n\"tensors\": [",
      jsonText(json(kFormat)), kVersion, jsonText(toJson(manifest.run)),
      jsonText(json(manifest.identity)), jsonText(json(manifest.config)),
      jsonText(files));
  const char *separator = "\n";
  for (const SavedTensor &tensor : manifest.tensors) {
    text += separator + jsonText(toJson(tensor));
    separator = ",\n";
  }
  return withHash(text + "\n]\n}\n");
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// For messages: lists may be of any length and depth.
std::string shortText(const json &value) {
  if (value.is_structured())
    return value.is_array() ? "a list" : "an object";
  constexpr size_t kMost = 60;
  std::string text = jsonText(value);
  return text.size() <= kMost ? text : "a long text";
}

/// Reads keys of objects. `place` is the path of the object in the JSON:
/// "tensors[3].pieces[0]".
class ManifestReader {
public:
  explicit ManifestReader(const std::string &path) : path(path) {}

  [[noreturn]] void fail(const std::string &place,
                         const std::string &message) const {
    throw InputError(fmt::format("'{}': {}: {}", path, place, message));
  }

  const json &key(const json &object, const std::string &place,
                  const char *name) const {
    if (!object.is_object())
      fail(place, "expected an object");
    auto found = object.find(name);
    if (found == object.end())
      fail(inside(place, name), "the key is missing");
    return *found;
  }

  int64_t number(const json &value, const std::string &place, int64_t least,
                 int64_t most) const {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() &&
         value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)))
      fail(place, fmt::format("expected an integer, got {}", shortText(value)));
    auto got = value.get<int64_t>();
    if (got < least || got > most)
      fail(place,
           fmt::format("expected {}, got {}",
                       least == most ? std::to_string(least)
                                     : fmt::format("{} to {}", least, most),
                       got));
    return got;
  }
  int64_t number(const json &object, const std::string &place, const char *name,
                 int64_t least, int64_t most) const {
    return number(key(object, place, name), inside(place, name), least, most);
  }

  std::string text(const json &value, const std::string &place) const {
    if (!value.is_string())
      fail(place, fmt::format("expected a text, got {}", shortText(value)));
    return value.get<std::string>();
  }
  std::string text(const json &object, const std::string &place,
                   const char *name) const {
    return text(key(object, place, name), inside(place, name));
  }

  const json &object(const json &parent, const std::string &place,
                     const char *name) const {
    const json &value = key(parent, place, name);
    if (!value.is_object())
      fail(inside(place, name), "expected an object");
    return value;
  }

  const json &list(const json &value, const std::string &place) const {
    if (!value.is_array())
      fail(place, "expected a list");
    return value;
  }
  const json &list(const json &parent, const std::string &place,
                   const char *name) const {
    return list(key(parent, place, name), inside(place, name));
  }

  std::vector<int64_t> numbers(const json &parent, const std::string &place,
                               const char *name, int64_t least) const {
    std::vector<int64_t> all;
    for (const json &value : list(parent, place, name))
      all.push_back(number(value, inside(place, name), least, INT64_MAX));
    return all;
  }

  static std::string inside(const std::string &place, const std::string &name) {
    return place.empty() ? name : place + "." + name;
  }
  static std::string element(const std::string &place, size_t i) {
    return fmt::format("{}[{}]", place, i);
  }

private:
  const std::string &path;
};

std::optional<uint64_t> fromHexadecimal(const std::string &text) {
  uint64_t bits = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, bits, 16);
  if (text.size() != 16 || error != std::errc() || stop != end)
    return std::nullopt;
  return bits;
}

double readDouble(const ManifestReader &reader, const json &value,
                  const std::string &place) {
  if (value.is_number())
    return value.get<double>();
  std::optional<uint64_t> bits;
  if (value.is_string())
    bits = fromHexadecimal(value.get<std::string>());
  if (!bits)
    reader.fail(place, fmt::format("expected a number, or the 16 hexadecimal "
                                   "digits of one that is not finite, got {}",
                                   shortText(value)));
  return std::bit_cast<double>(*bits);
}

RunState readRun(const ManifestReader &reader, const json &all) {
  const json &object = reader.object(all, "", "run");
  RunState run;
  run.step = reader.number(object, "run", "step", 0, kMostSteps);
  run.sequences = reader.number(object, "run", "sequences", 0, kMostSteps);
  for (const auto &[name, list] :
       reader.object(object, "run", "values").items()) {
    std::string place = ManifestReader::inside("run.values", name);
    std::vector<double> &numbers = run.values[name];
    for (const json &value : reader.list(list, place))
      numbers.push_back(readDouble(
          reader, value, ManifestReader::element(place, numbers.size())));
  }
  return run;
}

std::vector<Manifest::File> readFiles(const ManifestReader &reader,
                                      const json &all) {
  std::vector<Manifest::File> files;
  std::set<std::string> names;
  for (const json &object : reader.list(all, "", "files")) {
    std::string place = ManifestReader::element("files", files.size());
    Manifest::File file;
    file.name = reader.text(object, place, "name");
    file.bytes = reader.number(object, place, "bytes", 0, INT64_MAX);
    // A path could name a file outside of the folder.
    if (file.name.empty() || file.name.starts_with('.') ||
        file.name.find_first_of(std::string("/\0", 2)) != std::string::npos)
      reader.fail(ManifestReader::inside(place, "name"),
                  fmt::format("expected the name of a file beside the "
                              "manifest, got '{}'",
                              file.name));
    if (!names.insert(file.name).second)
      reader.fail(ManifestReader::inside(place, "name"),
                  fmt::format("file '{}' is there twice", file.name));
    files.push_back(std::move(file));
  }
  return files;
}

/// Bytes of a box; none when they do not fit in 63 bits.
std::optional<int64_t> boxBytes(const std::vector<int64_t> &size,
                                int64_t elementBytes) {
  int64_t bytes = elementBytes;
  for (int64_t extent : size)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return std::nullopt;
  return bytes;
}

SavedPiece readPiece(const ManifestReader &reader, const json &object,
                     const std::string &place, const SavedTensor &tensor,
                     const std::vector<Manifest::File> &files) {
  SavedPiece piece;
  piece.file = static_cast<int>(reader.number(
      object, place, "file", 0, static_cast<int64_t>(files.size()) - 1));
  piece.offset = reader.number(object, place, "offset", 0, INT64_MAX);
  piece.begin = reader.numbers(object, place, "begin", 0);
  piece.size = reader.numbers(object, place, "size", 1);
  size_t rank = tensor.shape.size();
  if (piece.begin.size() != rank || piece.size.size() != rank)
    reader.fail(place,
                fmt::format("expected 'begin' and 'size' of {} numbers, "
                            "got {} and {}",
                            rank, piece.begin.size(), piece.size.size()));
  for (size_t d = 0; d < rank; ++d)
    if (piece.begin[d] > tensor.shape[d] - piece.size[d])
      reader.fail(place,
                  fmt::format("begin {} and size {} leave the tensor's shape "
                              "{}",
                              shapeText(piece.begin), shapeText(piece.size),
                              shapeText(tensor.shape)));
  const Manifest::File &file = files[static_cast<size_t>(piece.file)];
  // A piece is not larger than its tensor, whose bytes are known to fit.
  int64_t bytes = *boxBytes(piece.size, typeBytes(tensor.type));
  if (bytes > file.bytes || piece.offset > file.bytes - bytes)
    reader.fail(place, fmt::format("{} bytes at offset {} leave the {} bytes "
                                   "of file '{}'",
                                   bytes, piece.offset, file.bytes, file.name));
  std::string hash = reader.text(object, place, "hash");
  std::optional<uint64_t> bits = fromHexadecimal(hash);
  if (!bits)
    reader.fail(ManifestReader::inside(place, "hash"),
                fmt::format("expected 16 hexadecimal digits, got '{}'", hash));
  piece.hash = *bits;
  return piece;
}

/// An element of a tensor that no piece has, or more than one.
struct CoverMistake {
  std::vector<int64_t> element;
  bool isTwice = false;
};
using Boxes = std::vector<const SavedPiece *>;

/// The first mistake among the elements whose first indices are `element`;
/// `boxes`: the pieces that hold one of them.
std::optional<CoverMistake> findCoverMistake(const SavedTensor &tensor,
                                             const Boxes &boxes,
                                             std::vector<int64_t> &element) {
  size_t d = element.size();
  if (boxes.empty() || d == tensor.shape.size()) {
    if (boxes.size() == 1)
      return std::nullopt;
    CoverMistake mistake{element, !boxes.empty()};
    mistake.element.resize(tensor.shape.size());
    return mistake;
  }
  // Between two neighbouring cuts the same boxes go on.
  std::set<int64_t> cuts = {0};
  for (const SavedPiece *box : boxes)
    cuts.insert({box->begin[d], box->begin[d] + box->size[d]});
  for (int64_t at : cuts) {
    if (at == tensor.shape[d])
      break;
    Boxes here;
    for (const SavedPiece *box : boxes)
      if (box->begin[d] <= at && at < box->begin[d] + box->size[d])
        here.push_back(box);
    element.push_back(at);
    if (auto mistake = findCoverMistake(tensor, here, element))
      return mistake;
    element.pop_back();
  }
  return std::nullopt;
}

SavedTensor readTensor(const ManifestReader &reader, const json &object,
                       const std::string &place,
                       const std::vector<Manifest::File> &files) {
  SavedTensor tensor;
  tensor.name = reader.text(object, place, "name");
  tensor.type = reader.text(object, place, "type");
  if (typeBytes(tensor.type) == 0)
    reader.fail(ManifestReader::inside(place, "type"),
                fmt::format("unknown type '{}'", tensor.type));
  tensor.shape = reader.numbers(object, place, "shape", 1);
  if (tensor.shape.size() > kMostDimensions)
    reader.fail(ManifestReader::inside(place, "shape"),
                fmt::format("expected at most {} dimensions, got {}",
                            kMostDimensions, tensor.shape.size()));
  if (!boxBytes(tensor.shape, typeBytes(tensor.type)))
    reader.fail(ManifestReader::inside(place, "shape"),
                fmt::format("expected at most {} bytes, got shape {}",
                            INT64_MAX, shapeText(tensor.shape)));
  std::string pieces = ManifestReader::inside(place, "pieces");
  for (const json &piece : reader.list(object, place, "pieces"))
    tensor.pieces.push_back(readPiece(
        reader, piece, ManifestReader::element(pieces, tensor.pieces.size()),
        tensor, files));
  Boxes boxes;
  for (const SavedPiece &piece : tensor.pieces)
    boxes.push_back(&piece);
  std::vector<int64_t> element;
  if (auto mistake = findCoverMistake(tensor, boxes, element))
    reader.fail(pieces, fmt::format("element {} of tensor '{}' is in {} piece",
                                    shapeText(mistake->element), tensor.name,
                                    mistake->isTwice ? "more than one" : "no"));
  return tensor;
}

/// `all`: what the text says.
void checkHash(const ManifestReader &reader, const json &all,
               std::string_view text) {
  std::string given = reader.text(all, "", "hash");
  static const size_t added = withHash("{").size() - 1;
  std::string object(text);
  object.erase(1, added);
  if (withHash(object) != text)
    reader.fail("hash", fmt::format("expected {}, got {}: the manifest is not "
                                    "as it was written",
                                    hexadecimal(hashOf(object)), given));
}

} // namespace

Manifest manifestFromJson(std::string_view text, const std::string &path) {
  ManifestReader reader(path);
  if (std::string mistake = nestingMistake(text); !mistake.empty())
    throw InputError(fmt::format("'{}': {}", path, mistake));
  json all = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (all.is_discarded() || !all.is_object())
    throw InputError(fmt::format(
        "'{}': expected a JSON object; {} bytes are none", path, text.size()));
  if (std::string format = reader.text(all, "", "format"); format != kFormat)
    reader.fail("format",
                fmt::format("expected '{}', got '{}'", kFormat, format));
  reader.number(all, "", "version", kVersion, kVersion);
  checkHash(reader, all, text);
  Manifest manifest;
  manifest.run = readRun(reader, all);
  for (const auto &[name, value] : reader.object(all, "", "identity").items())
    manifest.identity[name] =
        reader.text(value, ManifestReader::inside("identity", name));
  manifest.config = reader.text(all, "", "config");
  manifest.files = readFiles(reader, all);
  for (const json &object : reader.list(all, "", "tensors")) {
    std::string place =
        ManifestReader::element("tensors", manifest.tensors.size());
    SavedTensor tensor = readTensor(reader, object, place, manifest.files);
    if (!manifest.tensors.empty() &&
        manifest.tensors.back().name >= tensor.name)
      reader.fail(ManifestReader::inside(place, "name"),
                  fmt::format("expected ascending names, got '{}' after '{}'",
                              tensor.name, manifest.tensors.back().name));
    manifest.tensors.push_back(std::move(tensor));
  }
  return manifest;
}

} // namespace rota
