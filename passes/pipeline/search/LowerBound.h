// SPDX-License-Identifier: Apache-2.0
//
// A makespan that no timeline is shorter than.
#ifndef ROTA_PASSES_PIPELINE_SEARCH_LOWERBOUND_H
#define ROTA_PASSES_PIPELINE_SEARCH_LOWERBOUND_H

#include "passes/pipeline/search/Problem.h"

namespace rota::pipe {

/// The largest of these bounds, over all ranks and over the chunks c of a rank.
/// The rank's chunks from c on are its later ones.
///
///   fill(c)    the path of a microbatch to the F of c: no action of c or of a
///              later chunk starts before it
///   drain(c)   the shortest time after the last backward of c: the rest of the
///              path, and the W of a chunk on it. It is less for c than for a
///              later chunk
///
///   path       fill(c) + M * (F and B, or F and I, of the rank's chunks from c
///              on) + drain(c). These actions start at fill(c) at the earliest.
///              The last of them is a backward, since each F has a backward on
///              the same rank; after it at least drain(c) is left.
///   work       with split backwards: fill(c) + M * (F, I and W of the rank's
///              chunks from c on). A W may be the last action of all.
///   memory     with a bound of A activations, for the first chunk c of a rank:
///              fill(c) + (M * life + ramps) / A + drain(c), without the drain
///              where backwards are split. life is the sum over the rank's
///              chunks of the shortest time from the start of F to the end of
///              B (or W), for which an activation is held; A of them fit at a
///              time. Of the A places the i-th is used from the end of i other
///              F on at the earliest, and left i B (or W) before the last at
///              the latest: ramps = A * (A - 1) / 2 * (F + B, or F + W, the
///              least of the rank's chunks each), if there are A activations.
///   rounds     with a bound of A and one chunk c on each rank: microbatch m +
///   A
///              enters c after m has left it. With M - 1 = q * A + r: the end
///              of microbatch r + q * life + drain(c). Microbatch r ends at the
///              earliest when some later chunk has run F and B (or I) r + 1
///              times, and the path back to c has followed.
double lowerBoundOf(const Problem &problem);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SEARCH_LOWERBOUND_H
