// SPDX-License-Identifier: Apache-2.0
//
// Reading: the header is not trusted, so each number is checked against the
// file before any tensor can be reached.
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/Error.h"
#include "runtime/files/Nesting.h"
#include "runtime/program/Convert.h"
#include "runtime/program/JsonText.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using nlohmann::json;

namespace rota {

static_assert(std::endian::native == std::endian::little);

/// The limit of the format on its header: a wrong length must not make the
/// parser read gigabytes.
static constexpr int64_t kMaxHeaderBytes = 100'000'000;

static const std::map<std::string, int64_t> kTypeBytes = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
    {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8}};

int64_t typeBytes(const std::string &type) {
  auto found = kTypeBytes.find(type);
  return found == kTypeBytes.end() ? 0 : found->second;
}

int64_t TensorView::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

bool isFloat(const TensorView &tensor) {
  return tensor.type == "F32" || tensor.type == "F64" || tensor.type == "F16" ||
         tensor.type == "BF16";
}

/// Loads elements [begin, end) of a T array at any alignment.
template <typename T, typename F>
static void load(const char *data, int64_t begin, int64_t end, float *out,
                 F convert) {
  for (int64_t i = begin; i < end; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof value);
    out[i - begin] = convert(value);
  }
}

void readFloats(const TensorView &t, int64_t begin, int64_t end, float *out) {
  if (t.type == "F32")
    std::memcpy(out, t.data + begin * 4, static_cast<size_t>(end - begin) * 4);
  else if (t.type == "F64")
    load<double>(t.data, begin, end, out,
                 [](double v) { return static_cast<float>(v); });
  else if (t.type == "BF16")
    load<uint16_t>(t.data, begin, end, out, fromBf16);
  else
    load<uint16_t>(t.data, begin, end, out, fromF16);
}

SafetensorsFile::SafetensorsFile(const std::string &path) : filePath(path) {
  map();
  try {
    readHeader();
  } catch (...) {
    munmap(base, static_cast<size_t>(fileBytes));
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() {
  munmap(base, static_cast<size_t>(fileBytes));
}

void SafetensorsFile::fail(const std::string &message) const {
  throw InputError(fmt::format("'{}': {}", filePath, message));
}

void SafetensorsFile::map() {
  int file = open(filePath.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    fail(fmt::format("cannot open: {}", std::strerror(errno)));
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    fail("expected a regular file");
  }
  fileBytes = status.st_size;
  if (fileBytes < 8) {
    close(file);
    fail(fmt::format("expected at least 8 bytes of a safetensors file, got {}",
                     fileBytes));
  }
  void *mapped = mmap(nullptr, static_cast<size_t>(fileBytes), PROT_READ,
                      MAP_PRIVATE, file, 0);
  int why = errno;
  close(file);
  if (mapped == MAP_FAILED)
    fail(fmt::format("cannot map: {}", std::strerror(why)));
  base = static_cast<char *>(mapped);
}

/// A list of non-negative integers, or nothing.
static bool readSizes(const json &entry, const char *key,
                      std::vector<int64_t> &out) {
  auto found = entry.find(key);
  if (found == entry.end() || !found->is_array())
    return false;
  for (const json &value : *found) {
    if (!value.is_number_unsigned() ||
        value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      return false;
    out.push_back(value.get<int64_t>());
  }
  return true;
}

/// Bytes of a tensor, or -1 when they do not fit in 63 bits.
static int64_t checkedBytes(const std::vector<int64_t> &shape,
                            int64_t elementBytes) {
  int64_t bytes = elementBytes;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return -1;
  return bytes;
}

void SafetensorsFile::readHeader() {
  uint64_t length;
  std::memcpy(&length, base, 8);
  if (length > static_cast<uint64_t>(kMaxHeaderBytes))
    fail(fmt::format("expected a header of at most {} bytes, got {}",
                     kMaxHeaderBytes, length));
  if (static_cast<int64_t>(length) > fileBytes - 8)
    fail(fmt::format("truncated: the header says {} bytes, {} follow", length,
                     fileBytes - 8));
  std::string_view text(base + 8, length);
  if (std::string mistake = nestingMistake(text); !mistake.empty())
    fail("the header: " + mistake);
  json header = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object())
    fail(fmt::format("the header of {} bytes is not a JSON object", length));
  dataStart = base + 8 + length;
  int64_t dataBytes = fileBytes - 8 - static_cast<int64_t>(length);
  for (const auto &[name, entry] : header.items()) {
    if (name == "__metadata__")
      continue;
    TensorView view;
    std::vector<int64_t> offsets;
    if (!entry.is_object() || !entry.contains("dtype") ||
        !entry["dtype"].is_string() || !readSizes(entry, "shape", view.shape) ||
        !readSizes(entry, "data_offsets", offsets) || offsets.size() != 2)
      fail(fmt::format("tensor '{}': expected dtype, shape and data_offsets",
                       name));
    view.type = entry["dtype"].get<std::string>();
    auto type = kTypeBytes.find(view.type);
    if (type == kTypeBytes.end())
      fail(fmt::format("tensor '{}': unknown dtype '{}'", name, view.type));
    if (offsets[0] > offsets[1] || offsets[1] > dataBytes)
      fail(fmt::format("tensor '{}': expected offsets within {} bytes of data, "
                       "got [{}, {}]; the file may be truncated",
                       name, dataBytes, offsets[0], offsets[1]));
    view.bytes = offsets[1] - offsets[0];
    int64_t bytes = checkedBytes(view.shape, type->second);
    if (bytes != view.bytes)
      fail(
          fmt::format("tensor '{}': {} of shape {} takes {} bytes, its offsets "
                      "[{}, {}] hold {}",
                      name, view.type, shapeText(view.shape),
                      bytes < 0 ? "too many" : std::to_string(bytes),
                      offsets[0], offsets[1], view.bytes));
    view.data = dataStart + offsets[0];
    views.emplace(name, std::move(view));
  }
  checkCover(dataBytes);
}

/// The tensors must cover the data exactly once.
void SafetensorsFile::checkCover(int64_t dataBytes) const {
  std::vector<std::pair<const TensorView *, const std::string *>> order;
  for (const auto &[name, view] : views)
    order.emplace_back(&view, &name);
  std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) {
    return std::make_pair(a.first->data, a.first->bytes) <
           std::make_pair(b.first->data, b.first->bytes);
  });
  int64_t end = 0;
  const std::string *previous = nullptr;
  for (const auto &[view, name] : order) {
    int64_t begin = view->data - dataStart;
    if (begin < end)
      fail(fmt::format("tensors '{}' and '{}' overlap: the first ends at byte "
                       "{}, the second begins at {}",
                       *previous, *name, end, begin));
    if (begin > end)
      fail(fmt::format("bytes {} to {} belong to no tensor", end, begin));
    end = begin + view->bytes;
    previous = name;
  }
  if (end != dataBytes)
    fail(fmt::format("expected {} bytes of data, got {}", end, dataBytes));
}

SafetensorsWriter::SafetensorsWriter(
    const std::string &path, const std::map<std::string, TensorForm> &tensors)
    : file(path) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  int64_t offset = 0;
  for (const auto &[name, form] : tensors) {
    const auto &[type, shape] = form;
    int64_t bytes = checkedBytes(shape, kTypeBytes.at(type));
    header[name] = {{"dtype", type},
                    {"shape", shape},
                    {"data_offsets", {offset, offset + bytes}}};
    places[name] = {offset, bytes};
    offset += bytes;
  }
  std::string text = jsonText(header);
  text.append((8 - text.size() % 8) % 8, ' '); // the data starts aligned
  uint64_t length = text.size();
  file.write(0, {reinterpret_cast<const char *>(&length), 8});
  file.write(8, text);
  for (auto &[name, place] : places)
    place.begin += static_cast<int64_t>(8 + length);
  fileBytes = static_cast<int64_t>(8 + length) + offset;
}

void SafetensorsWriter::write(const std::string &name, const void *data) {
  Place place = places.at(name);
  file.write(place.begin, {static_cast<const char *>(data),
                           static_cast<size_t>(place.bytes)});
}

void SafetensorsWriter::commit() { file.commit(); }

void writeSafetensors(const std::string &path,
                      const std::map<std::string, TensorView> &tensors) {
  std::map<std::string, TensorForm> forms;
  for (const auto &[name, view] : tensors)
    forms[name] = {view.type, view.shape};
  SafetensorsWriter writer(path, forms);
  for (const auto &[name, view] : tensors)
    writer.write(name, view.data);
  writer.commit();
}

} // namespace rota
