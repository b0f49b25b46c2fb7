// SPDX-License-Identifier: Apache-2.0
//
// The timeline that the options of `rota schedule` ask for.
#ifndef ROTA_TOOLS_ROTA_REQUESTEDTIMELINE_H
#define ROTA_TOOLS_ROTA_REQUESTEDTIMELINE_H

#include "tools/rota/RunOptions.h"

namespace rota {

/// Makes or reads the timeline of `options.schedule`, adds what the options ask
/// for, and verifies it. A named schedule has its own placement and number of
/// chunks where the options give none. A search prints one remark on what it
/// tried to standard error. Nothing, and `errors`, at most a
/// screenful of lines, when the timeline does not exist or breaks a rule.
std::optional<pipe::Timeline>
requestedTimeline(const RunOptions &options, std::vector<std::string> &errors);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_REQUESTEDTIMELINE_H
