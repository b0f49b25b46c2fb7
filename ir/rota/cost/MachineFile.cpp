// SPDX-License-Identifier: Apache-2.0
//
// The JSON file of a machine. One list of keys (visitMachine) reads a file,
// writes one and lists its numbers.
#include "ir/rota/cost/Machine.h"
#include "runtime/text/Nearest.h"
#include "runtime/text/Text.h"

#include "llvm/Support/JSON.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;
using ::rota::numberText;
namespace json = llvm::json;

namespace {

/// The unit of a number and the range in which a machine's number lies, so that
/// one in another unit is found.
struct NumberRule {
  const char *unit;
  double least, most;
  bool isWhole = false;
};

constexpr NumberRule flopsRule{"FLOP/s", 1e9, 1e20};
/// A product may take little longer than its call, which others slow down.
constexpr NumberRule productRule{"FLOP/s", 1e6, 1e20};
constexpr NumberRule elementsRule{"elements a second", 1e6, 1e18};
constexpr NumberRule functionsRule{"functions a second", 1e6, 1e18};
constexpr NumberRule bandwidthRule{"bytes a second", 1e6, 1e17};
constexpr NumberRule memoryRule{"bytes", 1e8, 1e16};
constexpr NumberRule cacheRule{"bytes", 1e4, 1e13};
constexpr NumberRule latencyRule{"seconds", 0, 0.999};
constexpr NumberRule launchRule{"seconds", 0, 0.01};
constexpr NumberRule efficiencyRule{"a share", 0.001, 1};
constexpr NumberRule slowsRule{"a share", 0, 1};
constexpr NumberRule unitsRule{"a number of units", 1, 1e6};
constexpr NumberRule coresRule{"a whole number of cores", 0, 1e6, true};
constexpr NumberRule devicesRule{"a whole number of devices", 0, 1e9, true};
constexpr NumberRule tileRule{"a whole number of elements", 1, 1e6, true};
constexpr NumberRule sizeRule{"a whole number of elements", 1, 1e12, true};
constexpr NumberRule keysRule{"a number of keys", 0, 1e6};
constexpr NumberRule slowestRule{"a ratio of times", 1, 100};
constexpr NumberRule groupedRule{"a ratio of times", 0.01, 100};
constexpr NumberRule depthRule{"a number of elements", 0, 1e6};

constexpr StringRef elementTypes[] = {"bf16", "f16", "f32", "f64"};
constexpr StringRef anyDevice = "any"; // may have any memory
constexpr StringRef deviceNames[] = {anyDevice, "cpu", "cuda", "hip", "tpu"};
constexpr size_t mostFitted = 3;

/// Visits the keys of a type's rates.
template <typename Visitor>
void visitRates(Visitor &visitor, TypeRates &rates) {
  visitor.number("flops_per_second", rates.flopsPerSecond, flopsRule);
  if (visitor.isGiven("attention", rates.attentionForward > 0))
    visitor.object("attention", [&] {
      visitor.number("forward_flops_per_second", rates.attentionForward,
                     flopsRule);
      visitor.number("backward_flops_per_second", rates.attentionBackward,
                     flopsRule);
      if (visitor.isGiven("forward_keys", rates.attentionForwardKeys > 0))
        visitor.number("forward_keys", rates.attentionForwardKeys, keysRule);
      if (visitor.isGiven("backward_keys", rates.attentionBackwardKeys > 0))
        visitor.number("backward_keys", rates.attentionBackwardKeys, keysRule);
    });
  if (visitor.isGiven("row_flops_per_second", rates.rowFlopsPerSecond > 0))
    visitor.number("row_flops_per_second", rates.rowFlopsPerSecond, flopsRule);
  if (visitor.isGiven("rows", rates.elementsPerSecond > 0))
    visitor.object("rows", [&] {
      visitor.number("elements_per_second", rates.elementsPerSecond,
                     elementsRule);
      visitor.number("special_functions_per_second",
                     rates.specialFunctionsPerSecond, functionsRule);
    });
  if (visitor.isGiven("grouped_slower", rates.groupedSlower != 1))
    visitor.number("grouped_slower", rates.groupedSlower, groupedRule);
  for (auto [key, products] :
       {std::pair("products", &rates.products),
        std::pair("weight_gradients", &rates.weightGradients),
        std::pair("shared_products", &rates.sharedProducts)})
    if (visitor.isGiven(key, !products->empty()))
      visitor.list(key, *products, [&](MeasuredProduct &product) {
        visitor.number("batch", product.size.batch, sizeRule);
        visitor.number("m", product.size.m, sizeRule);
        visitor.number("n", product.size.n, sizeRule);
        visitor.number("k", product.size.k, sizeRule);
        visitor.number("flops_per_second", product.flopsPerSecond, productRule);
      });
}

/// Visits the keys of a file in their order, each with its variable.
template <typename Visitor>
void visitMachine(Visitor &visitor, Machine &machine) {
  visitor.text("name", machine.name);
  if (visitor.isGiven("description", !machine.description.empty()))
    visitor.text("description", machine.description);
  visitor.choice("device", machine.device, deviceNames);
  if (visitor.isGiven("cores", machine.cores != 0))
    visitor.number("cores", machine.cores, coresRule);
  visitor.number("units", machine.units, unitsRule);
  visitor.map("types", machine.types, elementTypes,
              [&](TypeRates &rates) { visitRates(visitor, rates); });
  visitor.list("tiles", machine.tiles, [&](ProductTile &tile) {
    visitor.number("m", tile.m, tileRule);
    visitor.number("n", tile.n, tileRule);
    visitor.number("efficiency", tile.efficiency, efficiencyRule);
  });
  visitor.number("product_efficiency", machine.productEfficiency,
                 efficiencyRule);
  visitor.number("depth", machine.depth, depthRule);
  visitor.object("attention", [&] {
    visitor.number("forward", machine.attentionForward, efficiencyRule);
    visitor.number("backward", machine.attentionBackward, efficiencyRule);
  });
  visitor.number("row_flops_per_second", machine.rowFlopsPerSecond, flopsRule);
  visitor.number("launch_seconds", machine.launch, launchRule);
  if (visitor.isGiven("shared_launch_seconds", machine.sharedLaunch > 0))
    visitor.number("shared_launch_seconds", machine.sharedLaunch, launchRule);
  if (visitor.isGiven("slowest_core", machine.slowestCore > 1))
    visitor.number("slowest_core", machine.slowestCore, slowestRule);
  visitor.object("memory", [&] {
    if (machine.device != anyDevice ||
        visitor.isGiven("bytes", machine.memoryBytes > 0))
      visitor.number("bytes", machine.memoryBytes, memoryRule);
    visitor.number("bytes_per_second", machine.memoryBytesPerSecond,
                   bandwidthRule);
    visitor.number("efficiency", machine.memoryEfficiency, efficiencyRule);
    visitor.number("copied_bytes_per_second", machine.copiedPerSecond,
                   bandwidthRule);
    if (visitor.isGiven("updated_bytes_per_second",
                        machine.updatedPerSecond > 0))
      visitor.number("updated_bytes_per_second", machine.updatedPerSecond,
                     bandwidthRule);
    if (visitor.isGiven("cache", machine.cacheBytes > 0))
      visitor.object("cache", [&] {
        visitor.number("bytes", machine.cacheBytes, cacheRule);
        visitor.number("bytes_per_second", machine.cacheBytesPerSecond,
                       bandwidthRule);
      });
  });
  visitor.object("host", [&] {
    visitor.number("bytes_per_second", machine.hostBytesPerSecond,
                   bandwidthRule);
    visitor.number("latency_seconds", machine.hostLatency, latencyRule);
  });
  visitor.list("network", machine.network, [&](NetworkLevel &level) {
    visitor.text("name", level.name);
    visitor.number("devices", level.devices, devicesRule);
    visitor.number("bytes_per_second", level.bytesPerSecond, bandwidthRule);
    visitor.number("latency_seconds", level.latency, latencyRule);
    visitor.number("efficiency", level.efficiency, efficiencyRule);
    visitor.number("slows_work", level.slowsWork, slowsRule);
  });
  if (visitor.isGiven("fitted", !machine.fitted.empty()))
    visitor.texts("fitted", machine.fitted);
  if (visitor.isGiven("sources", !machine.sources.empty()))
    visitor.textMap("sources", machine.sources);
}

/// "a.b"
std::string memberOf(StringRef path, StringRef key) {
  return path.empty() ? key.str() : (path + "." + key).str();
}
/// "a[2]"
std::string elementOf(StringRef path, size_t index) {
  return (path + "[" + Twine(index) + "]").str();
}

/// "; did you mean 'X'?" for the name that is spelled most like `name`.
std::string suggestion(StringRef name, ArrayRef<std::string> names) {
  return ::rota::didYouMean(::rota::nearestName(name, names));
}

std::string shortText(const json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text.size() > 48 ? text.substr(0, 48) + "..." : text;
}

/// Reads a file. The first mistake is kept; what follows it is not read.
class MachineReader {
public:
  explicit MachineReader(const json::Value &root) { enter("", &root); }

  std::string error; // empty: no mistake

  bool isGiven(StringRef key, bool) { return current().object->get(key); }

  void text(StringRef key, std::string &variable) {
    const json::Value *value = find(key);
    if (!value)
      return;
    if (auto text = value->getAsString())
      variable = text->str();
    else
      expect(key, "a text", *value);
  }

  void choice(StringRef key, std::string &variable, ArrayRef<StringRef> names) {
    text(key, variable);
    if (error.empty() && !llvm::is_contained(names, variable))
      fail(key, "expected one of " + llvm::join(names, ", ") + ", got '" +
                    variable + "'");
  }

  template <typename Number>
  void number(StringRef key, Number &variable, const NumberRule &rule) {
    const json::Value *value = find(key);
    if (!value)
      return;
    auto number = value->getAsNumber();
    if (!number)
      return expect(key, rule.unit, *value);
    if (!std::isfinite(*number))
      return fail(key, "expected " + std::string(rule.unit) +
                           ", got a number that is not finite");
    bool isSmall = *number < rule.least;
    if (isSmall || *number > rule.most)
      return fail(key, "expected " + std::string(rule.unit) +
                           (isSmall ? ", at least " + numberText(rule.least)
                                    : ", at most " + numberText(rule.most)) +
                           ", got " + numberText(*number));
    if (rule.isWhole && std::trunc(*number) != *number)
      return expect(key, rule.unit, *value);
    variable = Number(*number);
  }

  template <typename Visit> void object(StringRef key, Visit &&visit) {
    if (const json::Value *value = find(key))
      inside(memberOf(current().path, key), *value, visit);
  }

  template <typename Element, typename Visit>
  void list(StringRef key, std::vector<Element> &elements, Visit &&visit) {
    const json::Array *array = findArray(key);
    if (!array)
      return;
    if (array->empty())
      return fail(key, "expected at least one element");
    elements.assign(array->size(), {});
    std::string path = memberOf(current().path, key);
    for (size_t index = 0; index < array->size(); ++index)
      inside(elementOf(path, index), (*array)[index],
             [&] { visit(elements[index]); });
  }

  template <typename Element, typename Visit>
  void map(StringRef key, std::map<std::string, Element> &elements,
           ArrayRef<StringRef> names, Visit &&visit) {
    object(key, [&] {
      for (StringRef name : names)
        if (isGiven(name, true))
          object(name, [&] { visit(elements[name.str()]); });
        else
          current().known.push_back(name.str());
      if (error.empty() && elements.empty())
        error = "'" + current().path + "': expected one of " +
                llvm::join(names, ", ");
    });
  }

  void texts(StringRef key, std::vector<std::string> &variable) {
    const json::Array *array = findArray(key);
    if (!array)
      return;
    for (const json::Value &value : *array) {
      auto text = value.getAsString();
      if (!text)
        return expect(key, "a list of texts", value);
      variable.push_back(text->str());
    }
  }

  void textMap(StringRef key, std::map<std::string, std::string> &variable) {
    object(key, [&] {
      for (const auto &[name, value] : *current().object) {
        auto text = value.getAsString();
        if (!text || text->trim().empty())
          return expect(name, "a text", value);
        variable[name.str()] = text->str();
        current().known.push_back(name.str());
      }
    });
  }

  /// Reports a key that no variable has.
  void leave() {
    for (const auto &[name, value] : *current().object)
      if (error.empty() && !llvm::is_contained(current().known, name.str()))
        fail(name, "unknown key" + suggestion(name, current().known));
    open.pop_back();
  }

private:
  struct Level {
    std::string path;
    const json::Object *object = nullptr;
    std::vector<std::string> known; // keys that were asked for
  };
  Level &current() { return open.back(); }

  void fail(StringRef key, const std::string &message) {
    if (error.empty())
      error = "'" + memberOf(current().path, key) + "': " + message;
  }
  void expect(StringRef key, StringRef rule, const json::Value &value) {
    fail(key, ("expected " + rule + ", got " + shortText(value)).str());
  }

  /// The value of a key that must be there; null after a mistake.
  const json::Value *find(StringRef key) {
    if (!error.empty())
      return nullptr;
    current().known.push_back(key.str());
    const json::Value *value = current().object->get(key);
    if (!value) {
      std::vector<std::string> names;
      for (const auto &[name, other] : *current().object)
        names.push_back(name.str());
      fail(key, "is missing" + suggestion(key, names));
    }
    return value;
  }
  const json::Array *findArray(StringRef key) {
    const json::Value *value = find(key);
    const json::Array *array = value ? value->getAsArray() : nullptr;
    if (value && !array)
      expect(key, "a list", *value);
    return array;
  }

  bool enter(const std::string &path, const json::Value *value) {
    const json::Object *object = value->getAsObject();
    if (object)
      open.push_back({path, object, {}});
    else
      error = (path.empty() ? "" : "'" + path + "': ") +
              "expected an object, got " + shortText(*value);
    return object;
  }
  template <typename Visit>
  void inside(const std::string &path, const json::Value &value,
              Visit &&visit) {
    if (!error.empty())
      return;
    if (!enter(path, &value))
      return;
    visit();
    leave();
  }

  std::vector<Level> open;
};

/// Writes a file, its keys in their order.
class MachineWriter {
public:
  explicit MachineWriter(json::OStream &stream) : stream(stream) {}

  bool isGiven(StringRef, bool isSet) { return isSet; }
  void text(StringRef key, const std::string &text) {
    stream.attribute(key, text);
  }
  void choice(StringRef key, const std::string &text, ArrayRef<StringRef>) {
    stream.attribute(key, text);
  }
  template <typename Number>
  void number(StringRef key, Number number, const NumberRule &) {
    // The shortest text that reads back to the same number.
    stream.attributeBegin(key);
    stream.rawValue(numberText(double(number)));
    stream.attributeEnd();
  }
  template <typename Visit> void object(StringRef key, Visit &&visit) {
    stream.attributeObject(key, visit);
  }
  template <typename Element, typename Visit>
  void list(StringRef key, std::vector<Element> &elements, Visit &&visit) {
    stream.attributeArray(key, [&] {
      for (Element &element : elements)
        stream.object([&] { visit(element); });
    });
  }
  template <typename Element, typename Visit>
  void map(StringRef key, std::map<std::string, Element> &elements,
           ArrayRef<StringRef>, Visit &&visit) {
    stream.attributeObject(key, [&] {
      for (auto &[name, element] : elements)
        stream.attributeObject(name, [&] { visit(element); });
    });
  }
  void texts(StringRef key, const std::vector<std::string> &texts) {
    stream.attribute(key, json::Array(texts));
  }
  void textMap(StringRef key, const std::map<std::string, std::string> &texts) {
    stream.attributeObject(key, [&] {
      for (const auto &[name, text] : texts)
        stream.attribute(name, text);
    });
  }

private:
  json::OStream &stream;
};

/// Lists the numbers of a machine.
class NumberLister {
public:
  std::vector<MachineNumber> numbers;

  bool isGiven(StringRef, bool isSet) { return isSet; }
  void text(StringRef, const std::string &) {}
  void choice(StringRef, const std::string &, ArrayRef<StringRef>) {}
  template <typename Number>
  void number(StringRef key, Number number, const NumberRule &rule) {
    numbers.push_back({memberOf(path, key), double(number), rule.unit});
  }
  template <typename Visit> void object(StringRef key, Visit &&visit) {
    inside(memberOf(path, key), visit);
  }
  template <typename Element, typename Visit>
  void list(StringRef key, std::vector<Element> &elements, Visit &&visit) {
    std::string listed = memberOf(path, key);
    for (auto [index, element] : llvm::enumerate(elements))
      inside(elementOf(listed, index), [&] { visit(element); });
  }
  template <typename Element, typename Visit>
  void map(StringRef key, std::map<std::string, Element> &elements,
           ArrayRef<StringRef>, Visit &&visit) {
    object(key, [&] {
      for (auto &[name, element] : elements)
        object(name, [&] { visit(element); });
    });
  }
  void texts(StringRef, const std::vector<std::string> &) {}
  void textMap(StringRef, const std::map<std::string, std::string> &) {}

private:
  template <typename Visit>
  void inside(const std::string &inner, Visit &&visit) {
    std::string outer = std::exchange(path, inner);
    visit();
    path = outer;
  }

  std::string path;
};

/// Whether `prefix` is `path` or names something that contains it.
bool contains(StringRef prefix, StringRef path) {
  return path.consume_front(prefix) &&
         (path.empty() || path.front() == '.' || path.front() == '[');
}

/// Each level but the last joins whole groups of the level before.
std::string checkNetwork(const Machine &machine) {
  int64_t before = 1;
  for (auto [index, level] : llvm::enumerate(machine.network)) {
    bool isLast = index + 1 == machine.network.size();
    std::string place = "'network[" + std::to_string(index) + "].devices': ";
    if (isLast && level.devices != 0)
      return place + "expected 0, any number, of the last level, got " +
             std::to_string(level.devices);
    if (isLast)
      break;
    if (level.devices <= before || level.devices % before != 0)
      return place + "expected a multiple of " + std::to_string(before) +
             ", and more, got " + std::to_string(level.devices);
    before = level.devices;
  }
  return "";
}

} // namespace

std::optional<Machine> Machine::read(const json::Value &json,
                                     std::string &error) {
  Machine machine;
  machine.types.clear();
  MachineReader reader(json);
  if (reader.error.empty()) {
    visitMachine(reader, machine);
    reader.leave();
  }
  error = reader.error;
  if (error.empty())
    error = checkNetwork(machine);
  return error.empty() ? std::optional(machine) : std::nullopt;
}

std::string Machine::write() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  json::OStream json(stream, /*IndentSize=*/1);
  Machine copy = *this;
  json.object([&] {
    MachineWriter writer(json);
    visitMachine(writer, copy);
  });
  json.flush();
  return text + "\n";
}

std::vector<MachineNumber> Machine::numbers() const {
  NumberLister lister;
  Machine copy = *this;
  visitMachine(lister, copy);
  return lister.numbers;
}

std::string Machine::sourceOf(StringRef path) const {
  std::string found;
  size_t longest = 0;
  for (const auto &[prefix, source] : sources)
    if (contains(prefix, path) && prefix.size() >= longest) {
      longest = prefix.size();
      found = source;
    }
  return found;
}

/// Every number has a source, every source a number.
std::string Machine::checkSources() const {
  std::vector<MachineNumber> all = numbers();
  for (const MachineNumber &number : all)
    if (sourceOf(number.path).empty())
      return "'" + number.path + "': expected its source in 'sources', by '" +
             number.path + "' or what contains it";
  for (const auto &[path, source] : sources)
    if (llvm::none_of(all, [&path = path](const MachineNumber &number) {
          return contains(path, number.path);
        }))
      return "'sources': expected the path of a number, or of what contains "
             "numbers, got '" +
             path + "'";
  if (fitted.size() > mostFitted)
    return "'fitted': expected at most " + std::to_string(mostFitted) +
           " numbers, got " + std::to_string(fitted.size());
  for (const std::string &path : fitted)
    if (llvm::none_of(all, [&](const MachineNumber &number) {
          return number.path == path;
        })) {
      std::vector<std::string> paths;
      for (const MachineNumber &number : all)
        paths.push_back(number.path);
      return "'fitted': expected the path of a number, got '" + path + "'" +
             suggestion(path, paths);
    }
  return "";
}
