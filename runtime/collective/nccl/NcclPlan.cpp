// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl/NcclPlan.h"
#include "runtime/program/Part.h"
#include "runtime/program/RuntimeMemory.h"
#include "runtime/program/UpdatePlaces.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace rota {

static bool sharesRank(const NcclRoute &a, const NcclRoute &b) {
  return std::find_first_of(a.ranks.begin(), a.ranks.end(), b.ranks.begin(),
                            b.ranks.end()) != a.ranks.end();
}

void NcclPlan::add(NcclRoute route) {
  if (route.ranks.size() < 2)
    return;
  for (const std::vector<NcclRoute> &step : list)
    if (std::find(step.begin(), step.end(), route) != step.end())
      return;
  for (std::vector<NcclRoute> &step : list)
    if (std::none_of(step.begin(), step.end(), [&](const NcclRoute &other) {
          return sharesRank(route, other);
        })) {
      step.push_back(std::move(route));
      return;
    }
  list.push_back({std::move(route)});
}

int NcclPlan::most(bool withMessages) const {
  std::map<int, int> routes; // by rank
  int result = 0;
  for (const std::vector<NcclRoute> &step : list)
    for (const NcclRoute &route : step)
      if (withMessages || !route.isMessage)
        for (int rank : route.ranks)
          result = std::max(result, ++routes[rank]);
  return result;
}

namespace {

/// Goes through a program and adds what its ranks of each stage do.
class RoutePlanner {
public:
  explicit RoutePlanner(const Program &program)
      : program(program), mesh(program.mesh) {
    for (const MeshAxis &axis : mesh)
      ranks *= static_cast<int>(axis.size);
  }

  NcclPlan run() {
    for (int s = 0; s < static_cast<int>(program.stages.size()); ++s) {
      addTimeline(s);
      addStep(s);
    }
    // The compiler gives collectives inside tasks numbers of their own.
    for (int c = 0; c < static_cast<int>(program.collectives.size()); ++c)
      if (!ofParameters.contains(c))
        for (int s = 0; s < static_cast<int>(program.stages.size()); ++s)
          addTasks(s, program.collectives[c].axes);
    addReports();
    return std::move(plan);
  }

private:
  /// The rank of another stage with the same other coordinates.
  int atStage(int rank, int stage) const {
    std::vector<int64_t> at = coordinatesOf(mesh, rank);
    at[stageAxis(mesh)] = stage;
    return rankOf(mesh, at);
  }
  bool isAtStage(int rank, int stage) const {
    return atStage(rank, stage) == rank;
  }

  void addGroups(Stream stream, int stage, const std::vector<int> &axes) {
    for (int rank = 0; rank < ranks; ++rank)
      if (isAtStage(rank, stage))
        plan.add({stream, false, groupOf(mesh, rank, axes).ranks});
  }
  void addTasks(int stage, const std::vector<int> &axes) {
    addGroups(Stream::Task, stage, axes);
    if (hasPairs(program))
      addGroups(Stream::PairTask, stage, axes);
  }
  void addCollective(Stream stream, int stage, int collective) {
    if (collective < 0)
      return;
    ofParameters.insert(collective);
    addGroups(stream, stage, program.collectives[collective].axes);
  }
  void addMessages(Stream stream, int from, int to) {
    for (int rank = 0; from != to && rank < ranks; ++rank)
      if (isAtStage(rank, from))
        plan.add({stream, true, {rank, atStage(rank, to)}});
  }

  void addTimeline(int stage) {
    for (const ActionTemplate &form : program.stages[stage].templates) {
      if (isSend(form.kind))
        addMessages(streamOf(form.kind), stage, form.peer);
      for (const Transfer &transfer : form.transfers)
        addCollective(streamOf(form.kind), stage, transfer.collective);
      for (int update : form.updates)
        addCollective(streamOf(form.kind), stage,
                      exchangeOf(program, program.stages[stage], form, update));
    }
  }

  void addStep(int stage) {
    for (const Update &update : program.stages[stage].updates) {
      const Parameter &parameter = program.parameters[update.parameter];
      for (int collective : parameter.reduce)
        addCollective(Stream::Step, stage, collective);
      addCollective(Stream::Step, stage, parameter.refresh);
      for (const ArenaAddress &term : update.gradients)
        addMessages(Stream::Step, term.stage, stage);
      for (const ArenaAddress &copy : update.copies)
        addMessages(Stream::Step, stage, copy.stage);
    }
  }

  /// Numbers that all ranks gather from each other.
  void addReports() {
    std::vector<int> everyone(mesh.size());
    std::iota(everyone.begin(), everyone.end(), 0);
    std::set<int> loss(program.lossAxes.begin(), program.lossAxes.end());
    loss.insert(stageAxis(mesh));
    for (int rank = 0; rank < ranks; ++rank)
      for (const std::vector<int> &axes :
           {everyone, std::vector<int>(loss.begin(), loss.end())})
        plan.add({Stream::Step, false, groupOf(mesh, rank, axes).ranks});
  }

  const Program &program;
  const std::vector<MeshAxis> &mesh;
  int ranks = 1;
  std::set<int> ofParameters; // in Program::collectives
  NcclPlan plan;
};

} // namespace

NcclPlan planRoutes(const Program &program) {
  return RoutePlanner(program).run();
}

} // namespace rota
