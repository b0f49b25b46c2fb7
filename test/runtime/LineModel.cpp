// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/LineModel.h"

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

void update(void *const *args, int64_t begin, int64_t end) {
  auto scalar = [&](int i) { return *floats(args[i]); };
  float *w = floats(args[12]), *m = floats(args[13]), *v = floats(args[14]),
        *g = floats(args[15]);
  constexpr int64_t kColumns = 2;
  for (int64_t i = begin * kColumns; i < end * kColumns; ++i) {
    float gradient = g[i] * scalar(11);
    m[i] = scalar(5) * m[i] + (1 - scalar(5)) * gradient;
    v[i] = scalar(6) * v[i] + (1 - scalar(6)) * gradient * gradient;
    float root = std::sqrt(v[i] / scalar(10)) + scalar(7);
    w[i] -= scalar(4) * (m[i] / scalar(9) / root + scalar(8) * w[i]);
    g[i] = 0;
  }
}

void square(void *const *args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float *g = floats(args[0]) + 2 * row;
    floats(args[1])[row] = g[0] * g[0] + g[1] * g[1];
  }
}

void forward(RotaContext *context, const RotaFrame *f) {
  void *args[] = {f->input, f->parameters, f->output};
  rotaParallelFor(context, scaleRow, args, kSequence, 1);
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

/// Hands out 64-byte blocks of a rank's arena.
struct Layout {
  Stage &rank;
  int64_t take(int64_t bytes) {
    int64_t offset = rank.arenaBytes;
    rank.arenaBytes += (bytes + 63) / 64 * 64;
    return offset;
  }
};

struct LayerPlaces {
  int64_t parameters, gradients, moments;
};

Call makeCall(int task) {
  Call call;
  call.task = task;
  std::fill(call.frame, call.frame + kFrameFields, -1);
  return call;
}

// Positions in a call's frame, those of RotaFrame.
enum { Parameters, Gradients, Input = 4, Output, OutputCotangent };
enum { InputCotangent = 7, Data, LossPair };

Action computeAction(ActionKind kind, int chunk, int64_t microbatch) {
  Action action;
  action.kind = kind;
  action.chunk = chunk;
  action.microbatch = static_cast<int>(microbatch);
  return action;
}

Action transfer(ActionKind kind, int64_t microbatch, int peer, int64_t offset) {
  Action action = computeAction(kind, 0, microbatch);
  action.peer = peer;
  action.offset = offset;
  action.bytes = kActivationBytes;
  return action;
}

/// Builds both variants: the activations between the layers (y, dy) stand on
/// both ranks when there are two.
class Builder {
public:
  Builder(int ranks, int64_t microbatches) : m(microbatches), last(ranks - 1) {
    p.microbatches = microbatches;
    p.stages.resize(ranks);
  }

  Program build() {
    describeModel();
    for (int layer = 0; layer < 2; ++layer) {
      Layout layout{rankOf(layer)};
      layers[layer] = {layout.take(kBlock), layout.take(kBlock),
                       layout.take(2 * kBlock)};
    }
    Layout first{p.stages[0]}, end{p.stages[last]};
    x = p.stages[0].inputData = first.take(m * kActivationBytes);
    target = p.stages[last].targetData = end.take(m * kActivationBytes);
    lossPairs = p.stages[last].loss = end.take(m * 8);
    y0 = first.take(m * kActivationBytes);
    dy0 = first.take(m * kActivationBytes);
    y1 = last ? end.take(m * kActivationBytes) : y0;
    dy1 = last ? end.take(m * kActivationBytes) : dy0;
    z = end.take(m * kActivationBytes);
    dz = end.take(m * kActivationBytes);
    addUpdates();
    last ? addPipeline() : addSequence();
    return std::move(p);
  }

private:
  Stage &rankOf(int layer) { return p.stages[layer ? last : 0]; }

  void describeModel() {
    p.model = "line";
    p.schedule = "by hand";
    p.input = {ElementType::F32, {1, kSequence, kEmbed}};
    p.target = p.input;
    p.parameterCount = 3 * kEmbed;
    p.tasks = {"forward", "loss", "backward"};
    p.kernels = {"update", "square", "scale_row"};
    p.kernelRowBytes = {64, 12, 2 * kEmbed * 4};
    Parameter w;
    w.name = "layers.{layer}.weight";
    w.shape = {2, 2};
    w.layers = {0, 1};
    w.init = {Initializer::Kind::Normal, 1.0, 0.5};
    w.rows = 2;
    w.updateKernel = 0;
    w.squareKernel = 1;
    Parameter b = w;
    b.name = "bias";
    b.shape = {4};
    b.layers = {};
    b.init = {Initializer::Kind::Uniform, -0.5, 0.5};
    b.decay = false;
    p.parameters = {w, b};
  }

  void addUpdates() {
    for (int layer = 0; layer < 2; ++layer) {
      const LayerPlaces &at = layers[layer];
      int rank = layer ? last : 0;
      Update w;
      w.layer = layer;
      w.master = w.stored = w.updated = at.parameters;
      w.firstMoment = at.moments;
      w.secondMoment = at.moments + kBlock;
      w.gradient = at.gradients;
      w.gradients = {{rank, at.gradients}};
      rankOf(layer).updates.push_back(w);
    }
    Update b;
    b.parameter = 1;
    b.master = b.stored = b.updated = layers[0].parameters + 64;
    b.firstMoment = layers[0].moments + 64;
    b.secondMoment = layers[0].moments + kBlock + 64;
    b.gradient = layers[0].gradients + 64;
    b.gradients = {{0, b.gradient}, {last, layers[1].gradients + 64}};
    b.copies = {{last, layers[1].parameters + 64}};
    p.stages[0].updates.push_back(b);
  }

  Call forwardCall(int layer, int64_t i) {
    Call call = makeCall(0);
    call.frame[Parameters] = layers[layer].parameters;
    call.frame[Input] = (layer ? y1 : x) + i * kActivationBytes;
    call.frame[Output] = (layer ? z : y0) + i * kActivationBytes;
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

  Call backwardCall(int layer, int64_t i) {
    Call call = makeCall(2);
    call.frame[Parameters] = layers[layer].parameters;
    call.frame[Gradients] = layers[layer].gradients;
    call.frame[Input] = (layer ? y1 : x) + i * kActivationBytes;
    call.frame[OutputCotangent] = (layer ? dz : dy0) + i * kActivationBytes;
    if (layer)
      call.frame[InputCotangent] = dy1 + i * kActivationBytes;
    return call;
  }

  Action forwardAction(int layer, int64_t i) {
    Action action = computeAction(ActionKind::Forward, layer, i);
    action.calls = action.evalCalls = {forwardCall(layer, i)};
    if (layer) {
      action.calls.push_back(lossCall(i, true));
      action.evalCalls.push_back(lossCall(i, false));
    }
    return action;
  }

  Action backwardAction(int layer, int64_t i) {
    Action action = computeAction(ActionKind::Backward, layer, i);
    action.calls = {backwardCall(layer, i)};
    return action;
  }

  void addSequence() {
    std::vector<Action> &actions = p.stages[0].actions;
    for (int64_t i = 0; i < m; ++i)
      for (int layer = 0; layer < 2; ++layer)
        actions.push_back(forwardAction(layer, i));
    for (int64_t i = 0; i < m; ++i)
      for (int layer = 1; layer >= 0; --layer)
        actions.push_back(backwardAction(layer, i));
  }

  void addPipeline() {
    std::vector<Action> &a = p.stages[0].actions, &b = p.stages[1].actions;
    for (int64_t i = 0; i < m; ++i) {
      int64_t at = i * kActivationBytes;
      a.push_back(forwardAction(0, i));
      a.push_back(transfer(ActionKind::SendForward, i, 1, y0 + at));
      a.push_back(transfer(ActionKind::RecvBackward, i, 1, dy0 + at));
      b.push_back(transfer(ActionKind::RecvForward, i, 0, y1 + at));
    }
    for (int64_t i = 0; i < m; ++i) {
      a.push_back(backwardAction(0, i));
      a.back().waits = {static_cast<int>(3 * i + 2)};
      b.push_back(forwardAction(1, i));
      b.back().waits = {static_cast<int>(i)};
      b.push_back(backwardAction(1, i));
      b.push_back(
          transfer(ActionKind::SendBackward, i, 0, dy1 + i * kActivationBytes));
    }
  }

  Program p;
  int64_t m;
  int last;
  LayerPlaces layers[2];
  int64_t x, target, lossPairs, y0, y1, z, dy0, dy1, dz;
};

} // namespace

const RotaTask lineTasks[] = {forward, loss, backward};
const RotaKernel lineKernels[] = {update, square, scaleRow};

Program makeLine(int ranks, int64_t microbatches) {
  return Builder(ranks, microbatches).build();
}

Executable makeLineExecutable(const Program &program) {
  return {&program, lineTasks, lineKernels};
}

LineReference readLine(const Machine &machine) {
  LineReference line;
  auto read = [&](int rank, int64_t offset) {
    const float *values = machine.at<float>(rank, offset);
    return std::vector<double>(values, values + kEmbed);
  };
  int last = machine.ranks() - 1;
  const std::vector<Update> &first = machine.program().stages[0].updates;
  line.w0 = read(0, first[0].master);
  line.w1 = read(
      last, (last ? machine.program().stages[1].updates[0] : first[1]).master);
  line.b = read(0, first.back().master);
  line.dw0 = line.dw1 = line.db = std::vector<double>(kEmbed, 0.0);
  return line;
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
