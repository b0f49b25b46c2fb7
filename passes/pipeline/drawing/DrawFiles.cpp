// SPDX-License-Identifier: Apache-2.0
//
// The drawings for programs: JSON, SVG and Chrome's trace events.
#include "passes/pipeline/drawing/Columns.h"
#include "passes/pipeline/drawing/Drawing.h"
#include "runtime/trace/TraceWriter.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace rota::pipe {
namespace {

using Json = nlohmann::ordered_json;

/// File names need not be UTF-8, and must not stop the output.
std::string text(const Json &json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

const char *categoryOf(ActionKind kind) {
  return isCompute(kind) || isTransfer(kind) ? toString(kind) : "communication";
}

/// The name of the lane that an action is drawn on. Each kind of transfer has
/// one.
const char *laneName(ActionKind kind) {
  return isTransfer(kind) ? toString(kind) : "compute";
}

/// The kinds of transfers, by `transferStream`.
std::vector<ActionKind> transferKinds() {
  std::vector<ActionKind> kinds;
  for (int kind = 0; kind < kActionKindCount; ++kind)
    if (isTransfer(ActionKind(kind)))
      kinds.push_back(ActionKind(kind));
  return kinds;
}

std::string escaped(const std::string &name) {
  std::string result;
  for (char c : name)
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += (c >= ' ' && c <= '~') ? c : '?';
  return result;
}

/// One hue for each kind; darker for later rows of chunks.
std::string fillColour(const Shape &shape, const Action &action) {
  constexpr int kHues[] = {212, 28, 150, 285};
  int rows = shape.repeats + shape.outer;
  int row = shape.rowOf(action.chunk);
  int light = 86 - (rows > 1 ? 26 * row / (rows - 1) : 0);
  return "hsl(" + std::to_string(kHues[static_cast<int>(action.kind)]) +
         ",70%," + std::to_string(light) + "%)";
}

/// The place of a compute action: rank and position.
struct Address {
  int rank, position;
};

/// Adds an arrow from the end of the action that makes a value to the start of
/// the one on another rank that reads it.
void addArrows(const Timeline &timeline, const Simulation &simulation,
               TraceWriter &trace) {
  const Shape &shape = timeline.shape;
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
    trace.addArrow(forward ? "activation" : "gradient", maker.rank, 1000 * end,
                   reader.rank, 1000 * read.start);
  });
}

/// The grid, and under each rank's row a thin one for each kind of transfer.
class Picture {
public:
  Picture(const Timeline &timeline, const Simulation &simulation)
      : timeline(timeline), simulation(simulation),
        columns(layOut(timeline, simulation)) {
    for (ActionKind kind : transferKinds())
      if (hasAny(timeline, kind))
        lanes.push_back(kind);
  }

  std::string draw(const std::string &name) {
    int height = kTitle + int(columns.ranks.size()) * rankHeight() + 10;
    char bubble[32];
    std::snprintf(bubble, sizeof(bubble), "%.1f", 100 * simulation.bubble);
    for (size_t rank = 0; rank < columns.ranks.size(); ++rank)
      drawRank(rank);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\"" +
           attribute("width", right + 10) + attribute("height", height) +
           " viewBox=\"0 0 " + std::to_string(right + 10) + " " +
           std::to_string(height) + "\"" +
           " font-family=\"sans-serif\" font-size=\"12\">\n"
           "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
           "<text x=\"8\" y=\"20\">" +
           escaped(name) + ", bubble " + bubble + " %</text>\n" + body +
           "</svg>\n";
  }

private:
  static constexpr int kCell = 34, kRow = 26, kLane = 16, kLabel = 64,
                       kTitle = 30;
  const Timeline &timeline;
  const Simulation &simulation;
  Columns columns;
  std::vector<ActionKind> lanes;
  std::string body;
  int right = kLabel; // edge of what is drawn

  int rankHeight() const { return kRow + int(lanes.size()) * kLane; }

  static std::string attribute(const char *key, int value) {
    return std::string(" ") + key + "=\"" + std::to_string(value) + "\"";
  }

  void drawRank(size_t rank) {
    int y = kTitle + int(rank) * rankHeight();
    body += "<text x=\"8\"" + attribute("y", y + 17) + ">rank " +
            std::to_string(rank) + "</text>\n";
    for (const Cell &cell : columns.ranks[rank])
      drawBox(kLabel + cell.first * kCell, y,
              (cell.last - cell.first + 1) * kCell, kRow, cell.action,
              fillColour(timeline.shape, cell.action));
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
      const Action &action = timeline.ranks[rank][i];
      auto lane = std::find(lanes.begin(), lanes.end(), action.kind);
      if (lane == lanes.end() || columns.width <= 0)
        continue;
      const TimeSpan &span = simulation.spans[rank][i];
      auto at = [&](double time) {
        return kLabel + int(time / columns.width * kCell);
      };
      drawBox(at(span.start), y + kRow + int(lane - lanes.begin()) * kLane,
              std::max(4, at(span.end) - at(span.start)), kLane, action,
              "hsl(0,0%,85%)");
    }
  }

  void drawBox(int x, int y, int width, int height, const Action &action,
               const std::string &colour) {
    right = std::max(right, x + width);
    body += "<rect" + attribute("x", x) + attribute("y", y) +
            attribute("width", width - 2) + attribute("height", height - 2) +
            " rx=\"3\" fill=\"" + colour + "\"/>";
    // Short transfers have no room for their name.
    bool isNarrow = !isCompute(action.kind) && width < 3 * kCell;
    if (isNarrow)
      body += "\n";
    else
      body += "<text" + attribute("x", x + width / 2 - 1) +
              attribute("y", y + height / 2 + 4) + " text-anchor=\"middle\">" +
              toString(action) + "</text>\n";
  }
};

/// The slices and instants of a rank, a thread for computation and messages and
/// one for each kind of transfer.
void addSlices(const Timeline &timeline, const Simulation &simulation, int rank,
               TraceWriter &trace) {
  int ranks = int(timeline.ranks.size());
  int position = rank * (kTransferStreams + 1);
  std::string title = "rank " + std::to_string(rank);
  trace.nameLane(rank, title, position);
  auto threadOf = [&](ActionKind kind) {
    return isTransfer(kind) ? ranks * (1 + transferStream(kind)) + rank : rank;
  };
  for (ActionKind kind : transferKinds())
    if (hasAny(timeline, kind))
      trace.nameLane(threadOf(kind), title + " " + toString(kind),
                     position + 1 + transferStream(kind));
  for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
    const Action &action = timeline.ranks[rank][i];
    const TimeSpan &span = simulation.spans[rank][i];
    TracedAction traced{toString(action), categoryOf(action.kind), action.chunk,
                        hasMicrobatch(action.kind) ? action.microbatch : -1};
    if (isCompute(action.kind) || isTransfer(action.kind))
      trace.addSlice(threadOf(action.kind), traced, 1000 * span.start,
                     1000 * span.end);
    else
      trace.addInstant(threadOf(action.kind), traced, 1000 * span.start);
  }
}

} // namespace

std::string drawJson(const Timeline &timeline, const Simulation &simulation,
                     const std::string &name) {
  const Shape &shape = timeline.shape;
  Json ranks = Json::array();
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    Json actions = Json::array();
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i)
      actions.push_back({{"action", toString(timeline.ranks[rank][i])},
                         {"lane", laneName(timeline.ranks[rank][i].kind)},
                         {"start", simulation.spans[rank][i].start},
                         {"end", simulation.spans[rank][i].end}});
    const RankUsage &report = simulation.ranks[rank];
    const Exposure &exposed = report.exposed;
    ranks.push_back({{"rank", rank},
                     {"busy", report.busy},
                     {"bubble", report.bubble},
                     {"idle", report.idle},
                     {"idle_share", report.idleShare},
                     {"peak_live", report.peakLive},
                     {"peak_received_forward", report.peakReceivedForward},
                     {"peak_received_backward", report.peakReceivedBackward},
                     {"peak_windows", report.peakWindows},
                     {"peak_gradients", report.peakGradients},
                     {"peak_offloaded", report.peakOffloaded},
                     {"exposed",
                      {{"messages", exposed.messages},
                       {"UNSHARD", exposed.gathers},
                       {"REDUCE_GRAD", exposed.reductions},
                       {"OFFLOAD", exposed.offloads},
                       {"FETCH", exposed.fetches}}},
                     {"actions", std::move(actions)}});
  }
  return text({{"schedule", name},
               {"ranks", shape.stages},
               {"chunks", shape.repeats},
               {"microbatches", shape.microbatches},
               {"placement", nameOf(shape.placement)},
               {"outer", shape.outer},
               {"delay", timeline.delay},
               {"window", timeline.window},
               {"communication", hasCommunication(timeline)},
               {"makespan", simulation.makespan},
               {"bubble", simulation.bubble},
               {"idle_share", simulation.idleShare},
               {"timeline", std::move(ranks)}});
}

std::string drawSvg(const Timeline &timeline, const Simulation &simulation,
                    const std::string &name) {
  return Picture(timeline, simulation).draw(name);
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
