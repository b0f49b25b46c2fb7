// SPDX-License-Identifier: Apache-2.0
//
// The part of the C ABI (Abi.h) for mixtures of experts: products of rows that
// lie in groups, one matrix for each group, and transfers of these rows.
#ifndef ROTA_RUNTIME_GROUPEDABI_H
#define ROTA_RUNTIME_GROUPEDABI_H

#include "runtime/Abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Sequences of `rows` rows in `blocks` equal blocks. In each block of sequence
/// b the first counts[b][x] rows are those of the block's first expert x, and
/// so on; block p has experts [p * experts / blocks, (p + 1) * experts /
/// blocks). More rows than a block has are an error, which fails the action.
typedef struct RotaGroupedGemm {
  int64_t batch, rows, experts, blocks;
  int64_t in, out;    // elements of a row of A, and of a row of B or C
  int32_t transposed; // B is stored as [experts, out, in]
  int32_t typeA;      // type of A and B: ROTA_F32 or ROTA_BF16
  int32_t typeC;
  int32_t accumulate; // adds to C
} RotaGroupedGemm;

/// C[b, r, out] = A[b, r, in] * B[x][in, out] for the rows of each expert x;
/// without accumulate, rows after those of a block's last expert become zero.
/// Sums are in f32; their order depends on the description and the counts
/// alone. The error at more rows than a block has counts experts from *offset
/// on, or from 0 where `offset` is null.
void rotaGroupedGemm(RotaContext *context, const RotaGroupedGemm *gemm,
                     const void *a, const void *b, const int32_t *counts,
                     const int32_t *offset, void *c);

/// C[x][in, out] = the sum over sequences and rows of expert x of A[b, r, in]^T
/// * B[b, r, out]; zero for an expert without rows. Sums are in f32, and
/// rounded once where C is bf16.
void rotaGroupedGemmGrad(RotaContext *context, const RotaGroupedGemm *gemm,
                         const void *a, const void *b, const int32_t *counts,
                         void *c);

/// The layout of the rows of experts on the ranks of a group where the division
/// moves between sequences and rows. A rank has either `sequences` sequences of
/// all blocks, those of the group's first rank first, or the sequences of all
/// ranks and `blocks` blocks of each. A block has room for `rows` rows;
/// `experts` counts say how many of its first are filled.
typedef struct RotaRowExchange {
  int64_t sequences, blocks, rows, experts;
  int64_t rowBytes;
  int64_t gathersRows; // 0: from ranks of sequences to ranks of blocks; 1: back
} RotaRowExchange;

/// Starts to move the filled rows of `input` to the ranks that have their
/// places in `output`, among the group of that collective of the program's
/// description, and clears the other rows of `output`. `sent` are the counts of
/// the blocks of `input`, `received` of `output`, in their order; a block with
/// counts above its room is full. Else as rotaStartCollective.
int64_t rotaStartRowExchange(RotaContext *context, int64_t number,
                             const RotaRowExchange *exchange, const void *input,
                             const int32_t *sent, const int32_t *received,
                             void *output);

#ifdef __cplusplus
}
#endif

#endif // ROTA_RUNTIME_GROUPEDABI_H
