// SPDX-License-Identifier: Apache-2.0
//
// The shortest timeline that a search finds: see passes/pipeline/search.
#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/search/Search.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &error) {
  SearchReport unread;
  return searchTimeline(request, request.report ? *request.report : unread,
                        error);
}

} // namespace

const Schedule scheduleAuto = {.name = "auto",
                               .description =
                                   "the shortest that a search finds",
                               .generate = generate,
                               .hasPairs = true,
                               .isSearch = true};

} // namespace rota::pipe
