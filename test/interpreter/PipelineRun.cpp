// SPDX-License-Identifier: Apache-2.0
//
// Timelines, run action by action.
#include "test/interpreter/PipelineRun.h"

#include <deque>
#include <set>

using namespace rota::interpreter;
using llvm::failed;
using llvm::failure;
using llvm::FailureOr;
using llvm::success;
using mlir::pipe::ChunkAttr;
using mlir::rota::Role;
using rota::pipe::Action;
using rota::pipe::ActionKind;
using rota::pipe::Timeline;
using Values = ModelInstance::Values;

namespace {

/// A chunk and a microbatch.
using Key = std::pair<int, int>;

/// The state of one rank.
struct Rank {
  size_t next = 0;                   // its next action
  std::map<Key, Tensor> activations; // that enter a chunk
  std::map<Key, Tensor> cotangents;  // that enter a chunk's backward
  std::map<Key, Tensor> lossInputs;  // that leave the last chunk
  std::map<Key, Tensor> outgoing[2]; // made by a chunk; forward, backward
  std::map<Key, std::vector<Values>> saved; // per layer of the chunk
  std::map<Key, Values> savedOfLoss;
  std::map<Key, std::vector<Values>> offloaded; // parts of `saved`
  std::set<int> gathered;                       // chunks whose weights are here
};

/// From one rank to another, one direction: sends and receives match in order.
struct Channel {
  std::deque<std::pair<Key, Tensor>> sent; // by the chunk that made it
  std::deque<Key> posted;                  // by the chunk that reads it
};

enum Direction { ForwardDirection = 0, BackwardDirection = 1 };

class PipelineRun {
public:
  PipelineRun(mlir::pipe::ProgramOp program, ModelInstance &instance,
              llvm::ArrayRef<Microbatch> microbatches)
      : timelineOp(program.getTimeline()), timeline(timelineOp.read()),
        instance(instance), microbatches(microbatches),
        gathers(hasAny(timeline, ActionKind::Unshard)),
        ranks(timeline.ranks.size()) {
    for (auto chunk : program.getChunks().getChunks().getAsRange<ChunkAttr>())
      chunks.push_back(chunk);
  }

  llvm::LogicalResult run();

private:
  llvm::LogicalResult advance(int rank, bool &moved);
  bool isReady(const Rank &rank, const Action &action) const;
  llvm::LogicalResult execute(int rank, const Action &action);
  llvm::LogicalResult forward(Rank &rank, Key key);
  llvm::LogicalResult backward(Rank &rank, Key key, bool isWhole);
  llvm::LogicalResult backwardWeight(Rank &rank, Key key);
  FailureOr<Tensor> cotangentOf(Rank &rank, Key key, bool isWhole);
  llvm::LogicalResult move(int rank, Key key,
                           std::map<Key, std::vector<Values>> &from,
                           std::map<Key, std::vector<Values>> &to);
  llvm::LogicalResult send(int rank, Key key, Direction direction);
  llvm::LogicalResult post(int rank, Key key, Direction direction);
  llvm::LogicalResult match(Channel &channel, int reader, Direction direction);
  void deliver(Rank &rank, Key maker, Direction direction, Tensor tensor);
  mlir::InFlightDiagnostic fault(int rank);

  /// Takes an entry out of a map; fails when there is none.
  template <typename T>
  FailureOr<T> take(std::map<Key, T> &map, Key key, int rank,
                    const char *what) {
    auto it = map.find(key);
    if (it == map.end())
      return fault(rank) << "no " << what << " here";
    T value = std::move(it->second);
    map.erase(it);
    return value;
  }

  int numberOf(const Rank &rank) const { return &rank - ranks.data(); }

  mlir::pipe::TimelineOp timelineOp;
  Timeline timeline;
  ModelInstance &instance;
  llvm::ArrayRef<Microbatch> microbatches;
  bool gathers; // weights are used in windows only
  std::vector<ChunkAttr> chunks;
  std::vector<Rank> ranks;
  std::map<std::tuple<int, int, Direction>, Channel> channels;
};

} // namespace

/// An error at the timeline about the rank's current action.
mlir::InFlightDiagnostic PipelineRun::fault(int rank) {
  const auto &row = timeline.ranks[rank];
  size_t at = ranks[rank].next;
  return std::move(timelineOp.emitError()
                   << "rank " << rank << ", position " << at << ", "
                   << (at < row.size() ? toString(row[at]) : "the end")
                   << ": ");
}

/// Ranks in turn, each as far as it comes, until all are at their end.
llvm::LogicalResult PipelineRun::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < int(ranks.size()); ++rank)
      if (failed(advance(rank, moved)))
        return failure();
  }
  for (int rank = 0; rank < int(ranks.size()); ++rank) {
    const Rank &state = ranks[rank];
    if (state.next < timeline.ranks[rank].size())
      return fault(rank) << "deadlock";
    if (!state.activations.empty() || !state.cotangents.empty() ||
        !state.saved.empty() || !state.savedOfLoss.empty() ||
        !state.offloaded.empty() || !state.outgoing[0].empty() ||
        !state.outgoing[1].empty())
      return fault(rank) << "values are left that nothing has read";
  }
  return success();
}

llvm::LogicalResult PipelineRun::advance(int rank, bool &moved) {
  Rank &state = ranks[rank];
  const auto &row = timeline.ranks[rank];
  while (state.next < row.size() && isReady(state, row[state.next])) {
    if (failed(execute(rank, row[state.next])))
      return failure();
    ++state.next;
    moved = true;
  }
  return success();
}

/// Only a compute action whose message has not come waits.
bool PipelineRun::isReady(const Rank &rank, const Action &action) const {
  Key key{action.chunk, action.microbatch};
  int last = chunks.size() - 1;
  if (action.kind == ActionKind::Forward)
    return action.chunk == 0 || rank.activations.count(key);
  if (action.kind == ActionKind::Backward ||
      action.kind == ActionKind::BackwardInput)
    return action.chunk == last || rank.cotangents.count(key);
  return true;
}

llvm::LogicalResult PipelineRun::execute(int rank, const Action &action) {
  Key key{action.chunk, action.microbatch};
  Rank &state = ranks[rank];
  if (action.chunk >= int(chunks.size()) ||
      action.microbatch >= int(microbatches.size()))
    return fault(rank) << "no such chunk or microbatch";
  if (isCompute(action.kind) && gathers && !state.gathered.count(action.chunk))
    return fault(rank) << "the chunk's weights are not gathered";
  switch (action.kind) {
  case ActionKind::Forward:
    return forward(state, key);
  case ActionKind::Backward:
    return backward(state, key, /*isWhole=*/true);
  case ActionKind::BackwardInput:
    return backward(state, key, /*isWhole=*/false);
  case ActionKind::BackwardWeight:
    return backwardWeight(state, key);
  case ActionKind::SendForward:
    return send(rank, key, ForwardDirection);
  case ActionKind::SendBackward:
    return send(rank, key, BackwardDirection);
  case ActionKind::RecvForward:
    return post(rank, key, ForwardDirection);
  case ActionKind::RecvBackward:
    return post(rank, key, BackwardDirection);
  case ActionKind::Unshard:
    state.gathered.insert(action.chunk);
    return success();
  case ActionKind::Reshard:
    state.gathered.erase(action.chunk);
    return success();
  case ActionKind::ReduceGrad: // gradients are whole here
  case ActionKind::SumGrad:
  case ActionKind::Refresh:
    return success();
  case ActionKind::Offload:
    return move(rank, key, state.saved, state.offloaded);
  case ActionKind::Fetch:
    return move(rank, key, state.offloaded, state.saved);
  }
  llvm_unreachable("an action's kind");
}

/// Takes what a forward has saved from one place to another.
llvm::LogicalResult PipelineRun::move(int rank, Key key,
                                      std::map<Key, std::vector<Values>> &from,
                                      std::map<Key, std::vector<Values>> &to) {
  auto saved = take(from, key, rank, "result of forward");
  if (failed(saved))
    return failure();
  to[key] = std::move(*saved);
  return success();
}

/// Hands a value to its reader: the next chunk forward, the one before it
/// backward; on this rank, or for a SEND.
void PipelineRun::deliver(Rank &rank, Key maker, Direction direction,
                          Tensor tensor) {
  bool isForward = direction == ForwardDirection;
  bool isSent = isForward
                    ? timeline.shape.sendsForward(maker.first, maker.second)
                    : timeline.shape.sendsBackward(maker.first, maker.second);
  if (isSent)
    rank.outgoing[direction][maker] = std::move(tensor);
  else if (isForward)
    rank.activations[{maker.first + 1, maker.second}] = std::move(tensor);
  else
    rank.cotangents[{maker.first - 1, maker.second}] = std::move(tensor);
}

llvm::LogicalResult PipelineRun::forward(Rank &rank, Key key) {
  auto [chunk, microbatch] = key;
  if (rank.saved.count(key))
    return fault(numberOf(rank)) << "done before";
  FailureOr<Tensor> activation =
      chunk == 0 ? instance.embed(microbatches[microbatch].input)
                 : take(rank.activations, key, numberOf(rank), "activation");
  std::vector<Values> &saved = rank.saved[key];
  Values data{{Role::Tokens, microbatches[microbatch].input}};
  for (int64_t layer : chunks[chunk].getLayers())
    if (succeeded(activation))
      activation =
          instance.forward(layer, *activation, saved.emplace_back(data));
  if (failed(activation))
    return failure();
  if (chunks[chunk].getHasLoss())
    rank.lossInputs[key] = std::move(*activation);
  else
    deliver(rank, key, ForwardDirection, std::move(*activation));
  return success();
}

/// The cotangent that enters a chunk's backward: the loss's own, or one that
/// came from the next chunk.
FailureOr<Tensor> PipelineRun::cotangentOf(Rank &rank, Key key, bool isWhole) {
  int number = numberOf(rank);
  if (!chunks[key.first].getHasLoss())
    return take(rank.cotangents, key, number, "cotangent");
  auto activation = take(rank.lossInputs, key, number, "activation");
  if (failed(activation))
    return failure();
  Values saved{{Role::Tokens, microbatches[key.second].input}};
  auto cotangent = instance.backwardOfLoss(
      *activation, microbatches[key.second].target, saved);
  if (failed(cotangent) || !instance.isLossSplit())
    return cotangent;
  if (!isWhole)
    rank.savedOfLoss[key] = std::move(saved);
  else if (failed(instance.backwardWeightOfLoss(saved)))
    return failure();
  return cotangent;
}

/// B, or with `isWhole` false I, which keeps what W needs.
llvm::LogicalResult PipelineRun::backward(Rank &rank, Key key, bool isWhole) {
  auto [chunk, microbatch] = key;
  int number = numberOf(rank);
  auto saved = take(rank.saved, key, number, "result of forward");
  if (failed(saved))
    return failure();
  auto cotangent = cotangentOf(rank, key, isWhole);
  auto layers = chunks[chunk].getLayers();
  for (int64_t i = int64_t(layers.size()) - 1; i >= 0; --i) {
    if (failed(cotangent))
      return failure();
    if (!isWhole && !instance.isSplit(layers[i]))
      return fault(number) << "the backward of layer " << layers[i]
                           << " is not split";
    cotangent = instance.backward(layers[i], (*saved)[i], *cotangent);
    if (isWhole && instance.isSplit(layers[i]) && succeeded(cotangent) &&
        failed(instance.backwardWeight(layers[i], (*saved)[i])))
      return failure();
  }
  if (failed(cotangent))
    return failure();
  if (!isWhole)
    rank.saved[key] = std::move(*saved);
  if (chunks[chunk].getEmbeds())
    return instance.backwardOfEmbed(microbatches[microbatch].input, *cotangent);
  deliver(rank, key, BackwardDirection, std::move(*cotangent));
  return success();
}

llvm::LogicalResult PipelineRun::backwardWeight(Rank &rank, Key key) {
  int number = numberOf(rank);
  auto saved = take(rank.saved, key, number, "result of I");
  if (failed(saved))
    return failure();
  if (chunks[key.first].getHasLoss()) {
    auto ofLoss = take(rank.savedOfLoss, key, number, "result of I");
    if (failed(ofLoss) || failed(instance.backwardWeightOfLoss(*ofLoss)))
      return failure();
  }
  auto layers = chunks[key.first].getLayers();
  for (int64_t i = int64_t(layers.size()) - 1; i >= 0; --i)
    if (failed(instance.backwardWeight(layers[i], (*saved)[i])))
      return failure();
  return success();
}

/// The chunk that made the value of `key` sends it to the next one's rank.
llvm::LogicalResult PipelineRun::send(int rank, Key key, Direction direction) {
  auto value = take(ranks[rank].outgoing[direction], key, rank, "message");
  if (failed(value))
    return failure();
  int reader = timeline.shape.rankOf(
      direction == ForwardDirection ? key.first + 1 : key.first - 1,
      key.second);
  Channel &channel = channels[{rank, reader, direction}];
  channel.sent.push_back({key, std::move(*value)});
  return match(channel, reader, direction);
}

/// The chunk of `key` will read a value that the one before it makes.
llvm::LogicalResult PipelineRun::post(int rank, Key key, Direction direction) {
  int maker = direction == ForwardDirection ? key.first - 1 : key.first + 1;
  if (maker < 0 || maker >= int(chunks.size()))
    return fault(rank) << "nothing makes this message";
  Channel &channel =
      channels[{timeline.shape.rankOf(maker, key.second), rank, direction}];
  channel.posted.push_back(key);
  return match(channel, rank, direction);
}

llvm::LogicalResult PipelineRun::match(Channel &channel, int reader,
                                       Direction direction) {
  while (!channel.sent.empty() && !channel.posted.empty()) {
    auto [maker, tensor] = std::move(channel.sent.front());
    Key key = channel.posted.front();
    channel.sent.pop_front();
    channel.posted.pop_front();
    bool isForward = direction == ForwardDirection;
    if (key != Key(maker.first + (isForward ? 1 : -1), maker.second))
      return fault(reader) << "the message of chunk " << maker.first
                           << ", microbatch " << maker.second
                           << ", meets the place of chunk " << key.first
                           << ", microbatch " << key.second;
    auto &place =
        isForward ? ranks[reader].activations : ranks[reader].cotangents;
    place[key] = std::move(tensor);
  }
  return success();
}

FailureOr<Step> rota::interpreter::runPipeline(
    mlir::pipe::ProgramOp program, const mlir::rota::Model &model,
    const Tensors &parameters, llvm::ArrayRef<Microbatch> microbatches,
    const Options &options) {
  if (!program.getTimeline())
    return program.emitError("expected a 'pipe.timeline' in the program");
  if (int64_t(microbatches.size()) != int64_t(program.getMicrobatches()))
    return program.emitError("expected ")
           << program.getMicrobatches() << " microbatches, got "
           << microbatches.size();
  ModelInstance instance(model, parameters, options);
  PipelineRun run(program, instance, microbatches);
  if (failed(instance.beginStep(microbatches)) || failed(run.run()))
    return failure();
  return instance.takeStep();
}
