// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/rank/Rank.h"
#include "runtime/program/Part.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace rota {

Rank::Rank(const Executable &executable, const Links &links, Device &device,
           Cores &cores, bool profile)
    : executable(executable), links(links), coreSet(cores),
      position(coordinatesOf(program().mesh, number())),
      stageIndex(static_cast<int>(position[stageAxis(program().mesh)])),
      recorder(program(), number(), stageIndex),
      ownPlaces(rota::runtimeMemory(program())),
      memory(device.makeArena(stage().arenaBytes)),
      hostMemory(device.makeHostArena(stage().hostBytes)),
      runtimeMemory(device.makeArena(ownPlaces.bytes)) {
  device.useWorkspace(runtimeAt(ownPlaces.workspace),
                      runtimeAt(ownPlaces.pairWorkspace),
                      ownPlaces.workspaceBytes);
  const std::vector<MeshAxis> &mesh = program().mesh;
  for (const Collective &collective : program().collectives)
    groups.push_back(groupOf(mesh, number(), collective.axes));
  std::vector<int> axes(mesh.size());
  std::iota(axes.begin(), axes.end(), 0);
  all = groupOf(mesh, number(), axes);
  // In the order of the mesh, so that the loss is summed in that order.
  std::vector<int> lossAxes = program().lossAxes;
  if (int axis = stageAxis(mesh);
      std::find(lossAxes.begin(), lossAxes.end(), axis) == lossAxes.end())
    lossAxes.push_back(axis);
  std::sort(lossAxes.begin(), lossAxes.end());
  lossRanks = groupOf(mesh, number(), lossAxes);
  if (profile)
    ownProfile = std::make_unique<Profile>();
  for (TaskContext *tasks : {&firstTasks, &secondTasks}) {
    tasks->context()->device = &device;
    tasks->context()->cores = &coreSet;
  }
  context()->profile = ownProfile.get();
}

int Rank::peer(int stage) const {
  std::vector<int64_t> other = position;
  other[stageAxis(program().mesh)] = stage;
  return rankOf(program().mesh, other);
}

void Rank::setPosition(const std::string &text) {
  links.host->setPosition(text);
  if (links.tensors != links.host)
    links.tensors->setPosition(text);
}

Request Rank::start(Stream stream, int collective, const void *source,
                    void *destination) {
  return links.tensors->start(stream, program().collectives[collective],
                              groups[collective], source, destination);
}

void Rank::runTask(RotaContext *context, int number, const RotaFrame &frame) {
  ProfiledScope scope(context);
  executable.tasks[number](context, &frame);
  scope.end([&](Profile &profile, Profile::Span span) {
    profile.addTask(number, span);
  });
}

std::string Rank::reached() const {
  int number = device().position();
  return number < 0 || !positions ? "" : (*positions)[number];
}

std::string Rank::explain(const std::string &failure, int number) const {
  if (int reached = device().position(); reached >= 0)
    number = reached;
  return failureAt(number, failure);
}

std::string Rank::failureAt(int number, const std::string &failure) const {
  if (number < 0 || !positions)
    return fmt::format("rank {}: {}", this->number(), failure);
  return fmt::format("rank {}: {}: {}", this->number(), (*positions)[number],
                     failure);
}

std::optional<std::string> Rank::fullExperts() const {
  std::optional<FullExperts> full = device().fullExperts();
  if (!full)
    return std::nullopt;
  return failureAt(full->action, atLayer(full->layer, toString(*full)));
}

std::string atLayer(int layer, const std::string &failure) {
  return layer < 0 ? failure : fmt::format("layer {}: {}", layer, failure);
}

void Rank::rethrowFullExperts() const {
  if (std::optional<std::string> full = fullExperts())
    throw RunError(*full);
}

void Rank::waitAtStepEnd(Request request) {
  double from = communicator().now();
  TransferTime span = communicator().wait(request);
  if (!device().isAsynchronous())
    stepEnd += {1, span.end - span.begin, exposedSeconds(span, from)};
}

void Rank::rethrowFailure() const {
  firstTasks.rethrowFailure();
  secondTasks.rethrowFailure();
}

} // namespace rota
