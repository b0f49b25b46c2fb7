// SPDX-License-Identifier: Apache-2.0
//
// The program's binary form. Each structure lists its fields once, in a `visit`
// function; a writer, a reader and a hash of the form walk that list.
//
//   form                     8 bytes: formOf() of the code that wrote them
//   checksum                 8 bytes, of all that follows
//   the fields of Program    in the order of their lists
//
// Integers are zigzag-coded in groups of 7 bits, the low ones first; doubles
// have 8 bytes; strings and lists begin with their length.
#include "runtime/program/Program.h"

#include <bit>
#include <cstring>
#include <limits>

namespace rota {
namespace {

constexpr size_t kHeader = 16;

/// The last value of an enumeration.
template <typename Enum> constexpr Enum kLast{};
template <> constexpr auto kLast<ElementType> = ElementType::I32;
template <>
constexpr auto kLast<Initializer::Kind> = Initializer::Kind::Constant;
template <> constexpr auto kLast<Scalar::Kind> = Scalar::Kind::Skip;
template <> constexpr auto kLast<Collective::Kind> = Collective::Kind::Permute;
template <>
constexpr auto kLast<DeviceKind> =
    DeviceKind(std::size(Names<DeviceKind>::list) - 1);
template <> constexpr auto kLast<ActionKind> = ActionKind(kActionKindCount - 1);

/// FNV-1a. `sum`: of the bytes before.
uint64_t checksum(std::string_view bytes, uint64_t sum = 0xcbf29ce484222325) {
  for (char byte : bytes)
    sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return sum;
}

template <typename V> void visit(V &v, Initializer &x) {
  v("kind", x.kind);
  v("mean", x.mean);
  v("scale", x.scale);
}

template <typename V> void visit(V &v, MeshAxis &x) {
  v("name", x.name);
  v("size", x.size);
}

template <typename V> void visit(V &v, Collective &x) {
  v("kind", x.kind);
  v("axes", x.axes);
  v("type", x.type);
  v("outer", x.outer);
  v("size", x.size);
  v("inner", x.inner);
  v("splitOuter", x.splitOuter);
  v("splitSize", x.splitSize);
  v("splitInner", x.splitInner);
  v("order", x.order);
  v("shift", x.shift);
  v("mirrored", x.mirrored);
  v("maximum", x.maximum);
  v("accumulate", x.accumulate);
  v("reason", x.reason);
}

template <typename V> void visit(V &v, State &x) {
  v("name", x.name);
  v("type", x.type);
  v("initial", x.initial);
  v("offset", x.offset);
}

template <typename V> void visit(V &v, Scalar &x) {
  v("kind", x.kind);
  v("option", x.option);
  v("factor", x.factor);
}

template <typename V> void visit(V &v, ProgramOption &x) {
  v("name", x.name);
  v("help", x.help);
  v("value", x.value);
  v("least", x.least);
  v("most", x.most);
}

template <typename V> void visit(V &v, JoinedTensor &x) {
  v("name", x.name);
  v("dimension", x.dimension);
  v("begin", x.begin);
  v("size", x.size);
}

template <typename V> void visit(V &v, Parameter &x) {
  v("name", x.name);
  v("shape", x.shape);
  v("layers", x.layers);
  v("joined", x.joined);
  v("init", x.init);
  v("isFrozen", x.isFrozen);
  v("compute", x.compute);
  v("gradient", x.gradient);
  v("computeDivision", x.computeDivision);
  v("storageDivision", x.storageDivision);
  v("optimizerDivision", x.optimizerDivision);
  v("unshard", x.unshard);
  v("reduceGrad", x.reduceGrad);
  v("reduce", x.reduce);
  v("refresh", x.refresh);
  v("states", x.states);
  v("stateBytes", x.stateBytes);
  v("updateTask", x.updateTask);
  v("squareTask", x.squareTask);
  v("rows", x.rows);
}

template <typename V> void visit(V &v, ArenaAddress &x) {
  v("stage", x.stage);
  v("offset", x.offset);
}

template <typename V> void visit(V &v, Update &x) {
  v("parameter", x.parameter);
  v("layer", x.layer);
  v("master", x.master);
  v("updated", x.updated);
  v("stored", x.stored);
  v("states", x.states);
  v("gradient", x.gradient);
  v("gradients", x.gradients);
  v("copies", x.copies);
}

template <typename V> void visit(V &v, RotaryTable &x) {
  v("offset", x.offset);
  v("positions", x.positions);
  v("scale", x.scale);
  v("frequencies", x.frequencies);
}

template <typename V> void visit(V &v, ShardOffset &x) {
  v("offset", x.offset);
  v("axes", x.axes);
  v("factor", x.factor);
  v("shift", x.shift);
  v("start", x.start);
}

template <typename V> void visit(V &v, ConstantTensor &x) {
  v("offset", x.offset);
  v("bytes", x.bytes);
}

template <typename V> void visit(V &v, Transfer &x) {
  v("collective", x.collective);
  v("source", x.source);
  v("destination", x.destination);
  v("bytes", x.bytes);
}

template <typename V> void visit(V &v, Clear &x) {
  v("offset", x.offset);
  v("bytes", x.bytes);
}

template <typename V> void visit(V &v, LossTerm &x) {
  v("name", x.name);
  v("coefficient", x.coefficient);
}

template <typename V> void visit(V &v, AuxiliaryLoss &x) {
  v("name", x.name);
  v("coefficient", x.coefficient);
  v("weight", x.weight);
}

template <typename V> void visit(V &v, AuxiliarySums &x) {
  v("layer", x.layer);
  v("offset", x.offset);
  v("losses", x.losses);
}

template <typename V> void visit(V &v, Observation &x) {
  v("name", x.name);
  v("rows", x.rows);
  v("columns", x.columns);
  v("parts", x.parts);
  v("each", x.each);
  v("isAveraged", x.isAveraged);
}

template <typename V> void visit(V &v, ObservedTables &x) {
  v("layer", x.layer);
  v("offset", x.offset);
  v("observations", x.observations);
}

template <typename V> void visit(V &v, ModelOption &x) {
  v("name", x.name);
  v("value", x.value);
}

template <typename V> void visit(V &v, SlotAddress &x) {
  v("slot", x.slot);
  v("offset", x.offset);
  v("stride", x.stride);
}

template <typename V> void visit(V &v, Call &x) {
  v("task", x.task);
  v("frame", x.frame);
  v("layer", x.layer);
}

template <typename V> void visit(V &v, ActionTemplate &x) {
  v("kind", x.kind);
  v("chunk", x.chunk);
  v("startsPair", x.startsPair);
  v("peer", x.peer);
  v("message", x.message);
  v("bytes", x.bytes);
  v("estimate", x.estimate);
  v("slowsWork", x.slowsWork);
  v("slotCount", x.slotCount);
  v("transfers", x.transfers);
  v("updates", x.updates);
  v("round", x.round);
  v("clears", x.clears);
  v("calls", x.calls);
  v("evalCalls", x.evalCalls);
}

template <typename V> void visit(V &v, PlannedAction &x) {
  v("templateNumber", x.templateNumber);
  v("microbatch", x.microbatch);
  v("firstSlot", x.firstSlot);
  v("firstWait", x.firstWait);
  v("waitCount", x.waitCount);
}

template <typename V> void visit(V &v, StepOffsets &x) {
  v("scalars", x.scalars);
  v("squares", x.squares);
  v("scratch", x.scratch);
  v("constants", x.constants);
}

template <typename V> void visit(V &v, Region &x) {
  v("use", x.use);
  v("offset", x.offset);
  v("bytes", x.bytes);
}

template <typename V> void visit(V &v, Stage &x) {
  v("arenaBytes", x.arenaBytes);
  v("hostBytes", x.hostBytes);
  v("regions", x.regions);
  v("hostRegions", x.hostRegions);
  v("tables", x.tables);
  v("shardOffsets", x.shardOffsets);
  v("updates", x.updates);
  v("step", x.step);
  v("templates", x.templates);
  v("actions", x.actions);
  v("slots", x.slots);
  v("waits", x.waits);
  v("inputData", x.inputData);
  v("targetData", x.targetData);
  v("positionData", x.positionData);
  v("loss", x.loss);
  v("logits", x.logits);
  v("auxiliarySums", x.auxiliarySums);
  v("observedTables", x.observedTables);
  v("auxiliaryCotangents", x.auxiliaryCotangents);
  v("startCalls", x.startCalls);
  v("startMicrobatches", x.startMicrobatches);
}

template <typename V> void visit(V &v, DataForm &x) {
  v("type", x.type);
  v("shape", x.shape);
  v("division", x.division);
}

template <typename V> void visit(V &v, Program &x) {
  v("device", x.device);
  v("model", x.model);
  v("schedule", x.schedule);
  v("timeline", x.timeline);
  v("plan", x.plan);
  v("config", x.config);
  v("optimizer", x.optimizer);
  v("modelOptions", x.modelOptions);
  v("bubble", x.bubble);
  v("steadyBubble", x.steadyBubble);
  v("microbatches", x.microbatches);
  v("accumulationSteps", x.accumulationSteps);
  v("vocabulary", x.vocabulary);
  v("classes", x.classes);
  v("input", x.input);
  v("target", x.target);
  v("positions", x.positions);
  v("documentEnd", x.documentEnd);
  v("logits", x.logits);
  v("samples", x.samples);
  v("parameterCount", x.parameterCount);
  v("flopsPerToken", x.flopsPerToken);
  v("mesh", x.mesh);
  v("lossAxes", x.lossAxes);
  v("lossCalls", x.lossCalls);
  v("lossTerms", x.lossTerms);
  v("auxiliaryLosses", x.auxiliaryLosses);
  v("observations", x.observations);
  v("constantTensors", x.constantTensors);
  v("collectives", x.collectives);
  v("parameters", x.parameters);
  v("options", x.options);
  v("scalars", x.scalars);
  v("stages", x.stages);
  v("tasks", x.tasks);
  v("kernels", x.kernels);
  v("kernelRowBytes", x.kernelRowBytes);
}

/// The checksum of the names and types of a structure's fields, in order.
class Form {
public:
  uint64_t sum = checksum("");

  template <typename T> void operator()(const char *name, T &field) {
    add(name);
    addType(field);
  }

private:
  void add(const std::string &word) { sum = checksum(word + ' ', sum); }

  void addType(bool) { add("bool"); }
  void addType(int) { add("int"); }
  void addType(int64_t) { add("int64"); }
  void addType(double) { add("double"); }
  void addType(std::string &) { add("string"); }
  template <typename T> void addType(std::vector<T> &) {
    add("list");
    T element{};
    addType(element);
  }
  template <typename T, size_t N> void addType(std::array<T, N> &values) {
    add(std::to_string(N));
    addType(values[0]);
  }
  template <typename T> void addType(T &value) {
    if constexpr (std::is_enum_v<T>) {
      add(std::to_string(static_cast<int>(kLast<T>)));
    } else {
      add("{");
      visit(*this, value);
      add("}");
    }
  }
};

/// Changes with every field of a program that is added, renamed or moved.
uint64_t formOf() {
  static const uint64_t sum = [] {
    Form form;
    Program program;
    visit(form, program);
    return form.sum;
  }();
  return sum;
}

/// Appends a structure's fields to bytes.
class Writer {
public:
  std::string bytes;

  template <typename T> void operator()(const char *, T &field) {
    write(field);
  }

  void writeFixed(uint64_t value) {
    for (int i = 0; i < 8; ++i)
      bytes.push_back(static_cast<char>(value >> (8 * i)));
  }

private:
  void writeCount(uint64_t value) {
    char coded[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
      coded[count++] = static_cast<char>(value | 0x80);
    coded[count++] = static_cast<char>(value);
    bytes.append(coded, count);
  }

  void write(bool value) { bytes.push_back(value); }
  void write(int value) { write(static_cast<int64_t>(value)); }
  void write(int64_t value) {
    writeCount(static_cast<uint64_t>(value) << 1 ^
               static_cast<uint64_t>(value >> 63));
  }
  void write(double value) { writeFixed(std::bit_cast<uint64_t>(value)); }
  void write(std::string &value) {
    writeCount(value.size());
    bytes += value;
  }
  template <typename T> void write(std::vector<T> &values) {
    writeCount(values.size());
    for (T &value : values)
      write(value);
  }
  template <typename T, size_t N> void write(std::array<T, N> &values) {
    for (T &value : values)
      write(value);
  }
  template <typename T> void write(T &value) {
    if constexpr (std::is_enum_v<T>)
      bytes.push_back(static_cast<char>(value));
    else
      visit(*this, value);
  }
};

/// Fills a structure's fields out of bytes; after the first error it does
/// nothing more.
class Reader {
public:
  explicit Reader(std::string_view bytes) : rest(bytes) {}

  template <typename T> void operator()(const char *key, T &field) {
    if (failed())
      return;
    read(field);
    if (failed())
      enclose(key);
  }

  uint64_t readFixed() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i)
      value |= static_cast<uint64_t>(readByte()) << (8 * i);
    return value;
  }

  size_t bytesLeft() const { return rest.size(); }
  bool failed() const { return !message.empty(); }
  /// "field 'stages[1].arenaBytes': expected a byte, got the end".
  std::string error() const { return "field '" + place + "': " + message; }

private:
  void fail(const std::string &what) {
    if (!failed())
      message = what;
  }
  /// The error is in this part of what encloses it.
  void enclose(const std::string &part) {
    bool apart = !place.empty() && place.front() != '[';
    place = part + (apart ? "." : "") + place;
  }

  uint8_t readByte() {
    if (rest.empty()) {
      fail("expected a byte, got the end");
      return 0;
    }
    uint8_t byte = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    return byte;
  }
  uint64_t readCount() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t byte = readByte();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80)
        return value;
    }
    fail("expected an integer of 64 bits, got a longer one");
    return 0;
  }
  /// The length of a list or string, each of whose elements takes a byte or
  /// more.
  size_t readLength() {
    uint64_t length = readCount();
    if (length <= rest.size())
      return length;
    fail("expected at most " + std::to_string(rest.size()) + " elements, got " +
         std::to_string(length));
    return 0;
  }

  void read(bool &out) { out = readSmall(1) != 0; }
  void read(int &out) {
    int64_t wide = 0;
    read(wide);
    if (wide < std::numeric_limits<int>::min() ||
        wide > std::numeric_limits<int>::max())
      fail("expected an integer of 32 bits, got " + std::to_string(wide));
    out = static_cast<int>(wide);
  }
  void read(int64_t &out) {
    uint64_t value = readCount();
    out = static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
  }
  void read(double &out) { out = std::bit_cast<double>(readFixed()); }
  void read(std::string &out) {
    size_t length = readLength();
    out = rest.substr(0, length);
    rest.remove_prefix(length);
  }
  uint8_t readSmall(int last) {
    uint8_t value = readByte();
    if (value > last)
      fail("expected a value of at most " + std::to_string(last) + ", got " +
           std::to_string(value));
    return value;
  }
  /// Grows with what is read, so that a damaged length takes no memory.
  template <typename T> void read(std::vector<T> &out) {
    size_t length = readLength();
    for (size_t i = 0; i < length && !failed(); ++i) {
      read(out.emplace_back());
      if (failed())
        enclose("[" + std::to_string(i) + "]");
    }
  }
  template <typename T, size_t N> void read(std::array<T, N> &out) {
    for (size_t i = 0; i < N && !failed(); ++i) {
      read(out[i]);
      if (failed())
        enclose("[" + std::to_string(i) + "]");
    }
  }
  template <typename T> void read(T &out) {
    if constexpr (std::is_enum_v<T>)
      out = static_cast<T>(readSmall(static_cast<int>(kLast<T>)));
    else
      visit(*this, out);
  }

  std::string_view rest;
  std::string place, message;
};

} // namespace

std::string toBytes(const Program &program) {
  Writer fields;
  // `visit` serves both directions, so it takes the fields as mutable.
  visit(fields, const_cast<Program &>(program));
  Writer header;
  header.writeFixed(formOf());
  header.writeFixed(checksum(fields.bytes));
  return header.bytes + fields.bytes;
}

bool fromBytes(std::string_view bytes, Program &program, std::string &error) {
  program = Program();
  error.clear();
  Reader header(bytes);
  uint64_t form = header.readFixed(), expected = header.readFixed();
  if (header.failed() || form != formOf()) {
    error =
        "expected a program's description in the form of this version, got " +
        std::to_string(bytes.size()) + " bytes that do not begin with it";
    return false;
  }
  std::string_view fields = bytes.substr(kHeader);
  if (uint64_t sum = checksum(fields); sum != expected) {
    error = "the program's description is damaged: expected the checksum " +
            std::to_string(expected) + ", got " + std::to_string(sum);
    return false;
  }
  Reader reader(fields);
  visit(reader, program);
  if (reader.failed())
    error = reader.error();
  else if (reader.bytesLeft() > 0)
    error = "expected the end of the program's description, got " +
            std::to_string(reader.bytesLeft()) + " bytes more";
  return error.empty();
}

} // namespace rota
