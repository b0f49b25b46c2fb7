// SPDX-License-Identifier: Apache-2.0
//
// The drawings for programs: JSON, SVG and Chrome's trace events.
#include "passes/pipeline/Columns.h"
#include "passes/pipeline/Drawing.h"

#include <nlohmann/json.hpp>

namespace rota::pipe {
namespace {

using Json = nlohmann::ordered_json;

/// File names need not be UTF-8, and must not stop the output.
std::string text(const Json &json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

const char *kindName(ActionKind kind) {
  constexpr const char *kNames[] = {"F", "B", "I", "W"};
  return isCompute(kind) ? kNames[static_cast<int>(kind)] : "communication";
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
  int row = action.chunk / shape.stages;
  int light = 86 - (shape.repeats > 1 ? 26 * row / (shape.repeats - 1) : 0);
  return "hsl(" + std::to_string(kHues[static_cast<int>(action.kind)]) +
         ",70%," + std::to_string(light) + "%)";
}

/// Where a compute action stands: rank and position.
struct Address {
  int rank, position;
};

/// Adds an arrow from the end of the action that makes a value to the start of
/// the one on another rank that reads it.
void addArrows(const Timeline &timeline, const Simulation &simulation,
               Json &events) {
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
  int id = 0;
  forEach([&](Address reader, const Action &action, bool forward) {
    int from = forward ? action.chunk - 1 : action.chunk + 1;
    if (from < 0 || from >= shape.chunks() || shape.rankOf(from) == reader.rank)
      return;
    Address maker = makers[key(forward, from, action.microbatch)];
    auto add = [&](const char *phase, int rank, double time) {
      Json event = {{"name", forward ? "activation" : "gradient"},
                    {"cat", "message"},
                    {"ph", phase},
                    {"id", id},
                    {"pid", 0},
                    {"tid", rank},
                    {"ts", 1000 * time}};
      if (*phase == 'f')
        event["bp"] = "e";
      events.push_back(std::move(event));
    };
    // An arrow binds to the slice that holds its time: just inside the end.
    const Span &made = simulation.spans[maker.rank][maker.position];
    add("s", maker.rank, made.end - 1e-3 * (made.end - made.start));
    add("f", reader.rank, simulation.spans[reader.rank][reader.position].start);
    ++id;
  });
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
                         {"start", simulation.spans[rank][i].start},
                         {"end", simulation.spans[rank][i].end}});
    const RankReport &report = simulation.ranks[rank];
    ranks.push_back({{"rank", rank},
                     {"busy", report.busy},
                     {"bubble", report.bubble},
                     {"peak_live", report.peakLive},
                     {"peak_received_forward", report.peakReceivedForward},
                     {"peak_received_backward", report.peakReceivedBackward},
                     {"actions", std::move(actions)}});
  }
  return text({{"schedule", name},
               {"ranks", shape.stages},
               {"chunks", shape.repeats},
               {"microbatches", shape.microbatches},
               {"placement", shape.placement == Placement::V ? "v" : "loop"},
               {"delay", timeline.delay},
               {"communication", hasCommunication(timeline)},
               {"makespan", simulation.makespan},
               {"bubble", simulation.bubble},
               {"timeline", std::move(ranks)}});
}

std::string drawSvg(const Timeline &timeline, const Simulation &simulation,
                    const std::string &name) {
  constexpr int kCell = 34, kRow = 26, kLabel = 64, kTitle = 30;
  Columns columns = layOut(timeline, simulation);
  auto attribute = [](const char *key, int value) {
    return std::string(" ") + key + "=\"" + std::to_string(value) + "\"";
  };
  int width = kLabel + columns.count * kCell + 10;
  int height = kTitle + int(columns.ranks.size()) * kRow + 10;
  char bubble[32];
  std::snprintf(bubble, sizeof(bubble), "%.1f", 100 * simulation.bubble);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"" +
                    attribute("width", width) + attribute("height", height) +
                    " font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
                    "<text x=\"8\" y=\"20\">" +
                    escaped(name) + ", bubble " + bubble + " %</text>\n";
  for (size_t rank = 0; rank < columns.ranks.size(); ++rank) {
    int y = kTitle + int(rank) * kRow;
    svg += "<text x=\"8\"" + attribute("y", y + 17) + ">rank " +
           std::to_string(rank) + "</text>\n";
    for (const Cell &cell : columns.ranks[rank]) {
      int x = kLabel + cell.first * kCell;
      int cellWidth = (cell.last - cell.first + 1) * kCell;
      svg += "<rect" + attribute("x", x) + attribute("y", y) +
             attribute("width", cellWidth - 2) + attribute("height", kRow - 2) +
             " rx=\"3\" fill=\"" + fillColour(timeline.shape, cell.action) +
             "\"/><text" + attribute("x", x + cellWidth / 2 - 1) +
             attribute("y", y + 17) + " text-anchor=\"middle\">" +
             toString(cell.action) + "</text>\n";
    }
  }
  return svg + "</svg>\n";
}

std::string drawTrace(const Timeline &timeline, const Simulation &simulation,
                      const std::string &name) {
  Json events = Json::array();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", 0},
                    {"args", {{"name", name}}}});
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 0},
                      {"tid", rank},
                      {"args", {{"name", "rank " + std::to_string(rank)}}}});
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
      const Action &action = timeline.ranks[rank][i];
      const Span &span = simulation.spans[rank][i];
      bool compute = isCompute(action.kind);
      Json event = {{"name", toString(action)},
                    {"cat", kindName(action.kind)},
                    {"ph", compute ? "X" : "i"},
                    {"pid", 0},
                    {"tid", rank},
                    {"ts", 1000 * span.start}};
      if (compute)
        event["dur"] = 1000 * (span.end - span.start);
      else
        event["s"] = "t";
      event["args"] = {{"chunk", action.chunk},
                       {"microbatch", action.microbatch}};
      events.push_back(std::move(event));
    }
  }
  addArrows(timeline, simulation, events);
  return text({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}});
}

} // namespace rota::pipe
