// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/TraceWriter.h"
#include "runtime/program/JsonText.h"

#include <nlohmann/json.hpp>

namespace rota {

using Json = nlohmann::ordered_json;

/// File names need not be UTF-8, and must not stop the output.
static void append(std::string &events, const Json &event) {
  events += events.empty() ? "" : ",\n";
  events += jsonText(event);
}

static Json makeEvent(const char *phase, const std::string &name, int lane) {
  return {{"name", name}, {"ph", phase}, {"pid", 0}, {"tid", lane}};
}

static Json makeEvent(const char *phase, const TracedAction &action, int lane,
                      double time) {
  Json event = makeEvent(phase, action.name, lane);
  event["cat"] = action.category;
  event["ts"] = time;
  event["args"] = {{"chunk", action.chunk}};
  if (action.microbatch >= 0)
    event["args"]["microbatch"] = action.microbatch;
  if (action.run >= 0)
    event["args"]["run"] = action.run;
  return event;
}

void TraceWriter::nameProcess(const std::string &name) {
  Json event = makeEvent("M", "process_name", 0);
  event["args"] = {{"name", name}};
  append(events, event);
}

void TraceWriter::nameLane(int lane, const std::string &name, int position) {
  Json event = makeEvent("M", "thread_name", lane);
  event["args"] = {{"name", name}};
  append(events, event);
  event = makeEvent("M", "thread_sort_index", lane);
  event["args"] = {{"sort_index", position}};
  append(events, event);
}

void TraceWriter::addSlice(int lane, const TracedAction &action, double begin,
                           double end) {
  Json event = makeEvent("X", action, lane, begin);
  event["dur"] = end - begin;
  append(events, event);
}

void TraceWriter::addInstant(int lane, const TracedAction &action,
                             double time) {
  Json event = makeEvent("i", action, lane, time);
  event["s"] = "t";
  append(events, event);
}

void TraceWriter::addArrow(const std::string &name, int fromLane, double from,
                           int toLane, double to) {
  for (bool start : {true, false}) {
    Json event = makeEvent(start ? "s" : "f", name, start ? fromLane : toLane);
    event["cat"] = "message";
    event["id"] = arrows;
    event["ts"] = start ? from : to;
    if (!start)
      event["bp"] = "e"; // binds to the slice that encloses it
    append(events, event);
  }
  ++arrows;
}

std::string TraceWriter::text() const {
  return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + events + "\n]}\n";
}

} // namespace rota
