// SPDX-License-Identifier: Apache-2.0
//
// The index of a Megatron data set: NAME.idx beside the tokens in NAME.bin, as
// megatron/core/datasets/indexed_dataset.py of NVIDIA/Megatron-LM writes it. In
// little endian:
//
//     offset  what
//     0       "MMIDIDX\0\0"
//     9       uint64: version, 1
//     17      uint8: type of a token; 1 uint8, 4 int32, 5 int64, 8 uint16
//     18      uint64: S, the number of sequences
//     26      uint64: D, the number of document boundaries
//     34      int32 [S]: tokens of each sequence
//     34+4S   int64 [S]: offset in bytes of each sequence in NAME.bin
//     34+12S  int64 [D]: sequence number at each document boundary, 0 to S
//             int8 [S]: modes, of multimodal data sets alone
//
// Sequences follow each other without gaps, so that NAME.bin is one array.
#ifndef ROTA_RUNTIME_DATA_MEGATRONINDEX_H
#define ROTA_RUNTIME_DATA_MEGATRONINDEX_H

#include "runtime/data/TokenFormat.h"

namespace rota {

/// The path of the index that belongs to NAME.bin; empty for other names.
std::string megatronIndexPath(const std::string &path);

/// True for a file that begins as an index does.
bool isMegatronIndex(const DataFile &file);

/// Reads the index of `tokens`. Throws InputError with the numbers when it is
/// cut off, of an unknown version or type, or does not describe that file. The
/// first and the last sequence are always checked, all of them in an index of
/// up to 64 MiB.
TokenLayout readMegatronIndex(const DataFile &index, const DataFile &tokens);

} // namespace rota

#endif // ROTA_RUNTIME_DATA_MEGATRONINDEX_H
