// SPDX-License-Identifier: Apache-2.0
//
// The part of the C ABI (Abi.h) that says which processor the code of a trainer
// is made for.
#ifndef ROTA_RUNTIME_PROCESSORABI_H
#define ROTA_RUNTIME_PROCESSORABI_H

/// X("name") for each feature of a processor that compiled code may use, where
/// processors differ in it: with the names of LLVM, which are those of
/// __builtin_cpu_supports, too. AMX is not among them: the runtime alone
/// multiplies with it, where the processor has it.
#define ROTA_PROCESSOR_FEATURES(X)                                             \
  X("sse3")                                                                    \
  X("ssse3")                                                                   \
  X("sse4.1")                                                                  \
  X("sse4.2")                                                                  \
  X("sse4a")                                                                   \
  X("popcnt")                                                                  \
  X("lzcnt")                                                                   \
  X("movbe")                                                                   \
  X("bmi")                                                                     \
  X("bmi2")                                                                    \
  X("avx")                                                                     \
  X("avx2")                                                                    \
  X("f16c")                                                                    \
  X("fma")                                                                     \
  X("fma4")                                                                    \
  X("xop")                                                                     \
  X("gfni")                                                                    \
  X("avx512f")                                                                 \
  X("avx512cd")                                                                \
  X("avx512bw")                                                                \
  X("avx512dq")                                                                \
  X("avx512vl")                                                                \
  X("avx512ifma")                                                              \
  X("avx512vbmi")                                                              \
  X("avx512vbmi2")                                                             \
  X("avx512vnni")                                                              \
  X("avx512bitalg")                                                            \
  X("avx512vpopcntdq")                                                         \
  X("avx512bf16")

#ifdef __cplusplus
extern "C" {
#endif

/// Definitions in a trainer's object file: the name of its processor, and the
/// features of the list that this one has, with commas in between.
extern const char rotaProcessor[];
extern const char rotaFeatures[];

#ifdef __cplusplus
}
#endif

#endif // ROTA_RUNTIME_PROCESSORABI_H
