// SPDX-License-Identifier: Apache-2.0
//
// The drawings for programs: JSON and Chrome's trace events.
#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/drawing/Lanes.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/program/JsonText.h"
#include "runtime/trace/TraceWriter.h"

#include <nlohmann/json.hpp>

namespace rota::pipe {
namespace {

using Json = nlohmann::ordered_json;

/// File names need not be UTF-8, and must not stop the output.
std::string text(const Json &json) { return jsonText(json, 2) + "\n"; }

const char *categoryOf(ActionKind kind) {
  return isCompute(kind) || isTransfer(kind) ? toString(kind) : "communication";
}

/// The name of the lane that the action at `position` is drawn on. Each kind of
/// transfer has one, and so have second halves of pairs.
const char *laneName(const std::vector<Action> &row, size_t position) {
  if (endsPair(row, position))
    return "pair";
  ActionKind kind = row[position].kind;
  return isTransfer(kind) ? toString(kind) : "compute";
}

/// The place of a compute action: rank and position.
struct Address {
  int rank, position;
};

/// The threads of a trace, of which those of the ranks' computation come first.
class Threads {
public:
  explicit Threads(const Timeline &timeline) : timeline(timeline) {}

  int of(Address address) const {
    const std::vector<Action> &row = timeline.ranks[address.rank];
    return endsPair(row, address.position)
               ? ofPairs(address.rank)
               : of(address.rank, row[address.position].kind);
  }
  int of(int rank, ActionKind kind) const {
    return isTransfer(kind) ? number(1 + transferStream(kind), rank) : rank;
  }
  /// The thread of the second halves of a rank's pairs.
  int ofPairs(int rank) const { return number(kCount - 1, rank); }

  static constexpr int kCount = kTransferStreams + 2; // threads per rank

private:
  const Timeline &timeline;
  int number(int lane, int rank) const {
    return int(timeline.ranks.size()) * lane + rank;
  }
};

/// Adds an arrow from the end of the action that makes a value to the start of
/// the one on another rank that reads it.
void addArrows(const Timeline &timeline, const Simulation &simulation,
               TraceWriter &trace) {
  const Shape &shape = timeline.shape;
  Threads threads(timeline);
  auto key = [&](bool forward, int chunk, int microbatch) {
    return (size_t(forward) * shape.chunks() + chunk) * shape.microbatches +
           microbatch;
  };
  std::vector<Address> makers(2 * size_t(shape.chunks()) * shape.microbatches);
  auto forEach = [&](auto function) {
    for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
      for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
        const Action &action = timeline.ranks[rank][i];
        if (isCompute(action.kind) && action.kind != ActionKind::BackwardWeight)
          function(Address{int(rank), int(i)}, action,
                   action.kind == ActionKind::Forward);
      }
  };
  forEach([&](Address address, const Action &action, bool forward) {
    makers[key(forward, action.chunk, action.microbatch)] = address;
  });
  forEach([&](Address reader, const Action &action, bool forward) {
    int from = forward ? action.chunk - 1 : action.chunk + 1;
    if (from < 0 || from >= shape.chunks() ||
        shape.rankOf(from, action.microbatch) == reader.rank)
      return;
    Address maker = makers[key(forward, from, action.microbatch)];
    const TimeSpan &made = simulation.spans[maker.rank][maker.position];
    const TimeSpan &read = simulation.spans[reader.rank][reader.position];
    // Just inside the end of the slice.
    double end = made.end - 1e-3 * (made.end - made.start);
    trace.addArrow(forward ? "activation" : "gradient", threads.of(maker),
                   1000 * end, threads.of(reader), 1000 * read.start);
  });
}

/// The slices and instants of a rank, a thread for computation, waits and
/// messages, one for each kind of transfer and one for second halves of pairs.
void addSlices(const Timeline &timeline, const Simulation &simulation, int rank,
               TraceWriter &trace) {
  Threads threads(timeline);
  int position = rank * Threads::kCount;
  std::string title = "rank " + std::to_string(rank);
  trace.nameLane(rank, title, position);
  if (hasPairs(timeline))
    trace.nameLane(threads.ofPairs(rank), title + " pair", position + 1);
  for (ActionKind kind : transferKinds())
    if (hasAny(timeline, kind))
      trace.nameLane(threads.of(rank, kind), title + " " + toString(kind),
                     position + 2 + transferStream(kind));
  for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
    const Action &action = timeline.ranks[rank][i];
    const TimeSpan &span = simulation.spans[rank][i];
    TracedAction traced{toString(action), categoryOf(action.kind), action.chunk,
                        hasMicrobatch(action.kind) ? action.microbatch : -1};
    if (isCompute(action.kind) || isTransfer(action.kind))
      trace.addSlice(threads.of({rank, int(i)}), traced, 1000 * span.start,
                     1000 * span.end);
    else
      trace.addInstant(threads.of({rank, int(i)}), traced, 1000 * span.start);
  }
  for (const Wait &wait : simulation.ranks[rank].waits)
    trace.addSlice(rank, {std::string("wait: ") + waitedFor(wait), "wait"},
                   1000 * wait.span.start, 1000 * wait.span.end);
}

} // namespace

std::string drawJson(const Timeline &timeline, const Simulation &simulation,
                     const SteadyStep &steady, const std::string &name) {
  const Shape &shape = timeline.shape;
  Json ranks = Json::array();
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    Json actions = Json::array();
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i)
      actions.push_back({{"action", toString(timeline.ranks[rank][i])},
                         {"lane", laneName(timeline.ranks[rank], i)},
                         {"start", simulation.spans[rank][i].start},
                         {"end", simulation.spans[rank][i].end}});
    const RankUsage &report = simulation.ranks[rank];
    double activations = wholeActivations(report.peakLive, shape);
    Json exposed = Json::object(), waits = Json::array();
    for (const ExposureName &exposure : kExposureNames)
      exposed[exposure.name] = report.exposed.*exposure.field;
    for (const Wait &wait : report.waits)
      waits.push_back({{"for", waitedFor(wait)},
                       {"start", wait.span.start},
                       {"end", wait.span.end}});
    ranks.push_back({{"rank", rank},
                     {"busy", report.busy},
                     {"bubble", report.bubble},
                     {"idle", report.idle},
                     {"idle_share", report.idleShare},
                     {"peak_activations", activations},
                     {"share_of_1f1b", shareOfOneFOneB(activations, shape)},
                     {"peak_received_forward", report.peakReceivedForward},
                     {"peak_received_backward", report.peakReceivedBackward},
                     {"peak_windows", report.peakWindows},
                     {"peak_gradients", report.peakGradients},
                     {"peak_offloaded", report.peakOffloaded},
                     {"exposed", std::move(exposed)},
                     {"waits", std::move(waits)},
                     {"actions", std::move(actions)}});
  }
  return text({{"schedule", name},
               {"ranks", shape.stages},
               {"chunks", shape.rows()},
               {"microbatches", shape.microbatches},
               {"placement", nameOf(shape.placement)},
               {"unpipelined", shape.hasUnpipelined},
               {"delay", timeline.delay},
               {"window", timeline.window},
               {"communication", hasCommunication(timeline)},
               {"makespan", simulation.makespan},
               {"bubble", simulation.bubble},
               {"idle_share", simulation.idleShare},
               {"steady_step", steady.time},
               {"steady_bubble", steady.bubble},
               {"timeline", std::move(ranks)}});
}

std::string drawTrace(const Timeline &timeline, const Simulation &simulation,
                      const std::string &name) {
  TraceWriter trace;
  trace.nameProcess(name);
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
    addSlices(timeline, simulation, int(rank), trace);
  addArrows(timeline, simulation, trace);
  return trace.text();
}

} // namespace rota::pipe
