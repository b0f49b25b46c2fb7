// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/LineModel.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/train/state/Tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rota::test {

namespace {

// Blocks of 64 bytes hold a parameter: w at 0 and b at 64 of a layer's block.
constexpr int64_t kBlock = 128, kActivationBytes = kActivation * 4;

float *floats(void *p, int64_t byte = 0) {
  return reinterpret_cast<float *>(static_cast<char *>(p) + byte);
}

void scaleRow(void *const *args, int64_t begin, int64_t end) {
  const float *x = floats(args[0]), *p = floats(args[1]);
  float *y = floats(args[2]);
  for (int64_t i = begin * kEmbed; i < end * kEmbed; ++i)
    y[i] = x[i] * p[i % kEmbed] + p[16 + i % kEmbed];
}

/// The scalars of a step, in the order of the program.
enum {
  Rate,
  Rest1, // 1 - beta1
  Rest2,
  Epsilon,
  Decay,
  Correction1,
  Correction2,
  GradientScale,
  Skip
};

void updateRows(void *const *args, int64_t begin, int64_t end) {
  float *w = floats(args[0]), *g = floats(args[1]), *m = floats(args[2]),
        *v = floats(args[3]);
  const float *s = floats(args[4]);
  float decay = args[5] ? s[Decay] : 0.0f;
  if (s[Skip] > 0.0f) {
    std::fill(g + begin, g + end, 0.0f);
    return;
  }
  for (int64_t i = begin; i < end; ++i) { // a row is an element
    float gradient = g[i] * s[GradientScale];
    m[i] += s[Rest1] * (gradient - m[i]);
    v[i] += s[Rest2] * (gradient * gradient - v[i]);
    float root = std::sqrt(v[i] / s[Correction2]) + s[Epsilon];
    w[i] -= s[Rate] * (m[i] / s[Correction1] / root + decay * w[i]);
    g[i] = 0;
  }
}

void squareRows(void *const *args, int64_t begin, int64_t end) {
  const float *g = floats(args[0]);
  for (int64_t row = begin; row < end; ++row)
    floats(args[1])[row] = g[row] * g[row];
}

/// On all elements of a tensor: what a part of it does not have is zero.
void update(RotaContext *context, const RotaFrame *f, bool decays) {
  void *args[] = {f->parameters, f->gradients,
                  f->residuals,  floats(f->residuals, kBlock),
                  f->data,       decays ? f->data : nullptr};
  rotaLaunch(context, toKernel(updateRows), args, kEmbed, 1);
}

void updateWeight(RotaContext *context, const RotaFrame *f) {
  update(context, f, /*decays=*/true);
}

void updateBias(RotaContext *context, const RotaFrame *f) {
  update(context, f, /*decays=*/false);
}

void squares(RotaContext *context, const RotaFrame *f) {
  void *args[] = {f->gradients, f->output};
  rotaLaunch(context, toKernel(squareRows), args, kEmbed, 1);
}

void forward(RotaContext *context, const RotaFrame *f) {
  void *args[] = {f->input, f->parameters, f->output};
  rotaLaunch(context, toKernel(scaleRow), args, kSequence, 1);
}

void loss(RotaContext *, const RotaFrame *f) {
  const float *z = floats(f->input), *target = floats(f->data);
  float *pair = floats(f->loss), *dz = floats(f->inputCotangent);
  pair[0] = 0;
  pair[1] = kActivation;
  for (int64_t i = 0; i < kActivation; ++i) {
    float difference = z[i] - target[i];
    pair[0] += difference * difference / 2;
    if (dz)
      dz[i] = difference;
  }
}

void backward(RotaContext *, const RotaFrame *f) {
  const float *x = floats(f->input), *dy = floats(f->outputCotangent);
  const float *w = floats(f->parameters);
  float *dw = floats(f->gradients), *db = floats(f->gradients, 64);
  float *dx = floats(f->inputCotangent);
  for (int64_t i = 0; i < kActivation; ++i) {
    dw[i % kEmbed] += dy[i] * x[i];
    db[i % kEmbed] += dy[i];
    if (dx)
      dx[i] = dy[i] * w[i % kEmbed];
  }
}

/// Hands out 64-byte blocks of an arena.
int64_t take(int64_t &arenaBytes, int64_t bytes) {
  int64_t offset = arenaBytes;
  arenaBytes += (bytes + 63) / 64 * 64;
  return offset;
}

/// Blocks of kBlock bytes: the weight at 0 and the bias at 64.
struct LayerOffsets {
  int64_t parameters, gradients; // in storage
  int64_t masters, summed;       // the optimizer's: its own or those above
  int64_t moments;               // two blocks
  int64_t gradientWindow;        // what tasks add to
};

Call makeCall(int task) {
  Call call;
  call.task = task;
  return call;
}

// Positions in a call's frame, those of RotaFrame.
enum { Parameters, Gradients, Input = 4, Output, OutputCotangent };
enum { InputCotangent = 7, Data, LossPair };

// Axes of the mesh.
enum { DataAxis, StageAxis, FsdpAxis, TensorAxis };

struct MadeAction {
  ActionTemplate actionTemplate;
  int microbatch = 0;
  std::vector<int> waits;
};

MadeAction makeAction(ActionKind kind, int chunk, int64_t microbatch,
                      std::vector<int> waits = {}) {
  MadeAction action;
  action.actionTemplate.kind = kind;
  action.actionTemplate.chunk = chunk;
  action.microbatch = static_cast<int>(microbatch);
  action.waits = std::move(waits);
  return action;
}

/// Builds all variants: the activations between the layers (y, dy) stand on
/// both stages when there are two.
class Builder {
public:
  explicit Builder(const LineShape &shape)
      : shape(shape), m(shape.microbatches), last(shape.stages - 1),
        divided(shape.shardOptimizer && shape.data * shape.tensor > 1) {
    p.microbatches = m;
    p.accumulationSteps = shape.accumulationSteps;
    p.stages.resize(shape.stages);
  }

  Program build() {
    describeModel();
    addParameter("layers.{layer}.weight", {2, 2}, {0, 1});
    addParameter("bias", {4}, {});
    placeBlocks();
    addUpdates();
    last ? addPipeline() : addSequence();
    return std::move(p);
  }

private:
  int stageOf(int layer) const { return layer ? last : 0; }
  Stage &stage(int layer) { return p.stages[stageOf(layer)]; }
  bool windows() const { return shape.fsdp > 1; }

  void describeModel() {
    p.model = "line";
    p.schedule = "by hand";
    p.mesh = {{"data", shape.data},
              {"stage", shape.stages},
              {"fsdp", shape.fsdp},
              {"tensor", shape.tensor}};
    p.lossAxes = {DataAxis, FsdpAxis};
    p.input = {ElementType::F32,
               {shape.data * shape.fsdp, kSequence, kEmbed},
               {{DataAxis, FsdpAxis}}};
    p.target = p.input;
    if (shape.logits)
      p.logits = p.input;
    p.parameterCount = 3 * kEmbed;
    p.tasks = {"forward",       "loss",        "backward",
               "update_weight", "update_bias", "squares"};
    using Kind = Scalar::Kind;
    p.scalars = {{Kind::LearningRate, ""},
                 {Kind::Complement, "beta1"},
                 {Kind::Complement, "beta2"},
                 {Kind::Option, "epsilon"},
                 {Kind::Option, "weight-decay"},
                 {Kind::Correction, "beta1"},
                 {Kind::Correction, "beta2"},
                 {Kind::GradientScale, ""},
                 {Kind::Skip, ""}};
    p.options = {{"beta1", "", 0.9, 0.0, 0.999999999},
                 {"beta2", "", 0.95, 0.0, 0.999999999},
                 {"epsilon", "", 1e-8, 0.0, kUnbounded},
                 {"weight-decay", "", 0.1, 0.0, kUnbounded}};
    p.kernels = {"update", "square", "scale_row"};
    p.kernelRowBytes = {32, 8, 2 * kEmbed * 4};
  }

  int addCollective(Collective::Kind kind, int axis, int64_t outer,
                    int64_t size, int64_t inner, bool accumulate = false) {
    Collective c;
    c.kind = kind;
    c.axes = {axis};
    c.outer = outer;
    c.size = size;
    c.inner = inner;
    c.accumulate = accumulate;
    p.collectives.push_back(c);
    return static_cast<int>(p.collectives.size()) - 1;
  }

  void addParameter(const std::string &name, std::vector<int64_t> sizes,
                    std::vector<int64_t> layers) {
    using Kind = Collective::Kind;
    Parameter x;
    x.name = name;
    x.shape = sizes;
    x.layers = std::move(layers);
    bool weight = sizes.size() == 2;
    x.init = weight ? Initializer{Initializer::Kind::Normal, 1.0, 0.5}
                    : Initializer{Initializer::Kind::Uniform, -0.5, 0.5};
    x.updateTask = weight ? 3 : 4;
    x.squareTask = 5;
    int64_t inner = weight ? 2 : 1, rows = sizes[0];
    if (windows()) {
      x.storageDivision = {{FsdpAxis}};
      x.unshard = addCollective(Kind::AllGather, FsdpAxis, 1, rows, inner);
      x.reduceGrad =
          addCollective(Kind::ReduceScatter, FsdpAxis, 1, rows, inner, true);
      rows = (rows + shape.fsdp - 1) / shape.fsdp;
    }
    x.optimizerDivision = x.storageDivision;
    if (divided) {
      // The weight's columns where its rows are divided already.
      bool columns = weight && windows();
      x.optimizerDivision.resize(columns ? 2 : 1);
      // Over tensor every rank has the whole gradient already.
      int axis = shape.data > 1 ? DataAxis : TensorAxis;
      x.optimizerDivision[columns].push_back(axis);
      int64_t outer = columns ? rows : 1, size = columns ? 2 : rows;
      int64_t rest = columns ? 1 : inner;
      x.reduce = {
          addCollective(shape.data > 1 ? Kind::ReduceScatter : Kind::Slice,
                        axis, outer, size, rest)};
      x.refresh = addCollective(Kind::AllGather, axis, outer, size, rest);
    } else if (shape.data > 1) {
      x.reduce = {addCollective(Kind::AllReduce, DataAxis, 1, rows * inner, 1)};
    }
    x.rows = partElements(x.shape, x.optimizerDivision, p.mesh);
    x.states = {{"first_moment", ElementType::F32, 0.0, 0},
                {"second_moment", ElementType::F32, 0.0, kBlock}};
    x.stateBytes = kBlock + 4 * x.rows;
    p.parameters.push_back(x);
  }

  void placeBlocks() {
    for (int layer = 0; layer < 2; ++layer) {
      int64_t &bytes = stage(layer).arenaBytes;
      LayerOffsets &at = layers[layer];
      at.parameters = take(bytes, kBlock);
      at.gradients = take(bytes, kBlock);
      at.moments = take(bytes, 2 * kBlock);
      at.masters = divided ? take(bytes, kBlock) : at.parameters;
      at.summed = divided ? take(bytes, kBlock) : at.gradients;
      at.gradientWindow = windows() ? take(bytes, kBlock) : at.gradients;
    }
    for (Stage &s : p.stages) {
      s.step.scalars = take(s.arenaBytes, kBlock);
      s.step.squares = take(s.arenaBytes, 2 * kBlock);
    }
    for (Stage &s : p.stages)
      window.push_back(windows() ? take(s.arenaBytes, kBlock) : -1);
    int64_t &first = p.stages[0].arenaBytes, &end = p.stages[last].arenaBytes;
    x = p.stages[0].inputData = take(first, m * kActivationBytes);
    target = p.stages[last].targetData = take(end, m * kActivationBytes);
    lossPairs = p.stages[last].loss = take(end, m * 8);
    y0 = take(first, m * kActivationBytes);
    dy0 = take(first, m * kActivationBytes);
    y1 = last ? take(end, m * kActivationBytes) : y0;
    dy1 = last ? take(end, m * kActivationBytes) : dy0;
    z = take(end, m * kActivationBytes);
    dz = take(end, m * kActivationBytes);
    if (shape.logits)
      p.stages[last].logits = z;
    if (shape.offload)
      p.stages[0].hostBytes = m * kActivationBytes;
  }

  Update makeUpdate(int parameter, int64_t layer, const LayerOffsets &at,
                    int64_t within, int owner) {
    Update u;
    u.parameter = parameter;
    u.layer = layer;
    u.master = u.updated = at.masters + within;
    u.stored = at.parameters + within;
    u.states = at.moments + within;
    u.gradient = at.summed + within;
    u.gradients = {{owner, at.gradients + within}};
    return u;
  }

  void addUpdates() {
    for (int layer = 0; layer < 2; ++layer)
      stage(layer).updates.push_back(
          makeUpdate(0, layer, layers[layer], 0, stageOf(layer)));
    Update b = makeUpdate(1, -1, layers[0], 64, 0);
    b.gradients.push_back({last, layers[1].gradients + 64});
    b.copies = {{last, layers[1].parameters + 64}};
    p.stages[0].updates.push_back(b);
  }

  int add(int layer, const MadeAction &action) {
    return stage(layer).addAction(action.actionTemplate, action.microbatch,
                                  action.waits);
  }

  int addMessage(int layer, ActionKind kind, int64_t microbatch,
                 int64_t offset) {
    MadeAction action = makeAction(kind, layer, microbatch);
    action.actionTemplate.peer = 1 - layer;
    action.actionTemplate.message = offset + microbatch * kActivationBytes;
    action.actionTemplate.bytes = kActivationBytes;
    return add(layer, action);
  }

  /// Moves both parameters of a layer.
  int addTransfers(int layer, ActionKind kind, int64_t microbatch) {
    MadeAction action = makeAction(kind, layer, microbatch);
    const LayerOffsets &at = layers[layer];
    for (int64_t i = 0; i < 2; ++i) {
      const Parameter &parameter = p.parameters[i];
      if (kind == ActionKind::Unshard)
        action.actionTemplate.transfers.push_back(
            {parameter.unshard, at.parameters + 64 * i,
             window[stageOf(layer)] + 64 * i});
      else
        action.actionTemplate.transfers.push_back({parameter.reduceGrad,
                                                   at.gradientWindow + 64 * i,
                                                   at.gradients + 64 * i});
    }
    return add(layer, action);
  }

  /// The host's copy of what layer 1 read; on the device, one place serves all
  /// microbatches.
  int addCopy(ActionKind kind, int64_t microbatch, std::vector<int> waits) {
    MadeAction action = makeAction(kind, 1, microbatch, std::move(waits));
    int64_t host = microbatch * kActivationBytes;
    bool out = kind == ActionKind::Offload;
    action.actionTemplate.transfers = {
        {-1, out ? y1 : host, out ? host : y1, kActivationBytes}};
    return add(1, action);
  }

  int64_t betweenLayers(int64_t base, int64_t i) const {
    return base + (shape.offload ? 0 : i * kActivationBytes);
  }

  Call layerCall(int task, int layer, int64_t i) {
    Call call = makeCall(task);
    call.frame[Parameters] =
        windows() ? window[stageOf(layer)] : layers[layer].parameters;
    call.frame[Input] = layer ? betweenLayers(y1, i) : x + i * kActivationBytes;
    return call;
  }

  Call lossCall(int64_t i, bool training) {
    Call call = makeCall(1);
    call.frame[Input] = z + i * kActivationBytes;
    call.frame[Data] = target + i * kActivationBytes;
    call.frame[LossPair] = lossPairs + i * 8;
    if (training)
      call.frame[InputCotangent] = dz + i * kActivationBytes;
    return call;
  }

  void addForward(int layer, int64_t i, std::vector<int> waits = {}) {
    if (windows())
      waits.push_back(addTransfers(layer, ActionKind::Unshard, i));
    MadeAction action = makeAction(ActionKind::Forward, layer, i, waits);
    Call call = layerCall(0, layer, i);
    call.frame[Output] =
        layer ? z + i * kActivationBytes : betweenLayers(y0, i);
    action.actionTemplate.calls = action.actionTemplate.evalCalls = {call};
    if (layer) {
      action.actionTemplate.calls.push_back(lossCall(i, true));
      action.actionTemplate.evalCalls.push_back(lossCall(i, false));
    }
    add(layer, action);
    if (windows())
      add(layer, makeAction(ActionKind::Reshard, layer, i));
  }

  void addBackward(int layer, int64_t i, std::vector<int> waits = {}) {
    if (windows())
      waits.push_back(addTransfers(layer, ActionKind::Unshard, i));
    MadeAction action = makeAction(ActionKind::Backward, layer, i, waits);
    Call call = layerCall(2, layer, i);
    call.frame[Gradients] = layers[layer].gradientWindow;
    call.frame[OutputCotangent] = (layer ? dz : dy0) + i * kActivationBytes;
    if (layer)
      call.frame[InputCotangent] = dy1 + i * kActivationBytes;
    action.actionTemplate.calls = {call};
    if (windows() && i == 0)
      action.actionTemplate.clears = {{layers[layer].gradientWindow, kBlock}};
    add(layer, action);
    if (windows() && i == m - 1)
      addTransfers(layer, ActionKind::ReduceGrad, i);
  }

  void addSequence() {
    std::vector<int> copied; // the last copy that uses the one place
    for (int64_t i = 0; i < m; ++i) {
      addForward(0, i, copied);
      addForward(1, i);
      if (shape.offload)
        copied = {addCopy(ActionKind::Offload, i, {})};
    }
    for (int64_t i = 0; i < m; ++i) {
      if (shape.offload)
        copied = {addCopy(ActionKind::Fetch, i, copied)};
      addBackward(1, i, copied);
      addBackward(0, i);
    }
  }

  void addPipeline() {
    std::vector<int> back;
    for (int64_t i = 0; i < m; ++i) {
      addForward(0, i);
      addMessage(0, ActionKind::SendForward, i, y0);
      back.push_back(addMessage(0, ActionKind::RecvBackward, i, dy0));
      addMessage(1, ActionKind::RecvForward, i, y1);
    }
    for (int64_t i = 0; i < m; ++i) {
      addBackward(0, i, {back[i]});
      addForward(1, i, {static_cast<int>(i)});
      addBackward(1, i);
      addMessage(1, ActionKind::SendBackward, i, dy1);
    }
  }

  Program p;
  LineShape shape;
  int64_t m;
  int last;
  bool divided; // the optimizer's state, further than storage
  LayerOffsets layers[2];
  std::vector<int64_t> window; // by stage
  int64_t x, target, lossPairs, y0, y1, z, dy0, dy1, dz;
};

} // namespace

const RotaTask lineTasks[] = {forward,      loss,       backward,
                              updateWeight, updateBias, squares};
const RotaKernel lineKernels[] = {toKernel(updateRows), toKernel(squareRows),
                                  toKernel(scaleRow)};

Program makeLine(const LineShape &shape) { return Builder(shape).build(); }

Program makeLine(int stages, int64_t microbatches) {
  return makeLine({stages, microbatches});
}

Executable makeLineExecutable(const Program &program) {
  return {&program, lineTasks, lineKernels};
}

LocalRanks::LocalRanks(const Executable &executable, int threads)
    : connection(*executable.program, RankKind::Threads, {},
                 /*timing=*/false),
      ranks(executable, connection, {.threads = threads}, /*profile=*/false) {}

Rank &LocalRanks::ofStage(int stage) { return at(at(0).peer(stage)); }

template <typename Gather>
static std::vector<std::vector<float>> readTensors(LocalRanks &ranks,
                                                   Gather gather) {
  std::vector<std::vector<float>> tensors;
  ranks.run([&](Rank &rank) {
    for (const StateTensor &tensor : masterTensors(rank.program())) {
      std::vector<float> whole = gather(rank, tensor);
      if (rank.number() == 0)
        tensors.push_back(whole);
    }
  });
  return tensors;
}

std::vector<std::vector<float>> readMasters(LocalRanks &ranks) {
  return readTensors(ranks, gatherMaster);
}

std::vector<std::vector<float>> readGradients(LocalRanks &ranks) {
  return readTensors(ranks, gatherGradient);
}

LineReference readLine(LocalRanks &ranks) {
  std::vector<std::vector<float>> tensors = readMasters(ranks);
  auto wide = [&](int i) {
    return std::vector<double>(tensors[i].begin(), tensors[i].end());
  };
  LineReference line;
  line.b = wide(0);
  line.w0 = wide(1);
  line.w1 = wide(2);
  line.dw0 = line.dw1 = line.db = std::vector<double>(kEmbed, 0.0);
  return line;
}

void LineReference::accumulate(LocalRanks &ranks) {
  const Program &program = ranks.at(0).program();
  int last = static_cast<int>(program.stages.size()) - 1;
  for (int64_t m = 0; m < program.microbatches; ++m)
    for (int r = 0; r < ranks.count(); ++r) {
      Rank &first = ranks.at(r), &end = ranks.at(first.peer(last));
      if (first.stageNumber() == 0 && first.coordinates()[TensorAxis] == 0)
        accumulate(
            addressOf<float>(first, first.stage().inputData) + m * kActivation,
            addressOf<float>(end, end.stage().targetData) + m * kActivation);
    }
}

void LineReference::accumulate(const float *input, const float *target) {
  for (int64_t i = 0; i < kActivation; ++i) {
    int64_t e = i % kEmbed;
    double y = input[i] * w0[e] + b[e], z = y * w1[e] + b[e];
    double dz = z - target[i], dy = dz * w1[e];
    sum += dz * dz / 2;
    dw1[e] += dz * y;
    dw0[e] += dy * input[i];
    db[e] += dz + dy;
  }
  weight += kActivation;
}

} // namespace rota::test
