// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl/Connect.h"
#include "runtime/Error.h"
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "runtime/collective/nccl/EmulatedNccl.h"
#include "runtime/program/RuntimeMemory.h"

#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

namespace rota {

static constexpr const char *kQueues = "CUDA_DEVICE_MAX_CONNECTIONS";
static constexpr int kMostQueues = 32, kDefaultQueues = 8;

void prepareForNccl() {
  setenv(kQueues, std::to_string(kMostQueues).c_str(), /*overwrite=*/0);
  // Otherwise NCCL connects ranks for each of its algorithms at the first use,
  // on the host: in a step, ranks that are in two collectives would wait for
  // each other.
  setenv("NCCL_RUNTIME_CONNECT", "0", /*overwrite=*/0);
  // Registering the buffers of a recorded step waits for other ranks, which may
  // record the transfers of different routes in another order.
  setenv("NCCL_GRAPH_REGISTER", "0", /*overwrite=*/0);
}

static std::string variable(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

std::string rendezvousAddress() {
  if (std::string given = variable("NCCL_COMM_ID"); !given.empty())
    return given;
  std::string host = variable("MASTER_ADDR"), port = variable("MASTER_PORT");
  if (host.empty() && port.empty())
    return "";
  int number = std::atoi(port.c_str());
  if (host.empty() || number <= 0 || number > 65535)
    throw InputError(fmt::format(
        "expected MASTER_ADDR and MASTER_PORT in the environment, got '{}' and "
        "'{}'",
        host, port));
  bool isNumeric = host.find(':') != std::string::npos; // IPv6
  return fmt::format("{}{}{}:{}", isNumeric ? "[" : "", host,
                     isNumeric ? "]" : "",
                     number < 65535 ? number + 1 : number - 1);
}

/// Rank 0's identifier, sent to all others.
static NcclId spreadByMpi(const NcclApi &nccl) {
  std::unique_ptr<Communicator> mpi = makeMpiCommunicator();
  NcclId id = {};
  if (mpi->rank() == 0)
    nccl.check(nccl.uniqueId(&id), "identifier of the run");
  for (int rank = 1; rank < mpi->size(); ++rank)
    if (mpi->rank() == 0)
      mpi->wait(mpi->send(Stream::Step, rank, &id, sizeof id));
    else if (mpi->rank() == rank)
      mpi->wait(mpi->receive(Stream::Step, 0, &id, sizeof id));
  return id;
}

static NcclId identifier(const NcclApi &nccl, const NcclRank &rank) {
  std::string address = rendezvousAddress();
  if (address.empty() && rank.launcher == "mpirun")
    return spreadByMpi(nccl);
  if (address.empty() && rank.size > 1)
    throw InputError(fmt::format(
        "--ranks nccl under {}: expected NCCL_COMM_ID=HOST:PORT in the "
        "environment of all processes, or MASTER_ADDR and MASTER_PORT: an "
        "address of the machine of rank 0 and a free port there",
        rank.launcher.empty() ? "no launcher" : rank.launcher));
  // NCCL reads the address there; with it all ranks make one identifier.
  if (!address.empty())
    setenv("NCCL_COMM_ID", address.c_str(), /*overwrite=*/1);
  NcclId id = {};
  nccl.check(nccl.uniqueId(&id),
             address.empty() ? "identifier of the run" : address.c_str());
  return id;
}

/// Two streams would wait for each other in one queue.
static void checkQueues(const NcclPlan &plan, bool pairs) {
  std::string text = variable(kQueues);
  int queues = text.empty() ? kDefaultQueues : std::atoi(text.c_str());
  // The compute stream, that of second halves of pairs, copies and messages
  // without a route have one each.
  int needed = plan.mostRoutes() + 3 + pairs;
  if (needed > queues)
    throw InputError(fmt::format(
        "expected {} of at least {}, for the streams of a rank, got {}{}",
        kQueues, needed, queues,
        needed > kMostQueues ? "; CUDA has at most 32: expected a mesh with "
                               "fewer groups and stages"
                             : ""));
}

std::unique_ptr<NcclCommunicator>
makeNcclCommunicator(cuda::CudaDevice &device, const Program &program,
                     const NcclRank &rank, NcclCommunicator::Options options) {
  NcclPlan plan = planRoutes(program);
  if (device.gpu().isEmulated()) {
    options.records = false;
    return std::make_unique<NcclCommunicator>(
        device, emulatedNccl(), rank.rank, rank.size, NcclId{}, plan,
        rank.workspace, rank.workspaceBytes, options);
  }
  checkQueues(plan, hasPairs(program));
  const NcclApi &nccl = loadNccl();
  return std::make_unique<NcclCommunicator>(
      device, nccl, rank.rank, rank.size, identifier(nccl, rank), plan,
      rank.workspace, rank.workspaceBytes, options);
}

} // namespace rota
