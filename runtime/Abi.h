// SPDX-License-Identifier: Apache-2.0
//
// The C ABI between compiled code and the runtime. The compiler emits tasks
// and kernels as native functions with these types; the runtime calls them and
// answers the services below. Nothing else crosses this border except the
// program's description as bytes (toBytes in runtime/program/Program.h).
#ifndef ROTA_RUNTIME_ABI_H
#define ROTA_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The resources that a running action borrows from its rank: a compute token
/// and access to the worker threads. Opaque to compiled code.
typedef struct RotaContext RotaContext;

/// The code of a kernel in the form of the device that the trainer was compiled
/// for: on the CPU a RotaCpuKernel, for GPUs the address of a RotaGpuLaunch. A
/// kernel computes rows of its outputs, which are independent of each other, so
/// no split of them changes a bit.
typedef const void *RotaKernel;

/// Computes rows [begin, end). `args` holds one pointer per operand, then one
/// per result.
typedef void (*RotaCpuKernel)(void *const *args, int64_t begin, int64_t end);

/// The shape of all launches of one GPU kernel. Its arguments are the pointers
/// that rotaLaunch gets.
typedef struct RotaGpuLaunch {
  const char *name;    // name of the function in each RotaGpuCode
  uint32_t grid[3];    // blocks
  uint32_t block;      // threads of a block
  int64_t sharedBytes; // dynamic shared memory of a block
  int64_t arguments;   // pointers
  // A kernel that does many such launches at once, each of them a row of a
  // table; null: there is none. Only of a launch that is all that its task
  // does. The kernel of a table has no table and no grid of its own, and gets
  // (const i32 *first, const i64 *rows, i64 count, i64 trips): the first block
  // of each of `count` launches, ascending, from 0 on; of each its tableRows
  // and its arguments; and the least number with 2^trips >= count.
  const struct RotaGpuLaunch *table;
  int64_t tableRows, tableBlocks; // rows and blocks of this launch there
  // Not 0: argument `noteAt` is memory that the device gives, for a FullExperts
  // (runtime/device/FullExperts.h), and the next one action * 2^32 + layer of
  // the work.
  int64_t noteAt;
  int64_t ownSharedBytes; // sharedBytes in the OWN forms of code; 0: the same
} RotaGpuLaunch;

/// The most arguments of a launch that has a table.
enum { ROTA_TABLE_ARGUMENTS = 30 };

/// ROTA_GPU_HOST is code for the emulated GPU: an array of addresses of
/// RotaSimtKernel (runtime/device/simt/Services.h) that ends with null. The OWN
/// forms have instructions of one architecture alone (sm_90a).
enum {
  ROTA_GPU_PTX = 0,
  ROTA_GPU_CUBIN = 1,
  ROTA_GPU_HOST = 2,
  ROTA_GPU_OWN_PTX = 3,
  ROTA_GPU_OWN_CUBIN = 4
};

/// All GPU kernels of a trainer, and those of runtime/device/cuda/
/// ServiceKernels.h, in one form.
typedef struct RotaGpuCode {
  int32_t form;         // ROTA_GPU_PTX, ... Both forms of PTX end with 0
  int32_t architecture; // 90 for sm_90; 0 for ROTA_GPU_HOST
  const void *data;
  int64_t bytes; // the 0 or null at the end included
} RotaGpuCode;

/// The fields of RotaFrame in order, each as FIELD(its name in C, its name in
/// the compiler).
#define ROTA_FRAME_FIELDS(FIELD)                                               \
  FIELD(parameters, Parameters) /* copies to compute with of one instance */   \
  FIELD(gradients, Gradients)   /* accumulators of the same, f32 or bf16 */    \
  FIELD(residuals, Residuals)   /* written by forward, read by backward */     \
  FIELD(cotangents, Cotangents) /* from backward_input to backward_weight */   \
  FIELD(input, Input)           /* activation that enters */                   \
  FIELD(output, Output)         /* activation that leaves, same shape */       \
  FIELD(outputCotangent, OutputCotangent) /* of output, enters backward */     \
  FIELD(inputCotangent, InputCotangent)   /* of input, leaves backward */      \
  FIELD(data, Data)           /* tokens (embed) or targets (loss) */           \
  FIELD(loss, Loss)           /* 2 x f32: sum and weight, by loss tasks */     \
  FIELD(constants, Constants) /* filled by the runtime at start */             \
  FIELD(scratch, Scratch)     /* temporaries, dead between calls */            \
  FIELD(offloaded, Offloaded) /* residuals that rest in host memory */         \
  FIELD(auxiliary, Auxiliary) /* f32 sums of auxiliary losses, by forward */   \
  FIELD(observed, Observed)   /* i32 tables that are reported, by forward */   \
  FIELD(positions, Positions) /* i32 of tokens in their documents */

/// The blocks that a task works on: base pointers into the rank's arena, each
/// 64-byte aligned. Offsets inside a block are constants of the compiled task.
/// A block that the task does not use is null. Parameter::updateTask of
/// runtime/program/Parameter.h says what the fields are to tasks of a step's
/// end. Activations are [microbatch, sequence, embed].
typedef struct RotaFrame {
#define ROTA_FRAME_POINTER(name, compilerName) void *name;
  ROTA_FRAME_FIELDS(ROTA_FRAME_POINTER)
#undef ROTA_FRAME_POINTER
} RotaFrame;

/// A task runs one function of the model (a layer's forward, say) once.
typedef void (*RotaTask)(RotaContext *context, const RotaFrame *frame);

/// Runs `kernel` over rows [0, rows), in pieces whose bounds are multiples of
/// `grain` (the last may be short). What the task does next sees all rows done.
void rotaLaunch(RotaContext *context, RotaKernel kernel, void *const *args,
                int64_t rows, int64_t grain);

/// Copies bytes between places of the frame's blocks that do not overlap.
void rotaCopy(RotaContext *context, const void *source, void *destination,
              int64_t bytes);

/// Checks that each of the `count` numbers at `indices` is at least `least` and
/// below `bound`. Otherwise the action fails, with a message that names the
/// first number that is not; the rest of the task runs, and its kernels leave
/// such numbers out.
void rotaCheckIndices(RotaContext *context, const int32_t *indices,
                      int64_t count, int64_t least, int64_t bound);

enum { ROTA_F32 = 0, ROTA_BF16 = 1, ROTA_I32 = 2 };

/// C[b] = op(A[b]) * op(B[b]) (+ C[b] when accumulate), row-major.
/// op(A) is [m, k], op(B) is [k, n], C is [m, n]. A transposed operand is
/// stored as [k, m] (A) or [n, k] (B). `ld*` is the distance between rows as
/// stored and `stride*` the distance between batches, both in elements.
/// Accumulation is in f32 whatever the types. The order of each element's sum
/// depends on this description alone, never on the number of threads.
typedef struct RotaGemm {
  int64_t batch, m, n, k;
  int64_t lda, ldb, ldc;
  int64_t strideA, strideB, strideC;
  int32_t transposeA, transposeB;
  int32_t typeA, typeB, typeC; // ROTA_F32 or ROTA_BF16
  int32_t accumulate;
} RotaGemm;

void rotaGemm(RotaContext *context, const RotaGemm *gemm, const void *a,
              const void *b, void *c);

/// Starts the collective of that number in the program's description on this
/// rank's group: `input` and `output` are the whole tensor or this rank's part,
/// as its kind says, and overlap only where it works in place. Returns a number
/// for rotaWaitCollective, which waits for it: until then `input` stays as it
/// is and `output` is not read. Each that is started is waited for once, in the
/// same task. Every rank of the group starts the same numbers in the same
/// order. The rank's compute token is given back while it waits for others.
int64_t rotaStartCollective(RotaContext *context, int64_t number,
                            const void *input, void *output);
void rotaWaitCollective(RotaContext *context, int64_t started);

/// The definitions in a trainer's object file. The arrays are indexed by
/// numbers in the program's description.
extern const char rotaProgram[];
extern const int64_t rotaProgramSize; // its bytes
extern const RotaTask rotaTasks[];
extern const RotaKernel rotaKernels[];
extern const RotaGpuCode rotaGpuCode[];
extern const int64_t rotaGpuCodeCount; // 0 in a trainer for the CPU

#ifdef __cplusplus
}
#endif

#endif // ROTA_RUNTIME_ABI_H
