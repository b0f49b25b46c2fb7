// SPDX-License-Identifier: Apache-2.0
//
// The description of a compiled program: parameters, memory plan and timelines.
// The compiler writes it into the trainer in a binary form; the runtime reads
// it. This header, those of its parts and ProgramBytes.cpp are the only places
// where that form is known.
#ifndef ROTA_RUNTIME_PROGRAM_PROGRAM_H
#define ROTA_RUNTIME_PROGRAM_PROGRAM_H

#include "runtime/program/Collective.h"
#include "runtime/program/DeviceKind.h"
#include "runtime/program/Stage.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// The largest Program::accumulationSteps.
inline constexpr int64_t kMostAccumulationSteps = 1 << 20;

/// A constant tensor of the program's functions, which the runtime writes at
/// start.
struct ConstantTensor {
  int64_t offset = 0; // from the start of the constants region of each stage
  std::string bytes;
  bool operator==(const ConstantTensor &) const = default;
};

/// A choice of the user on which the losses depend, and which neither the
/// configuration nor the parameters show: "expert-capacity", "1.25".
struct ModelOption {
  std::string name, value;
};

/// Form of one microbatch of model inputs or targets, or of the logits.
struct DataForm {
  ElementType type = ElementType::I32; // I32: tokens
  std::vector<int64_t> shape; // on all ranks: [sequences, sequence, ...]
  Division division{};        // over the ranks; the sizes divide
  int64_t elements() const;   // on all ranks; 0 when the shape is empty
  int64_t bytes() const;
};

struct Program {
  DeviceKind device = DeviceKind::Cpu;
  std::string model;    // for people
  std::string schedule; // for people: its name or file
  std::string timeline; // for people: the printed grid
  std::string plan;     // for people: the memory plan and costs
  std::string config;   // the model's config.json; empty where it has none
  // The options of the optimizer that compiled code has: "optimizer=sgd ...".
  std::string optimizer;
  std::vector<ModelOption> modelOptions; // options not at their default
  // Planned bubble share, by the operations of the chunks: of a step that ends
  // with a barrier, and of a step in the steady state without barriers.
  double bubble = 0.0, steadyBubble = 0.0;
  int64_t microbatches = 1; // microbatches that the timeline runs
  // Timelines of a step before its update, each with its own microbatches.
  int64_t accumulationSteps = 1;
  // Input tokens are below `vocabulary` and targets below `classes`; both are 0
  // where inputs are not tokens.
  int64_t vocabulary = 0, classes = 0;
  DataForm input, target, positions; // for one microbatch
  int64_t documentEnd = -1; // -1: `positions`, in documents, have no shape
  DataForm logits;          // for one call of the loss; empty shape: none
  bool samples = false; // logits are of samples: in no training or validation
  int64_t parameterCount = 0; // tied parameters once
  double flopsPerToken = 0.0; // forward and backward, without recomputation
  std::vector<MeshAxis> mesh; // `stage` is one of them
  // Axes over whose ranks a loss block's sums and weights are added up (`stage`
  // where several stages have it); along the others every rank that has it has
  // the same.
  std::vector<int> lossAxes;
  // Calls of the loss in a microbatch, one after the other: each reads an equal
  // part of the rank's rows of activation and targets.
  int64_t lossCalls = 1;
  std::vector<LossTerm> lossTerms;
  std::vector<AuxiliaryLoss> auxiliaryLosses;
  std::vector<Observation> observations;
  std::vector<ConstantTensor> constantTensors;
  std::vector<Collective> collectives;
  std::vector<Parameter> parameters;
  std::vector<ProgramOption> options;
  std::vector<Scalar> scalars; // scalars that all updates of a step read
  std::vector<Stage> stages;
  std::vector<std::string> tasks, kernels; // symbol names, for traces
  // For each kernel, bytes that one row reads and writes, for profiles; empty
  // where unknown.
  std::vector<int64_t> kernelRowBytes;

  /// Microbatches of a step, one accumulation step after another.
  int64_t stepMicrobatches() const { return accumulationSteps * microbatches; }
  /// Sequences of an accumulation step; sequences of a step.
  int64_t timelineSequences() const { return microbatches * input.shape[0]; }
  int64_t stepSequences() const {
    return accumulationSteps * timelineSequences();
  }
};

/// f32 numbers that a call of the loss writes: sum, weight, each term's sum.
inline int64_t lossNumbers(const Program &program) {
  return 2 + static_cast<int64_t>(program.lossTerms.size());
}

/// Bytes of these numbers of a microbatch.
inline int64_t lossBytes(const Program &program) {
  return 4 * lossNumbers(program) * program.lossCalls;
}

/// Whether tasks read means of observations, which need the forwards of a step
/// once before the step.
bool hasMeans(const Program &program);

/// Bytes of the tables of these observations of a microbatch.
inline int64_t tableBytes(const Program &program,
                          std::span<const int> observations) {
  int64_t bytes = 0;
  for (int observation : observations)
    bytes += program.observations[observation].bytes();
  return bytes;
}

/// Number of all ranks.
int64_t rankCount(const Program &program);

/// The program as bytes, and back. Reading never trusts the bytes: it returns
/// false and says in `error` what is wrong and where. What it accepts is a
/// program whose numbers may still be out of bounds; see Verify.h.
std::string toBytes(const Program &program);
bool fromBytes(std::string_view bytes, Program &program, std::string &error);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_PROGRAM_H
