// SPDX-License-Identifier: Apache-2.0
//
// Reading of JSON files with places. The file is walked twice: once for the
// places of keys and the first mistake, once for the document.
#include "models/JsonFile.h"
#include "runtime/files/Nesting.h"

#include "llvm/Support/FileSystem.h"

using namespace mlir::rota;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Walks over the text and tells `offset` how far it has come.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  const char *at;
  size_t *offset;

  reference operator*() const { return *at; }
  CountingIterator &operator++() {
    ++at;
    ++*offset;
    return *this;
  }
  bool operator==(const CountingIterator &other) const {
    return at == other.at;
  }
  bool operator!=(const CountingIterator &other) const {
    return at != other.at;
  }
};

/// Collects the offset of every key by its dotted path, and the first mistake.
class KeyCollector : public nlohmann::json_sax<nlohmann::json> {
public:
  KeyCollector(StringRef text, const size_t &offset,
               std::map<std::string, size_t, std::less<>> &keys)
      : text(text), offset(offset), keys(keys) {}

  std::string message; // empty: no mistake
  size_t mistake = 0;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(std::size_t) override {
    prefixes.push_back(last.empty() ? last : last + ".");
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override {
    // Keys of objects in an array have no path of their own.
    prefixes.push_back(last + "[].");
    last += "[]";
    inArray.push_back(true);
    return true;
  }
  bool end_array() override {
    inArray.pop_back();
    return leave();
  }

  bool key(string_t &name) override {
    last = prefixes.back() + name;
    size_t quote = text.rfind('"', offset - 1); // before the closing one
    while (quote != StringRef::npos && quote > 0 && text[quote - 1] == '\\')
      quote = text.rfind('"', quote - 1);
    size_t place = quote == StringRef::npos ? offset : quote;
    if (keys.emplace(last, place).second || !inArray.empty())
      return true;
    message = "key '" + last + "' stands twice in one object";
    mistake = place;
    return false;
  }

  bool parse_error(std::size_t position, const std::string &token,
                   const nlohmann::detail::exception &error) override {
    StringRef what = error.what();
    size_t start = what.find("syntax error");
    message = (start == StringRef::npos ? what : what.substr(start)).str();
    mistake = position > 0 ? position - 1 : 0;
    return false;
  }

private:
  bool leave() {
    last = prefixes.back();
    if (!last.empty())
      last.pop_back();
    prefixes.pop_back();
    return true;
  }

  StringRef text;
  const size_t &offset;
  std::map<std::string, size_t, std::less<>> &keys;
  std::string last;                  // the path of the key being read
  std::vector<std::string> prefixes; // keys of the enclosing objects and arrays
  std::vector<bool> inArray;
};

} // namespace

std::string mlir::rota::toString(const FileLocation &place) {
  if (place.line == 0)
    return place.file;
  return place.file + ":" + std::to_string(place.line) + ":" +
         std::to_string(place.column);
}

std::optional<JsonFile> JsonFile::read(StringRef path, Report report) {
  FileLocation whole{path.str(), 0, 0};
  // A device or a pipe may never end.
  llvm::sys::fs::file_status status;
  if (auto error = llvm::sys::fs::status(path, status)) {
    report(whole, "cannot read the file: " + Twine(error.message()));
    return std::nullopt;
  }
  if (!llvm::sys::fs::is_regular_file(status)) {
    report(whole, "expected a regular file");
    return std::nullopt;
  }
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    report(whole,
           "cannot read the file: " + Twine(buffer.getError().message()));
    return std::nullopt;
  }
  return parse(path, std::move(*buffer), report);
}

std::optional<JsonFile> JsonFile::parse(StringRef name, StringRef text,
                                        Report report) {
  return parse(name, llvm::MemoryBuffer::getMemBufferCopy(text, name), report);
}

std::optional<JsonFile>
JsonFile::parse(StringRef name, std::unique_ptr<llvm::MemoryBuffer> buffer,
                Report report) {
  JsonFile json;
  json.file = name.str();
  json.text = std::move(buffer);
  StringRef text = json.text->getBuffer();
  if (size_t place = ::rota::findTooDeep(text); place != text.npos) {
    report(json.locationAt(place), "expected at most " +
                                       Twine(::rota::kMostNesting) +
                                       " levels of brackets");
    return std::nullopt;
  }
  size_t offset = 0;
  KeyCollector collector(text, offset, json.keys);
  nlohmann::json::sax_parse(CountingIterator{text.begin(), &offset},
                            CountingIterator{text.end(), &offset}, &collector);
  if (!collector.message.empty()) {
    report(json.locationAt(collector.mistake), collector.message);
    return std::nullopt;
  }
  json.document = nlohmann::json::parse(text.begin(), text.end(), nullptr,
                                        /*allow_exceptions=*/false);
  if (!json.document.is_object()) {
    report(json.locationAt(0),
           "expected an object, got " + Twine(kindName(json.document)));
    return std::nullopt;
  }
  return json;
}

FileLocation JsonFile::locationAt(size_t offset) const {
  StringRef before = text->getBuffer().take_front(offset);
  size_t lineStart = before.rfind('\n');
  size_t column = lineStart == StringRef::npos ? before.size()
                                               : before.size() - lineStart - 1;
  return {file, unsigned(before.count('\n') + 1), unsigned(column + 1)};
}

FileLocation JsonFile::locationOf(StringRef key) const {
  auto it = keys.find(key);
  return it == keys.end() ? FileLocation{file, 0, 0} : locationAt(it->second);
}

StringRef mlir::rota::kindName(const nlohmann::json &value) {
  switch (value.type()) {
  case nlohmann::json::value_t::null:
    return "null";
  case nlohmann::json::value_t::boolean:
    return "a boolean";
  case nlohmann::json::value_t::number_integer:
  case nlohmann::json::value_t::number_unsigned:
    return "an integer";
  case nlohmann::json::value_t::number_float:
    return "a real number";
  case nlohmann::json::value_t::string:
    return "a string";
  case nlohmann::json::value_t::array:
    return "an array";
  case nlohmann::json::value_t::object:
    return "an object";
  default:
    return "no value";
  }
}

std::string mlir::rota::shortText(const nlohmann::json &value) {
  constexpr size_t limit = 48;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                nlohmann::json::error_handler_t::replace);
  if (text.size() > limit)
    text = text.substr(0, limit) + "...";
  return text;
}
