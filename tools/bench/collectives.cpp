// SPDX-License-Identifier: Apache-2.0
//
// All-gather and reduce-scatter of 64 MB of f32.
//   bench-collectives            between 2 and 4 threads, against memcpy
//   bench-collectives mpi        one rank of mpirun's, over our communicator
//   bench-collectives mpi-own    the same by MPI's own collectives
// The last two print milliseconds; collectives.py runs and compares them.
#include "runtime/collective/local/LocalNetwork.h"
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "tools/bench/Limits.h"
#ifdef ROTA_HAVE_MPI
#include "runtime/collective/mpi/Library.h"
#endif

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <vector>

using namespace rota;

namespace {

constexpr int64_t kElements = 16 << 20; // elements of the whole tensor
constexpr int kRuns = 7;

Collective describe(Collective::Kind kind, int64_t size) {
  Collective collective;
  collective.kind = kind;
  collective.axes = {0};
  collective.size = size;
  return collective;
}

/// The best of a few runs in seconds, from the arrival of the last rank to the
/// end of the last.
template <typename Barrier, typename F>
double bestOf(Barrier &&barrier, F &&run) {
  double best = 1e30;
  for (int i = 0; i < kRuns; ++i) {
    barrier();
    double start = bench::seconds();
    run();
    barrier();
    best = std::min(best, bench::seconds() - start);
  }
  return best;
}

struct Times {
  double gather = 0.0, scatter = 0.0; // seconds
};

Times measure(Communicator &communicator) {
  RankGroup group =
      groupOf({{"all", communicator.size()}}, communicator.rank(), {0});
  Collective gather = describe(Collective::Kind::AllGather, kElements);
  Collective scatter = describe(Collective::Kind::ReduceScatter, kElements);
  Collective sum = describe(Collective::Kind::AllReduce, 1);
  std::vector<float> whole(kElements, 1.0f);
  std::vector<float> part(kElements / communicator.size(), 1.0f);
  float one = 1.0f;
  auto barrier = [&] {
    communicator.run(Stream::Step, sum, group, &one, &one);
  };
  Times times;
  times.gather = bestOf(barrier, [&] {
    communicator.run(Stream::Weights, gather, group, part.data(), whole.data());
  });
  times.scatter = bestOf(barrier, [&] {
    communicator.run(Stream::Gradients, scatter, group, whole.data(),
                     part.data());
  });
  return times;
}

void benchThreads() {
  double limit = bench::copyBandwidth(2);
  std::printf("memcpy on 2 threads: %.1f GB/s read and written\n", limit);
  for (int ranks : {2, 4}) {
    LocalNetwork network(ranks);
    Times times;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        Times own = measure(network.at(rank));
        if (rank == 0)
          times = own;
      });
    for (std::thread &thread : threads)
      thread.join();
    auto print = [&](const char *name, double seconds, int64_t elements) {
      double rate = 4.0 * ranks * elements / seconds * 1e-9;
      std::printf("%s over %d ranks: %6.1f ms, %.1f GB/s, %.2f of memcpy\n",
                  name, ranks, seconds * 1e3, rate, rate / limit);
    };
    print("all-gather    ", times.gather, 2 * kElements);
    print("reduce-scatter", times.scatter, kElements + kElements / ranks);
  }
}

void print(const Times &times) {
  std::printf("%.3f %.3f\n", times.gather * 1e3, times.scatter * 1e3);
}

void benchMpi() {
  std::unique_ptr<Communicator> communicator = makeMpiCommunicator();
  Times times = measure(*communicator);
  if (communicator->rank() == 0)
    print(times);
}

#ifdef ROTA_HAVE_MPI
template <typename T> T *find(const char *name) {
  return reinterpret_cast<T *>(dlsym(RTLD_DEFAULT, name));
}

void benchMpiOwn() {
  MpiLibrary mpi;
  int provided = 0, rank = 0, size = 1;
  mpi.initThread(nullptr, nullptr, MPI_THREAD_SINGLE, &provided);
  mpi.commRank(mpi.world, &rank);
  mpi.commSize(mpi.world, &size);
  auto allGather = find<decltype(MPI_Allgather)>("MPI_Allgather");
  auto reduceScatter =
      find<decltype(MPI_Reduce_scatter_block)>("MPI_Reduce_scatter_block");
  auto meet = find<decltype(MPI_Barrier)>("MPI_Barrier");
  auto type = static_cast<MPI_Datatype>(dlsym(RTLD_DEFAULT, "ompi_mpi_float"));
  auto sum = static_cast<MPI_Op>(dlsym(RTLD_DEFAULT, "ompi_mpi_op_sum"));
  int count = static_cast<int>(kElements / size);
  std::vector<float> whole(kElements, 1.0f), part(count, 1.0f);
  auto barrier = [&] { meet(mpi.world); };
  Times times;
  times.gather = bestOf(barrier, [&] {
    allGather(part.data(), count, type, whole.data(), count, type, mpi.world);
  });
  times.scatter = bestOf(barrier, [&] {
    reduceScatter(whole.data(), part.data(), count, type, sum, mpi.world);
  });
  if (rank == 0)
    print(times);
  mpi.finalize();
}
#endif

} // namespace

int main(int argc, char **argv) {
  std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "mpi")
    benchMpi();
#ifdef ROTA_HAVE_MPI
  else if (mode == "mpi-own")
    benchMpiOwn();
#endif
  else
    benchThreads();
}
