// SPDX-License-Identifier: Apache-2.0
//
// Collectives of one group on one CUDA stream. Members exchange blocks
// (collective/Blocks.h) by grouped sends and receives. Strided blocks pass
// through the workspace, and so do the terms of a sum, which a kernel adds in
// the group's order. So the bits are those of every other transport.
#ifndef ROTA_RUNTIME_COLLECTIVE_NCCL_GPUEXCHANGE_H
#define ROTA_RUNTIME_COLLECTIVE_NCCL_GPUEXCHANGE_H

#include "runtime/collective/Blocks.h"
#include "runtime/collective/nccl/NcclApi.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <functional>

namespace rota {

class GpuExchange {
public:
  /// A part of the workspace: device memory of that many bytes, the same number
  /// on all members. `zeros` is device memory with an element of zero.
  struct Workspace {
    char *base = nullptr;
    int64_t bytes = 0;
    const void *zeros = nullptr;
  };
  /// `handle` is null for a group of one rank. Throws InputError when the
  /// workspace is too small for so many members.
  GpuExchange(cuda::CudaDevice &device, const NcclApi &nccl, NcclHandle handle,
              cuda::StreamHandle stream, int members, Workspace workspace);

  /// Asks the stream for the collective. Throws RunError.
  void run(const Collective &collective, const RankGroup &group,
           const void *source, void *destination);

  /// Asks the stream for a copy of bytes.
  void copy(const void *source, void *destination, int64_t bytes);

private:
  using BlockOf = std::function<TransferBlock(int from, int to)>;
  /// The subject of the functions below.
  struct Work {
    const Collective &collective;
    int self;
    int64_t elementBytes;
    bool isWhole; // needs no workspace: one piece for each block
    const char *source;
    char *destination;
  };

  void fillPadding(const Work &work, const RankGroup &group);
  bool gatherDirectly(const Work &work);
  void exchange(const Work &work, const BlockOf &block);
  void reduce(const Work &work, const BlockOf &block);
  void combinePiece(const Work &work, const TransferRows &out);

  int64_t piecesOf(const Work &work, const TransferBlock &block) const;
  std::pair<int64_t, int64_t>
  piece(const Work &work, const TransferBlock &block, int64_t number) const;
  int64_t pieceElements(const Work &work) const {
    return slotBytes / work.elementBytes;
  }
  /// The pieces of the largest block to or from this rank.
  int64_t rounds(const Work &work, const BlockOf &block) const;

  /// Bytes that go to or come from another member in one piece.
  struct Part {
    int member;
    char *data;
    int64_t bytes;
    std::vector<TransferRows> places = {}; // destinations of a receive
  };
  void addSend(const Work &work, const TransferBlock &block, int member,
               int64_t round, std::vector<Part> &sends);
  void addReceive(const Work &work, const TransferBlock &block, int member,
                  int64_t round, std::vector<Part> &receives);
  void trade(const std::vector<Part> &sends, const std::vector<Part> &receives);
  const char *pack(const Work &work, const TransferRows &rows, int64_t begin,
                   int64_t end, char *slot);
  void unpack(const Work &work, const Part &part);
  void copyRows(int64_t elementBytes, const TransferRows &sourceRows,
                const char *source, const TransferRows &destinationRows,
                char *destination);
  char *sendSlot(int member) const { return slots + member * slotBytes; }
  char *receiveSlot(int member) const { return sendSlot(members + member); }

  cuda::CudaDevice &device;
  const NcclApi &nccl;
  const NcclHandle handle;
  const cuda::StreamHandle stream;
  const int members;
  const void *zeros;
  char *slots;       // for sends, then for receives, one for each member
  int64_t slotBytes; // size of one slot
  void *terms;       // device memory: a cuda::Term for each receive slot
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NCCL_GPUEXCHANGE_H
