// SPDX-License-Identifier: Apache-2.0
//
// Layouts of made-up models.
#include "test/lowering/memory/MadeLayouts.h"

using namespace rota::memory;

namespace rota::test {
namespace {

constexpr int kData = 0, kFsdp = 2, kTensor = 3; // axes of the mesh

int add(Collective::Kind kind, ElementType type, std::vector<int> axes,
        const std::vector<int64_t> &whole, Program &program) {
  Collective c;
  c.kind = kind;
  c.type = type;
  c.axes = std::move(axes);
  c.size = whole[0];
  c.inner = whole[1];
  program.collectives.push_back(c);
  return int(program.collectives.size()) - 1;
}

/// Columns over tensor; rows, if `stored`, over fsdp and then over data.
void divide(Parameter &p, const LayoutOptions &options, bool stored,
            Program &program) {
  using Kind = Collective::Kind;
  stored &= options.windows;
  std::vector<int> rows;
  auto division = [&] { return Division{rows, {kTensor}}; };
  p.computeDivision = division();
  std::vector<int64_t> part = partShape(p.shape, division(), program.mesh);
  if (stored)
    rows.push_back(kFsdp);
  if (options.windows)
    p.unshard = add(Kind::AllGather, p.compute, rows, part, program);
  if (options.windows && !p.isFrozen) {
    p.reduceGrad =
        add(Kind::ReduceScatter, ElementType::F32, rows, part, program);
    program.collectives.back().accumulate = true;
  }
  p.storageDivision = division();
  part = partShape(p.shape, division(), program.mesh);
  if (options.zero && !p.isFrozen) {
    rows.push_back(kData);
    p.reduce = {
        add(Kind::ReduceScatter, ElementType::F32, {kData}, part, program)};
    p.refresh = add(Kind::AllGather, p.compute, {kData}, part, program);
  }
  p.optimizerDivision = division();
}

/// Tasks of the optimizer, with two states.
void addUpdate(Parameter &p, const Program &program) {
  p.rows = 1;
  if (p.isFrozen)
    return;
  int64_t bytes =
      alignUp(4 * partElements(p.shape, p.optimizerDivision, program.mesh));
  p.states = {{"first", ElementType::F32, 0.0, 0},
              {"second", ElementType::F32, 0.0, bytes}};
  p.stateBytes = 2 * bytes;
  p.updateTask = p.squareTask = 0;
}

/// Tokens, targets and constants.
void addData(ModelLayout &layout, bool isDivided) {
  layout.program.input = {ElementType::I32, {6, 9}};
  layout.program.target = {ElementType::I32, {6, 9}};
  if (isDivided)
    layout.program.input.division =
        layout.program.target.division = {{kData}, {}};
  layout.tables = {{0, 7, 1.0, {1.0, 0.1}}};
  layout.shardOffsets = {{128, {}, 5}};
  layout.program.constantTensors = {{192, "bytes"}};
  layout.constantBytes = alignUp(7 * 2 * 8) + 2 * kAlignment;
}

void addAuxiliaryLosses(ModelLayout &layout, int lossWeight) {
  layout.program.auxiliaryLosses = {{"a", 0.5, 3.0}, {"b", -1.0, 2.0}};
  layout.kinds[0].auxiliaryLosses = {1, 0};
  layout.program.observations = {{"load", 6, 3, 1, 0, /*isAveraged=*/true},
                                 {"other", 3, 7, 1, 10}};
  layout.kinds[0].observations = {1, 0};
  layout.lossWeight = lossWeight;
  layout.auxiliaryCotangents = layout.constantBytes;
  layout.constantBytes += kAlignment;
}

void addLossBlocks(ModelLayout &layout) {
  constexpr int64_t blocks = 3; // divides the length
  layout.program.lossCalls = blocks;
  layout.program.lossTerms = {{"z", 0.5}};
  layout.loss.cotangentBytes = 0;
  layout.activationBytes *= blocks;
}

/// Two of data and tensor, and of fsdp for windows.
std::vector<MeshAxis> makeMesh(const LayoutOptions &options) {
  if (options.stages <= 0)
    return {};
  return {{"data", 2},
          {"stage", options.stages},
          {"fsdp", options.windows ? 2 : 1},
          {"tensor", 2}};
}

void addLogits(ModelLayout &layout, int task, bool samples) {
  layout.logits = task;
  layout.program.samples = samples;
  layout.program.logits = {ElementType::F32,
                           {6, 9 / layout.program.lossCalls, 5},
                           layout.program.target.division};
}

} // namespace

ModelLayout makeLayout(const LayoutOptions &options, std::mt19937 &random) {
  ModelLayout layout;
  bool split = options.split;
  auto bytes = [&] { return int64_t(random() % options.sizes + 1); };
  auto task = [&] {
    layout.scratchBytes.push_back(bytes());
    layout.program.tasks.push_back("task");
    return int(layout.scratchBytes.size()) - 1;
  };
  auto parameter = [&](bool bf16) {
    Parameter p;
    p.name = "p" + std::to_string(layout.program.parameters.size());
    p.shape = {bytes(), 2 * bytes()};
    p.compute = bf16 ? ElementType::BF16 : ElementType::F32;
    p.isFrozen = options.frozen && random() % 2 != 0;
    if (options.stages > 0)
      divide(p, options, random() % 4 != 0, layout.program);
    addUpdate(p, layout.program);
    layout.program.parameters.push_back(p);
    return int(layout.program.parameters.size()) - 1;
  };
  auto pack = [&](const std::vector<int> &parameters) {
    ParameterBlock block;
    Packer values, gradients;
    for (int number : parameters) {
      const Parameter &p = layout.program.parameters[number];
      int64_t count =
          partElements(p.shape, p.computeDivision, layout.program.mesh);
      int64_t value = values.add(byteSize(p.compute) * count);
      block.entries.push_back(
          {number, value, p.isFrozen ? -1 : gradients.add(4 * count)});
    }
    block.bytes = values.bytes();
    block.gradientBytes = gradients.bytes();
    return block;
  };
  auto fill = [&](TaskGroup &group) {
    group.forward = task();
    if (!split) {
      group.backward = task();
    } else {
      group.backwardInput = task();
      group.backwardWeight = task();
      group.cotangentBytes = bytes();
    }
    group.residualBytes = bytes();
    if (options.offload) {
      group.offloadsInput = options.offloadInputs && random() % 2;
      group.offloadedBytes = bytes();
    }
  };
  layout.program.kernels = {"kernel"};
  layout.program.mesh = makeMesh(options);
  bool bf16 = random() % 2;
  layout.kinds.resize(2);
  for (TaskGroup &kind : layout.kinds) {
    fill(kind);
    kind.block = pack({parameter(bf16), parameter(false)});
  }
  int tied = parameter(bf16), embedOnly = parameter(false),
      lossOnly = parameter(bf16);
  layout.embed.forward = task();
  layout.embed.backward = task();
  fill(layout.loss);
  layout.embed.block = pack({embedOnly, tied});
  layout.loss.block = pack({tied, lossOnly});
  layout.tiedBytes = pack({tied}).bytes;
  layout.activationBytes = bytes();
  addData(layout, options.stages > 0);
  if (options.auxiliary)
    addAuxiliaryLosses(layout, task());
  if (options.blocks)
    addLossBlocks(layout);
  if (options.logits)
    addLogits(layout, task(), options.samples);
  return layout;
}

ChunkTable makeChunks(const pipe::Shape &shape, int layers) {
  ChunkTable chunks(shape.chunks());
  int64_t layer = 0;
  for (auto &chunk : chunks)
    for (int j = 0; j < std::max(1, layers); ++j, ++layer)
      chunk.push_back({int(layer % 2), layer});
  if (layers == 0 && chunks.size() > 1) {
    chunks.front().clear();
    chunks.back().clear();
  }
  return chunks;
}

} // namespace rota::test
