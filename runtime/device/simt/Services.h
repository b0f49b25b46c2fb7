// SPDX-License-Identifier: Apache-2.0
//
// The C ABI between GPU kernels that lowering/simt/ compiled for the host and
// their emulator: the description of a kernel, and the services that stand for
// a GPU's registers, barriers, collectives of a warp and asynchronous copies.
//
// Only an emulated thread may call a service. `site` is the number of the
// calling instruction in RotaSimtKernel::sites, plus 1; 0 is none. Pointers are
// host addresses, of shared memory too.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_SERVICES_H
#define ROTA_RUNTIME_DEVICE_SIMT_SERVICES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The most bytes of variables that a function of a kernel has on its stack.
enum { ROTA_SIMT_LOCAL_BYTES = 128 << 10 };

/// A kernel in an object file, under the kernel's name and ".simt".
typedef struct RotaSimtKernel {
  /// Runs one thread. arguments[i] is the address of the kernel's argument i,
  /// as cuLaunchKernel takes them.
  void (*entry)(void *const *arguments);
  const char *name;
  /// The place in the source of each instruction that calls a service, and its
  /// kind: "softmax.mlir:12:8 (load)".
  const char *const *sites;
  int64_t siteCount;
  /// Bytes of shared memory of fixed size. Memory whose size the launch gives
  /// follows them.
  int64_t sharedBytes;
  /// Whether the code calls rotaSimtRead and rotaSimtWrite.
  int32_t checked;
  int32_t argumentCount;
  const int32_t *argumentBytes; // by argument
  int32_t mostThreads;          // of a block, the launch bound; 0: none
} RotaSimtKernel;

/// Indices and sizes; dimension 0 is x, 1 is y, 2 is z.
uint32_t rotaSimtThreadIndex(uint32_t dimension);
uint32_t rotaSimtBlockIndex(uint32_t dimension);
uint32_t rotaSimtBlockSize(uint32_t dimension);
uint32_t rotaSimtGridSize(uint32_t dimension);
uint32_t rotaSimtLane(void);
uint32_t rotaSimtWarp(void);

/// The first byte of the block's shared memory.
void *rotaSimtSharedMemory(void);

/// Checks an access before it happens. Only kernels compiled with checks call
/// these two. `value` is what the write stores, or null for a value that is not
/// known: threads may write equal values to one place at one site.
void rotaSimtRead(const void *address, uint64_t bytes, uint64_t alignment,
                  uint32_t site);
void rotaSimtWrite(void *address, uint64_t bytes, uint64_t alignment,
                   const void *value, uint32_t site);

/// barrier.cta.sync.aligned.all: waits until all threads of the block have
/// come, all lanes of a warp to the same instruction.
void rotaSimtBarrier(uint32_t site);

/// Collectives of the lanes in `mask`.
enum RotaSimtShuffleKind {
  ROTA_SIMT_SHUFFLE_BUTTERFLY = 0,
  ROTA_SIMT_SHUFFLE_INDEX = 1
};
void rotaSimtWarpBarrier(uint32_t mask, uint32_t site);
/// The value of another lane: the one whose number differs in the bits of
/// `operand`, or whose number that is.
uint32_t rotaSimtShuffle(uint32_t kind, uint32_t mask, uint32_t value,
                         uint32_t operand, uint32_t site);
uint32_t rotaSimtBallot(uint32_t mask, uint32_t predicate, uint32_t site);

/// ldmatrix of 2 or 4 matrices of 8 x 8 elements of 2 bytes. `row` is the
/// address of this lane's row; `result` has as many words as matrices.
void rotaSimtLoadMatrix(uint32_t *result, const void *row, uint32_t matrices,
                        uint32_t transpose, uint32_t site);

/// The fragments of one lane for mma.m16n8k16 on bf16 with f32 sums.
typedef struct RotaSimtFragments {
  uint32_t a[4]; // [16, 16], two elements in a word
  uint32_t b[2]; // [16, 8]
  float c[4];    // [16, 8]
} RotaSimtFragments;
/// result = a x b + c; `result` has the layout of c.
void rotaSimtMultiplyBf16(float *result, const RotaSimtFragments *fragments,
                          uint32_t site);

/// cp.async: copies `sourceBytes` and fills with zeros up to `bytes`, at the
/// latest moment that is allowed: when the thread waits for the copy's group.
void rotaSimtCopyAsync(void *to, const void *from, uint32_t bytes,
                       uint32_t sourceBytes, uint32_t site);
void rotaSimtCommitCopies(void);
/// Waits until at most `groups` of the thread's groups are not complete.
void rotaSimtWaitCopies(uint32_t groups);

/// Products of warpgroups (wgmma); only kernels compiled with checks call
/// these. A product reads shared memory, as rotaSimtRead checks it, until the
/// thread has waited for the product's group. Its sums are complete from then
/// on: until they are taken, other numbers stand for them.
void rotaSimtProductRead(const void *address, uint64_t bytes,
                         uint64_t alignment, uint32_t site);
void rotaSimtHoldSums(float *sums, uint32_t count, uint32_t site);
/// `mayBePending`: the sums are those that another product adds to.
void rotaSimtTakeSums(float *sums, uint32_t count, uint32_t mayBePending,
                      uint32_t site);
void rotaSimtCommitProducts(void);
/// Waits until at most `groups` of the thread's groups are not complete.
void rotaSimtWaitProducts(uint32_t groups);

/// Functions that a GPU approximates, rounded as the host's C library does, or
/// up to 2 units in the last place off (perturbApproximations in Simt.h).
float rotaSimtExp2(float x);
float rotaSimtLog2(float x);
float rotaSimtSqrt(float x);
float rotaSimtReciprocalSqrt(float x);
float rotaSimtReciprocal(float x);

#ifdef __cplusplus
}
#endif

#endif // ROTA_RUNTIME_DEVICE_SIMT_SERVICES_H
