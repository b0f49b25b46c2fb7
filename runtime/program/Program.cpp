// SPDX-License-Identifier: Apache-2.0
//
// The program's JSON form. Each structure lists its fields once, in a `visit`
// function; a writer and a reader walk that list. The reader checks every type
// by hand, since the compiler is built without exceptions.
#include "runtime/program/Program.h"

#include <nlohmann/json.hpp>

#include <limits>

using nlohmann::json;

namespace rota {

int64_t byteSize(ElementType type) { return type == ElementType::BF16 ? 2 : 4; }

int64_t DataForm::elements() const {
  int64_t count = shape.empty() ? 0 : 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t DataForm::bytes() const { return elements() * byteSize(type); }

int64_t elementCount(const Parameter &parameter) {
  int64_t count = 1;
  for (int64_t size : parameter.shape)
    count *= size;
  return count;
}

int64_t groupSize(const std::vector<MeshAxis> &mesh,
                  const std::vector<int> &axes) {
  int64_t ranks = 1;
  for (int axis : axes)
    ranks *= mesh[axis].size;
  return ranks;
}

std::vector<int64_t> partShape(const std::vector<int64_t> &shape,
                               const Division &division,
                               const std::vector<MeshAxis> &mesh) {
  std::vector<int64_t> part = shape;
  for (size_t i = 0; i < division.size(); ++i) {
    int64_t parts = groupSize(mesh, division[i]);
    part[i] = (part[i] + parts - 1) / parts;
  }
  return part;
}

int64_t partElements(const std::vector<int64_t> &shape,
                     const Division &division,
                     const std::vector<MeshAxis> &mesh) {
  int64_t count = 1;
  for (int64_t size : partShape(shape, division, mesh))
    count *= size;
  return count;
}

bool isCompute(ActionKind kind) {
  return kind == ActionKind::Forward || kind == ActionKind::Backward ||
         kind == ActionKind::BackwardInput ||
         kind == ActionKind::BackwardWeight;
}

bool isTransfer(ActionKind kind) {
  return kind == ActionKind::Unshard || kind == ActionKind::ReduceGrad ||
         kind == ActionKind::Offload || kind == ActionKind::Fetch;
}

bool isAsynchronous(ActionKind kind) {
  return isSend(kind) || isReceive(kind) || isTransfer(kind);
}

bool isSend(ActionKind kind) {
  return kind == ActionKind::SendForward || kind == ActionKind::SendBackward;
}

bool isReceive(ActionKind kind) {
  return kind == ActionKind::RecvForward || kind == ActionKind::RecvBackward;
}

namespace {

constexpr const char *kElementTypes[] = {"f32", "bf16", "i32"};
constexpr const char *kInitializers[] = {"normal", "uniform", "constant"};
constexpr const char *kActionKinds[] = {
    "F",           "B",       "I",      "W",       "SEND_F",
    "RECV_F",      "SEND_B",  "RECV_B", "UNSHARD", "RESHARD",
    "REDUCE_GRAD", "OFFLOAD", "FETCH"};
constexpr const char *kCollectives[] = {"all-gather", "reduce-scatter",
                                        "all-reduce", "all-to-all",
                                        "slice",      "permute"};

/// The names of an enumeration, in the order of its values.
template <typename Enum> struct Names;
template <> struct Names<ElementType> {
  static constexpr const auto &list = kElementTypes;
};
template <> struct Names<Initializer::Kind> {
  static constexpr const auto &list = kInitializers;
};
template <> struct Names<Collective::Kind> {
  static constexpr const auto &list = kCollectives;
};
template <> struct Names<ActionKind> {
  static constexpr const auto &list = kActionKinds;
};

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
  v("maximum", x.maximum);
  v("accumulate", x.accumulate);
  v("reason", x.reason);
}

template <typename V> void visit(V &v, Parameter &x) {
  v("name", x.name);
  v("shape", x.shape);
  v("layers", x.layers);
  v("init", x.init);
  v("compute", x.compute);
  v("decay", x.decay);
  v("computeDivision", x.computeDivision);
  v("storageDivision", x.storageDivision);
  v("optimizerDivision", x.optimizerDivision);
  v("unshard", x.unshard);
  v("reduceGrad", x.reduceGrad);
  v("reduce", x.reduce);
  v("refresh", x.refresh);
  v("rows", x.rows);
  v("updateKernel", x.updateKernel);
  v("squareKernel", x.squareKernel);
}

template <typename V> void visit(V &v, ArenaPlace &x) {
  v("stage", x.stage);
  v("offset", x.offset);
}

template <typename V> void visit(V &v, Update &x) {
  v("parameter", x.parameter);
  v("layer", x.layer);
  v("master", x.master);
  v("updated", x.updated);
  v("stored", x.stored);
  v("firstMoment", x.firstMoment);
  v("secondMoment", x.secondMoment);
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

template <typename V> void visit(V &v, Action &x) {
  v("kind", x.kind);
  v("chunk", x.chunk);
  v("microbatch", x.microbatch);
  v("peer", x.peer);
  v("offset", x.offset);
  v("bytes", x.bytes);
  v("waits", x.waits);
  v("transfers", x.transfers);
  v("clears", x.clears);
  v("calls", x.calls);
  v("evalCalls", x.evalCalls);
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
  v("actions", x.actions);
  v("inputData", x.inputData);
  v("targetData", x.targetData);
  v("loss", x.loss);
  v("logits", x.logits);
  v("auxiliarySums", x.auxiliarySums);
  v("auxiliaryCotangents", x.auxiliaryCotangents);
  v("startCalls", x.startCalls);
}

template <typename V> void visit(V &v, DataForm &x) {
  v("type", x.type);
  v("shape", x.shape);
  v("division", x.division);
}

template <typename V> void visit(V &v, Program &x) {
  v("model", x.model);
  v("schedule", x.schedule);
  v("timeline", x.timeline);
  v("plan", x.plan);
  v("bubble", x.bubble);
  v("microbatches", x.microbatches);
  v("vocabulary", x.vocabulary);
  v("classes", x.classes);
  v("input", x.input);
  v("target", x.target);
  v("logits", x.logits);
  v("parameterCount", x.parameterCount);
  v("flopsPerToken", x.flopsPerToken);
  v("mesh", x.mesh);
  v("lossAxes", x.lossAxes);
  v("auxiliaryLosses", x.auxiliaryLosses);
  v("collectives", x.collectives);
  v("parameters", x.parameters);
  v("stages", x.stages);
  v("tasks", x.tasks);
  v("kernels", x.kernels);
  v("kernelRowBytes", x.kernelRowBytes);
}

/// Builds a JSON object out of a structure's fields.
struct Writer {
  json object = json::object();

  template <typename T> void operator()(const char *key, T &field) {
    object[key] = write(field);
  }

  static json write(bool value) { return value; }
  static json write(int value) { return value; }
  static json write(int64_t value) { return value; }
  static json write(double value) { return value; }
  static json write(std::string &value) { return value; }
  /// A call is [task, offset of each frame field].
  static json write(Call &call) {
    json row = json::array({call.task});
    for (int64_t offset : call.frame)
      row.push_back(offset);
    return row;
  }
  template <typename T> static json write(std::vector<T> &values) {
    json list = json::array();
    for (T &value : values)
      list.push_back(write(value));
    return list;
  }
  template <typename T> static json write(T &value) {
    if constexpr (std::is_enum_v<T>) {
      return Names<T>::list[static_cast<int>(value)];
    } else {
      Writer inner;
      visit(inner, value);
      return std::move(inner.object);
    }
  }
};

/// Fills a structure's fields out of a JSON object; after the first error it
/// does nothing more.
struct Reader {
  const json &object;
  std::string path;
  std::string &error;

  template <typename T> void operator()(const char *key, T &field) {
    if (!error.empty())
      return;
    auto found = object.find(key);
    std::string place = path.empty() ? key : path + "." + key;
    if (found == object.end())
      error = "missing field '" + place + "'";
    else
      read(*found, field, place);
  }

  void expected(const char *what, const json &value, const std::string &place) {
    error = "field '" + place + "': expected " + what + ", got " +
            value.type_name();
  }

  void read(const json &value, bool &out, const std::string &place) {
    if (!value.is_boolean())
      return expected("a boolean", value, place);
    out = value.get<bool>();
  }
  void read(const json &value, int64_t &out, const std::string &place) {
    if (!value.is_number_integer())
      return expected("an integer", value, place);
    out = value.get<int64_t>();
  }
  void read(const json &value, int &out, const std::string &place) {
    int64_t wide = 0;
    read(value, wide, place);
    if (!error.empty())
      return;
    if (wide < std::numeric_limits<int>::min() ||
        wide > std::numeric_limits<int>::max())
      error = "field '" + place + "': expected a 32-bit integer, got " +
              std::to_string(wide);
    out = static_cast<int>(wide);
  }
  void read(const json &value, double &out, const std::string &place) {
    if (!value.is_number())
      return expected("a number", value, place);
    out = value.get<double>();
  }
  void read(const json &value, std::string &out, const std::string &place) {
    if (!value.is_string())
      return expected("a string", value, place);
    out = value.get_ref<const std::string &>();
  }
  void read(const json &value, Call &out, const std::string &place) {
    std::vector<int64_t> row;
    read(value, row, place);
    if (!error.empty())
      return;
    if (row.size() != 1 + kFrameFields) {
      error = "field '" + place + "': expected " +
              std::to_string(1 + kFrameFields) + " numbers, got " +
              std::to_string(row.size());
      return;
    }
    out.task = static_cast<int>(row[0]);
    std::copy(row.begin() + 1, row.end(), out.frame);
  }
  template <typename T>
  void read(const json &value, std::vector<T> &out, const std::string &place) {
    if (!value.is_array())
      return expected("an array", value, place);
    out.resize(value.size());
    for (size_t i = 0; i < out.size() && error.empty(); ++i)
      read(value[i], out[i], place + "[" + std::to_string(i) + "]");
  }
  template <typename T>
  void read(const json &value, T &out, const std::string &place) {
    if constexpr (std::is_enum_v<T>) {
      std::string name;
      read(value, name, place);
      if (!error.empty())
        return;
      for (size_t i = 0; i < std::size(Names<T>::list); ++i)
        if (name == Names<T>::list[i]) {
          out = static_cast<T>(i);
          return;
        }
      error = "field '" + place + "': unknown name '" + name + "'";
    } else {
      if (!value.is_object())
        return expected("an object", value, place);
      Reader inner{value, place, error};
      visit(inner, out);
    }
  }
};

} // namespace

const char *toString(ActionKind kind) {
  return kActionKinds[static_cast<int>(kind)];
}

std::string toJson(const Program &program) {
  // `visit` serves both directions, so it takes the fields as mutable.
  return Writer::write(const_cast<Program &>(program)).dump();
}

bool fromJson(const char *text, int64_t size, Program &program,
              std::string &error) {
  error.clear();
  json value = json::parse(text, text + size, nullptr, false);
  if (value.is_discarded()) {
    error = "the program's description is not JSON";
    return false;
  }
  program = Program();
  if (!value.is_object()) {
    error = std::string("expected an object, got ") + value.type_name();
    return false;
  }
  Reader reader{value, "", error};
  visit(reader, program);
  return error.empty();
}

} // namespace rota
