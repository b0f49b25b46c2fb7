// SPDX-License-Identifier: Apache-2.0
//
// The description of a compiled program: parameters, memory plan and timelines.
// The compiler writes it into the trainer in a binary form; the runtime reads
// it. This header and Program.cpp are the only place where that form is known.
//
// All offsets are bytes into the rank's arena; -1 means "none".
#ifndef ROTA_RUNTIME_PROGRAM_PROGRAM_H
#define ROTA_RUNTIME_PROGRAM_PROGRAM_H

#include "runtime/Abi.h"
#include "runtime/program/Action.h"
#include "runtime/program/DeviceKind.h"
#include "runtime/program/JoinedTensor.h"
#include <array>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

enum class ElementType { F32, BF16, I32 };

/// Number of pointers in RotaFrame, in the order of its fields.
inline constexpr int kFrameFields = sizeof(RotaFrame) / sizeof(void *);

/// One axis of the device mesh. The ranks of a run are numbered row-major over
/// Program::mesh, whose first axis changes slowest. All ranks with one
/// coordinate on the axis `stage` run the same Stage.
struct MeshAxis {
  std::string name;
  int64_t size = 1;
};

/// The division of a tensor: for each dimension the mesh axes (indices in
/// Program::mesh, major first) that split it. With n parts, part i of a
/// dimension of size d holds elements [i*p, min(d, (i+1)*p)) with p =
/// ceil(d/n); memory has room for p everywhere, zero where there is no element.
using Division = std::vector<std::vector<int>>;

/// A transfer among the ranks that differ along `axes` only, its group, ordered
/// by their coordinates with the first of `axes` slowest. Without axes the
/// group is the rank alone, and the collective a copy or an addition.
///
/// The whole tensor is seen as [outer, size, inner] elements, row-major; its
/// part i is [outer, p, inner] with p = ceil(size / ranks of the group).
struct Collective {
  enum class Kind {
    AllGather,     // part -> whole
    ReduceScatter, // whole -> part of the sum
    AllReduce,     // whole -> sum or maximum; outer = inner = 1
    AllToAll,      // see `split`
    Slice,         // whole -> own part; nothing travels
    Permute,       // see `order`; outer = inner = 1
  };
  Kind kind = Kind::AllGather;
  std::vector<int> axes;
  ElementType type = ElementType::F32;
  int64_t outer = 1, size = 1, inner = 1;
  // AllToAll: the output's [outer, size, inner] is gathered from the group
  // while the input's [splitOuter, splitSize, splitInner] is cut: member i
  // sends part j of its input to member j as part i of the output there. The
  // group's ranks divide both sizes.
  int64_t splitOuter = 1, splitSize = 1, splitInner = 1;
  // Permute: the same axes in another order. The member with coordinates x
  // (along `axes`) gives its tensor to the member whose position, counted with
  // `order` major first, is the position of x counted with `axes`, plus `shift`
  // modulo the members. If it is mirrored, the position of x is counted from
  // the end: n - 1 - p of n.
  std::vector<int> order;
  int64_t shift = 0;     // Permute
  bool mirrored = false; // Permute
  bool maximum = false;  // AllReduce
  // ReduceScatter: adds to the destination instead of overwriting it.
  bool accumulate = false;
  std::string reason; // for people: "gathers 'self_attn.q_proj.weight'"
  bool operator==(const Collective &) const = default;
};

/// The first value of a parameter when no weights file has it.
struct Initializer {
  enum class Kind { Normal, Uniform, Constant } kind = Kind::Constant;
  double mean = 0.0;  // Normal: mean; Uniform: low; Constant: the value
  double scale = 0.0; // Normal: standard deviation; Uniform: high
};

/// A tensor that the optimizer keeps beside a parameter, of the shape of the
/// optimizer's part.
struct State {
  std::string name; // "first_moment"
  ElementType type = ElementType::F32;
  double initial = 0.0; // value of each element before the first step
  int64_t offset = 0;   // bytes, in the block of the parameter's states
};

/// A number that updates read: f32, computed for each step in f64, times
/// `factor`. x is the value of the option.
struct Scalar {
  enum class Kind {
    LearningRate,
    GradientScale, // factor of gradients: clipping, and 1 / weight of the loss
    Option,        // x
    Complement,    // 1 - x
    Correction,    // 1 - x^t in update t = 1, 2, ...
    Skip,          // 1 where the step updates nothing, else 0
  } kind = Kind::LearningRate;
  std::string option;  // in Program::options; empty where there is none
  double factor = 1.0; // other than 1 for LearningRate and Option alone
  bool operator==(const Scalar &) const = default;

  bool isOfOption() const {
    return kind == Kind::Option || kind == Kind::Complement ||
           kind == Kind::Correction;
  }
};

/// A number that the user may give to the trainer: `--beta1 0.9`.
struct ProgramOption {
  std::string name, help;
  double value = 0.0; // by default
  double least = 0.0, most = 0.0;
};
/// The largest Program::accumulationSteps.
inline constexpr int64_t kMostAccumulationSteps = 1 << 20;
/// ProgramOption::most where any number will do.
inline constexpr double kUnbounded = 1e300;

/// A logical parameter. In a layer stack one entry stands for all layers. The
/// name may have placeholders: see runtime/program/TensorNames.h.
struct Parameter {
  std::string name;            // "model.layers.{layer}.self_attn.q_proj.weight"
  std::vector<int64_t> shape;  // shape of one layer's whole tensor; row-major
  std::vector<int64_t> layers; // that have it; empty: not in a stack
  JoinedTensor joined;
  Initializer init;
  bool isFrozen = false; // has no gradient, no states and no update
  ElementType compute = ElementType::F32;  // type in tasks; master: masterType
  ElementType gradient = ElementType::F32; // type of its accumulators
  // The divisions of the tensor that tasks see, of the stored one, and of
  // master copy, states and summed gradient. Each is the one before, divided
  // further along at most one dimension.
  Division computeDivision, storageDivision, optimizerDivision;
  // Numbers in Program::collectives; -1 or empty: nothing is to be done.
  int unshard = -1;    // storage -> compute, of type `compute`
  int reduceGrad = -1; // gradient, compute -> storage, added to it
  // Gradient, storage -> optimizer, one after the other: all-reduces, in place,
  // and last at most one reduce-scatter, or slice where the gradient is the
  // same along axes that the optimizer adds. In place (UpdatePlaces.h), a
  // reduce-scatter may be over the major ones of these axes alone, and nothing
  // is sliced: the rank's part is a part of what it has.
  std::vector<int> reduce;
  int refresh = -1; // optimizer -> storage, of type `compute`
  // States of each of its tensors, and the bytes of all of them together.
  std::vector<State> states;
  int64_t stateBytes = 0;
  // Tasks on the optimizer's part, with RotaFrame's `gradients` at the summed
  // gradient. The update works in place: `parameters` is the master,
  // `residuals` the states, `data` the scalars of the step, `output` the copy
  // of type `compute` where that is not f32; it zeroes the gradient. The other
  // one writes the sum of squares of each of the gradient's `rows`, f32, to
  // `output`.
  int updateTask = -1, squareTask = -1;
  int64_t rows = 0;
};

/// Elements of one layer's whole tensor.
int64_t elementCount(const Parameter &parameter);

/// An address in the arena of the ranks of a stage.
struct ArenaAddress {
  int stage = 0;
  int64_t offset = 0;
};

/// One parameter tensor that a stage owns: its ranks initialize and update it,
/// each its part. A step's end, with the collectives of the parameter (`reduce`
/// and `refresh` but for what SUM_GRAD has done and REFRESH will do):
///   the sum of `gradients`, in order       -> gradients[0]
///   `reduce`                               -> gradient
///   update task on the optimizer's part    -> master, states, updated
///   `refresh` of updated                   -> stored
///   stored                                 -> copies
/// and all of `gradients` are zero for the next step.
struct Update {
  int parameter = 0;
  int64_t layer = -1;  // -1: not in a stack
  int64_t master = -1; // masterType (State.h), optimizer division
  // The master rounded to `compute` by the update task, in the optimizer
  // division. Equals master where that type is f32, and else stored where there
  // is no refresh, or where that is in place: updatedPlace.
  int64_t updated = -1;
  int64_t stored = -1; // type `compute`, storage division
  int64_t states = -1; // Parameter::stateBytes
  // Optimizer division; gradients[0] where no reduce-scatter or slice makes it,
  // or where that is in place: gradientPlace.
  int64_t gradient = -1;
  // Gradient accumulators (storage division) in the fixed order in which
  // they are summed; the first is on this stage and receives the sum. More than
  // one: a parameter used in several places (a tied embedding). Those of other
  // stages are on the ranks with the same other coordinates. None if frozen.
  std::vector<ArenaAddress> gradients;
  // Further stored copies, on other stages, refreshed after init and update.
  std::vector<ArenaAddress> copies;
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

/// An offset that depends on the action: `offset` plus `stride` times the
/// action's microbatch, and where there is a slot, plus the offset that the
/// action has in that slot. Without a slot and with the offset -1: none.
struct SlotAddress {
  int slot = -1;
  int64_t offset = -1;
  int64_t stride = 0;

  SlotAddress() = default;
  SlotAddress(int64_t offset) : offset(offset) {} // the same for all actions
  SlotAddress(int slot, int64_t offset) : slot(slot), offset(offset) {}
  bool isNone() const { return slot < 0 && offset < 0; }
  bool operator==(const SlotAddress &) const = default;
};

/// The offset that `address` stands for; -1: none.
inline int64_t resolve(const SlotAddress &address,
                       std::span<const int64_t> slots, int microbatch) {
  int64_t base = 0;
  if (address.slot >= 0)
    base = slots[static_cast<size_t>(address.slot)];
  if (base < 0 || address.isNone())
    return -1;
  return base + address.offset + address.stride * microbatch;
}

/// One call of a task: the address of each field of RotaFrame, in order.
struct Call {
  int task = 0;
  std::array<SlotAddress, kFrameFields> frame;
  int64_t layer = -1; // whose task it is, for messages; -1: of none
  bool operator==(const Call &) const = default;
};

/// The call's frame in one action: offsets in the order of RotaFrame.
using FrameOffsets = std::array<int64_t, kFrameFields>;
FrameOffsets frameOf(const Call &call, std::span<const int64_t> slots,
                     int microbatch);

/// A block of the constants region, filled at start: one i32, `start` plus
/// `factor` times the position along `axes` (the first slowest) that is `shift`
/// after the rank's, with the first position after the last. Compiled code
/// reads the first row of its part of a divided dimension there, or the number
/// of a block.
struct ShardOffset {
  int64_t offset = 0;
  std::vector<int> axes;
  int64_t factor = 1, shift = 0, start = 0;
};

/// A constant tensor of the program's functions, which the runtime writes at
/// start.
struct ConstantTensor {
  int64_t offset = 0; // from the start of the constants region of each stage
  std::string bytes;
  bool operator==(const ConstantTensor &) const = default;
};

/// A loss of layers beside the main one. A step's loss has `coefficient` times
/// the sum of its sums over its weights, those of all microbatches. Their
/// cotangent is coefficient * W / w, with the weights W of the main loss and w
/// of this one in the step, since gradients are divided by W at the end.
struct AuxiliaryLoss {
  std::string name;
  double coefficient = 0.0;
  double weight = 0.0; // weight of all layers in one microbatch
};

/// A sum that the loss function makes beside the main one. The loss of a step
/// has `coefficient` times the total of these sums, divided by the weight.
struct LossTerm {
  std::string name;
  double coefficient = 0.0;
};

/// The place of the sums of a layer's auxiliary losses, which forward writes:
/// f32 [microbatches, losses]. Where several stages have the layer, each writes
/// those of its microbatches; the rest stays zero.
struct AuxiliarySums {
  int64_t layer = 0;
  int64_t offset = 0;
  std::vector<int> losses; // in Program::auxiliaryLosses, one for each sum
};

/// Counts of layers' forward, for reports: a table of i32 [rows, columns] for
/// each microbatch. A sequence has `parts` rows, one for each equal part of its
/// tokens, and a rank those of its sequences or parts. The columns of a layer
/// are added over rows, microbatches and ranks. Where the observation
/// `isAveraged`, tasks of the layer read the mean of these sums over the step's
/// microbatches, f32 [columns], which the runtime writes before the step after
/// the table of each microbatch.
struct Observation {
  std::string name;
  int64_t rows = 0, columns = 0;
  int64_t parts = 1;
  int64_t each = 0; // sum of a row if nothing is dropped; 0: unknown
  bool isAveraged = false;
  bool operator==(const Observation &) const = default;
  /// The offset of the mean after its table; both begin where a block of an
  /// arena may.
  int64_t meanOffset() const { return (4 * rows * columns + 63) / 64 * 64; }
  /// Bytes for a microbatch, with padding.
  int64_t bytes() const {
    return meanOffset() + (isAveraged ? (4 * columns + 63) / 64 * 64 : 0);
  }
};

/// The place of a layer's tables, which forward writes: those of a microbatch
/// one after the other, each with its mean where it has one. As with
/// AuxiliarySums, what a stage does not write stays zero.
struct ObservedTables {
  int64_t layer = 0;
  int64_t offset = 0;
  std::vector<int> observations; // in Program::observations
};

/// A choice of the user on which the losses depend, and which neither the
/// configuration nor the parameters show: "expert-capacity", "1.25".
struct ModelOption {
  std::string name, value;
};

/// Bytes that an action moves by itself.
struct Transfer {
  int collective = -1; // UNSHARD, REDUCE_GRAD: in Program::collectives
  SlotAddress source, destination;
  int64_t bytes = 0; // OFFLOAD, FETCH: of this copy
};

/// Bytes that an action sets to zero before its calls.
struct Clear {
  int64_t offset = -1, bytes = 0;
};

/// The common part of all actions of one kind and chunk. Its addresses refer to
/// `slotCount` offsets, the places of activations, which each action has of its
/// own. So the calls of a chunk stand once for all its microbatches.
///
/// A compute action clears its places and runs its calls in order. A send
/// starts handing `bytes` at `message` to the rank of stage `peer` with the
/// same other coordinates; a receive posts the place at `message` for the
/// matching send of `peer`. Sends and receives of one direction (rank, peer;
/// forward or backward) match in order; neither ever blocks. A transfer starts
/// its collectives in order (UNSHARD gathers weights, REDUCE_GRAD adds a
/// gradient to the stored part) or its copies (OFFLOAD from the arena to the
/// host arena, FETCH back); transfers of one kind follow each other. RESHARD
/// does nothing.
struct ActionTemplate {
  ActionKind kind = ActionKind::Forward;
  int chunk = 0;
  /// The action and the next compute action are a pair: the calls
  /// of both may run at the same time. They share no bytes that either writes,
  /// and the first waits for all that either needs.
  bool startsPair = false;
  int peer = -1; // a stage
  SlotAddress message;
  int64_t bytes = 0; // size of the message
  // Seconds of its calls, message or transfers on the assumed machine, and the
  // share of its rank's speed that transfers take; 0 where not known.
  double estimate = 0.0, slowsWork = 0.0;
  int slotCount = 0;
  std::vector<Transfer> transfers;
  // Numbers in Stage::updates, for which SUM_GRAD starts Parameter::reduce
  // number `round`, and REFRESH Parameter::refresh.
  std::vector<int> updates;
  int round = 0;
  std::vector<Clear> clears;   // training only
  std::vector<Call> calls;     // training
  std::vector<Call> evalCalls; // validation: the loss value's; then of logits
};

/// One entry of a stage's timeline. Its slots and waits are ranges of the
/// stage's lists.
///
/// Its waits are the earlier asynchronous actions of the stage, by number, that
/// must have completed before the action starts: those whose bytes it reads or
/// overwrites, or, where it is asynchronous itself, that still use its bytes.
/// An evaluation walks the same actions and waits for the same ones, but
/// SEND_B, RECV_B, REDUCE_GRAD, SUM_GRAD, OFFLOAD and FETCH do nothing in it
/// and count as complete; as SUM_GRAD before the last accumulation step, and
/// REFRESH where nothing was updated.
struct PlannedAction {
  int templateNumber = 0; // in Stage::templates
  int microbatch = 0;
  int firstSlot = 0;
  int firstWait = 0, waitCount = 0;
};

/// Offsets for the tasks of a step's end. The first three lie in the scratch of
/// other tasks.
struct StepOffsets {
  int64_t scalars = -1; // f32, those of Program::scalars
  int64_t squares = -1; // f32, the rows of each update: squarePlaces
  int64_t scratch = -1;
  int64_t constants = -1;
};

/// A named part of a rank's arena, for reports: "parameters", "compute copies",
/// "gradients", "optimizer", "constants", "data", "scratch", "pair scratch" (of
/// the forward half of pairs), "windows" (gathered weights, and gradients until
/// REDUCE_GRAD), "activations"; "offloaded" in the host arena.
struct Region {
  std::string use;
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// The memory and the timeline of every rank of one pipeline stage.
struct Stage {
  int64_t arenaBytes = 0;
  int64_t hostBytes = 0; // size of the host arena; 0: there is none
  std::vector<Region> regions;
  std::vector<Region> hostRegions;
  std::vector<RotaryTable> tables;
  std::vector<ShardOffset> shardOffsets;
  std::vector<Update> updates;
  StepOffsets step;
  std::vector<ActionTemplate> templates;
  std::vector<PlannedAction> actions; // the timeline
  std::vector<int64_t> slots;         // slots by action
  std::vector<int> waits;             // waits by action
  // The places of the microbatches' data and losses; -1: this stage has none.
  // Microbatch i is at the offset plus i times the bytes of one rank's part.
  // Stages with the loss write that of their microbatches; the rest stays zero.
  int64_t inputData = -1, targetData = -1, positionData = -1;
  int64_t loss = -1;   // [microbatches, lossCalls, lossNumbers] f32
  int64_t logits = -1; // [microbatches] blocks, or where it `samples` one block
  std::vector<AuxiliarySums> auxiliarySums;
  std::vector<ObservedTables> observedTables;
  // f32, one for each auxiliary loss, which the runtime fills when it knows the
  // main loss's weight: before a training step `startCalls`, without slots,
  // write that of each of `startMicrobatches`.
  int64_t auxiliaryCotangents = -1;
  std::vector<Call> startCalls;
  std::vector<int> startMicrobatches;

  /// Appends an action of the template `templateNumber` and returns its number.
  int addAction(int templateNumber, int microbatch,
                std::span<const int64_t> slots, std::span<const int> waits);
  /// Appends an action with a template of its own.
  int addAction(ActionTemplate actionTemplate, int microbatch,
                std::span<const int> waits = {});

  const ActionTemplate &templateOf(int action) const {
    return templates[actions[action].templateNumber];
  }
  ActionKind kindOf(int action) const { return templateOf(action).kind; }
  std::span<const int64_t> slotsOf(int action) const {
    return {slots.data() + actions[action].firstSlot,
            static_cast<size_t>(templateOf(action).slotCount)};
  }
  std::span<const int> waitsOf(int action) const {
    return {waits.data() + actions[action].firstWait,
            static_cast<size_t>(actions[action].waitCount)};
  }
  /// The number of actions of each template.
  std::vector<int64_t> countActions() const;
  /// The offset of an address in the action's template; -1: none.
  int64_t resolve(int action, const SlotAddress &address) const {
    return rota::resolve(address, slotsOf(action), actions[action].microbatch);
  }
  /// The frame of a call in the action's template.
  FrameOffsets frameOf(int action, const Call &call) const {
    return rota::frameOf(call, slotsOf(action), actions[action].microbatch);
  }
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

/// The shape of one rank's part, the largest where they differ.
std::vector<int64_t> partShape(const std::vector<int64_t> &shape,
                               const Division &division,
                               const std::vector<MeshAxis> &mesh);
/// Elements of that shape.
int64_t partElements(const std::vector<int64_t> &shape,
                     const Division &division,
                     const std::vector<MeshAxis> &mesh);

/// Number of ranks along these axes.
int64_t groupSize(const std::vector<MeshAxis> &mesh,
                  const std::vector<int> &axes);
/// Number of all ranks.
int64_t rankCount(const Program &program);

/// Bytes of one element.
int64_t byteSize(ElementType type);

/// The program as bytes, and back. Reading never trusts the bytes: it returns
/// false and says in `error` what is wrong and where. What it accepts is a
/// program whose numbers may still be out of bounds; see Verify.h.
std::string toBytes(const Program &program);
bool fromBytes(std::string_view bytes, Program &program, std::string &error);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_PROGRAM_H
