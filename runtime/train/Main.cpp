// SPDX-License-Identifier: Apache-2.0
//
// The trainer's entry: a member of the archive of its own, taken by the linker
// when nothing else defines `main`.
#include "runtime/ProcessorAbi.h"
#include "runtime/files/Streams.h"
#include "runtime/train/Train.h"

int main(int argc, char **argv) {
  rota::prepareStreams();
  return rota::endOutput(rota::runTrainer(
      argc, argv, rotaProgram, rotaProgramSize, rotaTasks, rotaKernels,
      {rotaGpuCode, size_t(rotaGpuCodeCount)}, {rotaProcessor, rotaFeatures}));
}
