// SPDX-License-Identifier: Apache-2.0
//
// The description of a compiled program: parameters, memory plan and timelines.
// The compiler writes it as JSON into the trainer; the runtime reads it. This
// header and Program.cpp are the only place where its form is known.
//
// All offsets are bytes into the rank's arena; -1 means "none".
#ifndef ROTA_RUNTIME_PROGRAM_PROGRAM_H
#define ROTA_RUNTIME_PROGRAM_PROGRAM_H

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

enum class ElementType { F32, BF16, I32 };

/// Number of pointers in RotaFrame, in the order of its fields.
inline constexpr int kFrameFields = 12;

/// How a parameter gets its first value when no weights file gives it.
struct Initializer {
  enum class Kind { Normal, Uniform, Constant } kind = Kind::Constant;
  double mean = 0.0;  // Normal: mean; Uniform: low; Constant: the value
  double scale = 0.0; // Normal: standard deviation; Uniform: high
};

/// A logical parameter. In a layer stack one entry stands for all layers: its
/// name holds "{layer}" where the layer's number goes.
struct Parameter {
  std::string name;           // "model.layers.{layer}.self_attn.q_proj.weight"
  std::vector<int64_t> shape; // of one layer's tensor; row-major
  std::vector<int64_t>
      layers; // layer numbers that have it; empty: not in a stack
  Initializer init;
  ElementType compute = ElementType::F32; // what tasks read; the master is f32
  bool decay = true; // weight decay applies (two or more dimensions)
  int64_t rows = 0;  // of the kernels below; columns are rows' rest
  // Kernel update(master, gradient, firstMoment, secondMoment, then scalars,
  // each a pointer to one f32: learningRate, beta1, beta2, epsilon,
  // weightDecay, correction1 = 1 - beta1^t, correction2 = 1 - beta2^t,
  // gradientScale; then the results master, firstMoment, secondMoment, gradient
  // (zeroed) and, when compute is BF16, the compute copy). Results alias their
  // operands.
  int updateKernel = -1;
  // Kernel square(gradient, result [rows] f32): each row's sum of squares.
  int squareKernel = -1;
};

/// Elements of one layer's tensor.
int64_t elementCount(const Parameter &parameter);

/// A place in some rank's arena.
struct Place {
  int rank = 0;
  int64_t offset = 0;
};

/// One parameter tensor that a rank owns: it initializes and updates it.
struct Update {
  int parameter = 0;
  int64_t layer = -1;   // -1: not in a stack
  int64_t master = -1;  // f32
  int64_t compute = -1; // compute copy on this rank; -1: it is the master
  int64_t firstMoment = -1, secondMoment = -1; // f32
  // Gradient accumulators in the fixed order in which they are summed; the
  // first is on this rank and receives the sum. More than one: a parameter used
  // in several places (a tied embedding).
  std::vector<Place> gradients;
  // Further compute copies (on other ranks) refreshed after init and update.
  std::vector<Place> copies;
};

/// A block of the constants region that the runtime fills at start.
/// rotary: f32 [positions, frequencies, 2]: cos and sin of
/// position * frequency, computed in f64, times `scale`.
struct RotaryTable {
  int64_t offset = 0;
  int64_t positions = 0;
  double scale = 1.0;
  std::vector<double> frequencies;
};

/// One call of a task with its frame: offsets in the order of RotaFrame.
struct Call {
  int task = 0;
  int64_t frame[kFrameFields];
};

/// Action kinds, in the numbering of ir/pipe/Timeline.h.
enum class ActionKind : int {
  Forward = 0,        // F
  Backward = 1,       // B
  BackwardInput = 2,  // I
  BackwardWeight = 3, // W
  SendForward = 4,
  RecvForward = 5,
  SendBackward = 6,
  RecvBackward = 7,
  Unshard = 8,
  Reshard = 9,
  ReduceGrad = 10,
};

bool isSend(ActionKind kind);
bool isReceive(ActionKind kind);
/// Every kind that is neither a send nor a receive: it runs its calls.
bool isCompute(ActionKind kind);
/// The kind's name in a timeline's text form: "F", "SEND_B".
const char *toString(ActionKind kind);

/// One entry of a rank's timeline. A compute action runs its calls in order. A
/// send starts handing `bytes` at `offset` to `peer`; a receive posts the place
/// at `offset` for the matching send of `peer`. Sends and receives of one
/// direction (rank, peer; forward or backward) match in order; neither ever
/// blocks. `waits` names the earlier sends and receives of this rank, as
/// indices into its actions, that must have completed before the action starts:
/// those whose place it reads (receives) or overwrites (sends). A receive may
/// have `waits` too, when its place was the source of an earlier send.
struct Action {
  ActionKind kind = ActionKind::Forward;
  int chunk = 0;
  int microbatch = 0;
  int peer = -1;
  int64_t offset = -1;
  int64_t bytes = 0;
  std::vector<int> waits;  // indices of earlier receives or sends of this rank
  std::vector<Call> calls; // training
  std::vector<Call> evalCalls; // validation: only what the loss value needs
};

/// A named part of a rank's arena, for reports: "parameters", "compute copies",
/// "gradients", "optimizer", "activations", "scratch", "constants", "data".
struct Region {
  std::string use;
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct Rank {
  int64_t arenaBytes = 0;
  std::vector<Region> regions;
  std::vector<RotaryTable> tables;
  std::vector<Update> updates;
  std::vector<Action> actions;
  // Where each microbatch's data and loss live; -1 where this rank has none.
  // Microbatch i is at the offset plus i times the bytes of one.
  int64_t inputData = -1, targetData = -1;
  int64_t loss = -1;   // [microbatches, 2] f32
  int64_t logits = -1; // [microbatches] blocks, only when asked for
};

/// Form of one microbatch of model inputs or targets, or of the logits.
struct DataForm {
  ElementType type = ElementType::I32; // I32: tokens
  std::vector<int64_t> shape;          // [sequences, sequence, ...]
  int64_t elements() const;            // 0 when the shape is empty
  int64_t bytes() const;
};

struct Program {
  std::string model;    // for people
  std::string schedule; // for people: its name or file
  std::string timeline; // for people: the printed grid
  std::string plan;     // for people: the memory plan and costs
  double bubble = 0.0;  // theoretical bubble share of the timeline
  int64_t microbatches = 1;
  int64_t vocabulary = 0;     // 0: inputs are not tokens
  DataForm input, target;     // of one microbatch
  DataForm logits;            // of one microbatch; empty shape: not compiled in
  int64_t parameterCount = 0; // tied parameters once
  double flopsPerToken = 0.0; // forward and backward, without recomputation
  std::vector<Parameter> parameters;
  std::vector<Rank> ranks;
  std::vector<std::string> tasks, kernels; // symbol names, for traces
  // For each kernel, bytes that one row reads and writes, for profiles; empty
  // where unknown.
  std::vector<int64_t> kernelRowBytes;
};

/// Bytes of one element.
int64_t byteSize(ElementType type);

/// The program as JSON text, and back. Reading returns false and says in
/// `error` what is wrong and where.
std::string toJson(const Program &program);
bool fromJson(const char *text, int64_t size, Program &program,
              std::string &error);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_PROGRAM_H
