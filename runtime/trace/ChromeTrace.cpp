// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/ChromeTrace.h"

#include <nlohmann/json.hpp>

using nlohmann::ordered_json;

namespace rota {

std::string chromeTrace(const Program &program,
                        const std::vector<TraceEvent> &events) {
  ordered_json list = ordered_json::array();
  for (size_t rank = 0; rank < program.stages.size(); ++rank)
    list.push_back({{"ph", "M"},
                    {"name", "thread_name"},
                    {"pid", 0},
                    {"tid", rank},
                    {"args", {{"name", "rank " + std::to_string(rank)}}}});
  for (const TraceEvent &event : events) {
    const Action &action = program.stages[event.rank].actions[event.action];
    list.push_back(
        {{"ph", "X"},
         {"name", std::to_string(action.chunk) + toString(action.kind) +
                      std::to_string(action.microbatch)},
         {"cat", event.training ? "training" : "evaluation"},
         {"pid", 0},
         {"tid", event.rank},
         {"ts", event.begin * 1e6},
         {"dur", (event.end - event.begin) * 1e6}});
  }
  return ordered_json({{"traceEvents", list}}).dump();
}

} // namespace rota
