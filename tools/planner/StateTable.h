// SPDX-License-Identifier: Apache-2.0
//
// The train state of a program for people and programs: what a checkpoint
// would hold, and what it takes of each rank.
#ifndef ROTA_TOOLS_PLANNER_STATETABLE_H
#define ROTA_TOOLS_PLANNER_STATETABLE_H

#include "runtime/program/State.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rota {

/// A line for each tensor of the state: name, type, whole shape, the mesh axes
/// that divide each dimension, bytes, and bytes of a part, which a rank of its
/// stage has. Then the sums of the ranks.
std::string describeState(const Program &program);
nlohmann::ordered_json stateJson(const Program &program);

/// Host memory of each rank for the copy that checkpoints are written from,
/// StateCopy::bytes.
std::vector<int64_t> checkpointBytes(const Program &program);
std::string describeCheckpointCopy(const Program &program);

/// Memory of each rank for the snapshot of --post-validate: snapshotBytes.
std::vector<int64_t> postValidateBytes(const Program &program);
std::string describePostValidate(const Program &program);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_STATETABLE_H
