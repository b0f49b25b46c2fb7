// SPDX-License-Identifier: Apache-2.0
//
// The steps that a function's task consists of, and the scratch that they use.
#ifndef ROTA_LOWERING_EXECUTABLE_BUFFERS_H
#define ROTA_LOWERING_EXECUTABLE_BUFFERS_H

#include "lowering/executable/Collectives.h"
#include "lowering/executable/FixedAddresses.h"
#include "lowering/executable/Gemm.h"
#include "lowering/executable/GroupedGemm.h"
#include "lowering/executable/TaskLaunches.h"
#include "lowering/kernels/KernelPlan.h"

namespace rota::lowering {

/// Numbers that index a tensor: `count` of i32, from `least` to below `bound`.
struct IndexCheck {
  int64_t count = 0, least = 0, bound = 0;
};

/// One piece of a task's code.
struct TaskStep {
  enum class Kind {
    Check,       // `indices` of operand 0
    Kernels,     // `kernels` on operands, results and temporaries
    Gemm,        // `gemm` of operands 0 and 1 into result 0
    GroupedGemm, // `grouped` of operands 0 and 1, counts 2 and, where there is
                 // one, an offset 3, into result 0
    Start,       // starts number `collective` of operand 0 into result 0
    StartRows,   // the same of rows, with counts 1 and 2: `exchange`
    Wait,        // waits for what step `started` started
    Copy         // `bytes` of operand 0 into result 0
  } kind;
  mlir::Location loc;
  IndexCheck indices{};
  KernelPlan kernels{};
  GemmPlan gemm{};
  GroupedGemmPlan grouped{};
  int collective = -1;
  int started = -1;
  RotaRowExchange exchange{};
  int64_t bytes = 0;
  llvm::SmallVector<BufferAddress> operands{}, results{}, temporaries{};
};

struct FunctionBuffers {
  std::vector<TaskStep> steps; // in order
  TaskLaunches launches;       // of these steps, on a GPU
  int64_t scratchBytes = 0;
};

/// Turns `function`, whose ops answer TaskOpInterface, into steps. Values have
/// their addresses by FixedAddresses, or lie in scratch, which is reused by
/// best fit as values die; an op overwrites a dying operand where it can work
/// in place. A collective is started where it stands and waited for before the
/// first use of its result; the bytes of both stay until then. A copy is left
/// only for a result that is an argument, a parameter or another result. Fails
/// with an error at an op that cannot be lowered.
llvm::FailureOr<FunctionBuffers>
assignBuffers(mlir::func::FuncOp function, const FunctionAddresses &addresses,
              ConstantTables &tables, CollectiveTable &collectives,
              KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_BUFFERS_H
