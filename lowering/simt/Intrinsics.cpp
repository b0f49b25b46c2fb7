// SPDX-License-Identifier: Apache-2.0
//
// The service that each intrinsic of NVPTX becomes a call of.
#include "lowering/simt/Steps.h"
#include "runtime/device/simt/Services.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;

namespace rota::lowering {
namespace {

/// Each function returns what stands for the intrinsic, of the same type, or
/// null when the intrinsic is not one of its own. Intrinsics without a result
/// return any value.
class Emulation {
public:
  Emulation(IntrinsicInst &call, ServiceCalls &services)
      : call(call), services(services), builder(&call) {}

  Value *find() {
    for (auto group :
         {&Emulation::registers, &Emulation::arithmetic, &Emulation::barriers,
          &Emulation::votes, &Emulation::shuffles, &Emulation::copies,
          &Emulation::matrices})
      if (Value *value = (this->*group)())
        return value;
    return nullptr;
  }

private:
  Value *registers();
  Value *arithmetic();
  Value *barriers();
  Value *votes();
  Value *shuffles();
  Value *copies();
  Value *matrices();

  Value *shuffle(RotaSimtShuffleKind kind);
  Value *copy(uint32_t bytes, Value *sourceBytes);
  Value *loadMatrix(uint32_t matrices, bool transpose);
  Value *multiply();

  Value *integer(StringRef service, ArrayRef<Value *> operands) {
    return services.call(builder, service, builder.getInt32Ty(), operands);
  }
  Value *action(StringRef service, ArrayRef<Value *> operands) {
    return services.call(builder, service, builder.getVoidTy(), operands);
  }
  Value *nothing() { return PoisonValue::get(builder.getInt1Ty()); }
  Value *operand(unsigned index) { return call.getArgOperand(index); }
  Value *site(StringRef kind) { return services.site(call, kind); }
  Value *i32(uint32_t value) { return services.i32(value); }

  IntrinsicInst &call;
  ServiceCalls &services;
  IRBuilder<> builder;
};

Value *Emulation::registers() {
  auto index = [&](StringRef service, uint32_t dimension) {
    return integer(service, {i32(dimension)});
  };
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_read_ptx_sreg_tid_x:
    return index("rotaSimtThreadIndex", 0);
  case Intrinsic::nvvm_read_ptx_sreg_tid_y:
    return index("rotaSimtThreadIndex", 1);
  case Intrinsic::nvvm_read_ptx_sreg_tid_z:
    return index("rotaSimtThreadIndex", 2);
  case Intrinsic::nvvm_read_ptx_sreg_ntid_x:
    return index("rotaSimtBlockSize", 0);
  case Intrinsic::nvvm_read_ptx_sreg_ntid_y:
    return index("rotaSimtBlockSize", 1);
  case Intrinsic::nvvm_read_ptx_sreg_ntid_z:
    return index("rotaSimtBlockSize", 2);
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    return index("rotaSimtBlockIndex", 0);
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_y:
    return index("rotaSimtBlockIndex", 1);
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_z:
    return index("rotaSimtBlockIndex", 2);
  case Intrinsic::nvvm_read_ptx_sreg_nctaid_x:
    return index("rotaSimtGridSize", 0);
  case Intrinsic::nvvm_read_ptx_sreg_nctaid_y:
    return index("rotaSimtGridSize", 1);
  case Intrinsic::nvvm_read_ptx_sreg_nctaid_z:
    return index("rotaSimtGridSize", 2);
  case Intrinsic::nvvm_read_ptx_sreg_laneid:
    return integer("rotaSimtLane", {});
  case Intrinsic::nvvm_read_ptx_sreg_warpid:
    return integer("rotaSimtWarp", {});
  case Intrinsic::nvvm_read_ptx_sreg_warpsize:
    return i32(32);
  default:
    return nullptr;
  }
}

/// Approximations, of f32 alone.
Value *Emulation::arithmetic() {
  if (!call.getType()->isFloatTy())
    return nullptr;
  auto function = [&](StringRef service) {
    return services.call(builder, service, call.getType(), {operand(0)});
  };
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_ex2_approx:
  case Intrinsic::nvvm_ex2_approx_ftz:
    return function("rotaSimtExp2");
  case Intrinsic::nvvm_lg2_approx_f:
  case Intrinsic::nvvm_lg2_approx_ftz_f:
    return function("rotaSimtLog2");
  case Intrinsic::nvvm_sqrt_approx_f:
  case Intrinsic::nvvm_sqrt_approx_ftz_f:
  case Intrinsic::nvvm_sqrt_rn_f:
    return function("rotaSimtSqrt");
  case Intrinsic::nvvm_rsqrt_approx_f:
  case Intrinsic::nvvm_rsqrt_approx_ftz_f:
    return function("rotaSimtReciprocalSqrt");
  case Intrinsic::nvvm_rcp_approx_ftz_f:
  case Intrinsic::nvvm_rcp_rn_f:
    return function("rotaSimtReciprocal");
  default:
    return nullptr;
  }
}

Value *Emulation::barriers() {
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_barrier_cta_sync_aligned_all: {
    auto *number = dyn_cast<ConstantInt>(operand(0));
    return number && number->isZero()
               ? action("rotaSimtBarrier", {site("barrier")})
               : nullptr;
  }
  case Intrinsic::nvvm_bar_warp_sync:
    return action("rotaSimtWarpBarrier", {operand(0), site("bar.warp.sync")});
  default:
    return nullptr;
  }
}

/// Lanes outside the mask have no vote.
Value *Emulation::votes() {
  auto ballot = [&](Value *predicate) {
    return integer("rotaSimtBallot",
                   {operand(0),
                    builder.CreateZExt(predicate, i32(0)->getType()),
                    site("vote.sync")});
  };
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_vote_ballot_sync:
    return ballot(operand(1));
  case Intrinsic::nvvm_vote_any_sync:
    return builder.CreateICmpNE(ballot(operand(1)), i32(0));
  default:
    return nullptr;
  }
}

Value *Emulation::shuffles() {
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_shfl_sync_bfly_i32:
  case Intrinsic::nvvm_shfl_sync_bfly_f32:
    return shuffle(ROTA_SIMT_SHUFFLE_BUTTERFLY);
  case Intrinsic::nvvm_shfl_sync_idx_i32:
  case Intrinsic::nvvm_shfl_sync_idx_f32:
    return shuffle(ROTA_SIMT_SHUFFLE_INDEX);
  default:
    return nullptr;
  }
}

/// Among all lanes of a warp.
Value *Emulation::shuffle(RotaSimtShuffleKind kind) {
  auto *control = dyn_cast<ConstantInt>(operand(3));
  if (!control || control->getZExtValue() != 31)
    return nullptr;
  Value *value = builder.CreateBitCast(operand(1), builder.getInt32Ty());
  Value *result = integer("rotaSimtShuffle", {i32(kind), operand(0), value,
                                              operand(2), site("shfl.sync")});
  return builder.CreateBitCast(result, operand(1)->getType());
}

Value *Emulation::copies() {
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_cp_async_ca_shared_global_4:
    return copy(4, i32(4));
  case Intrinsic::nvvm_cp_async_ca_shared_global_4_s:
    return copy(4, operand(2));
  case Intrinsic::nvvm_cp_async_cg_shared_global_16:
    return copy(16, i32(16));
  case Intrinsic::nvvm_cp_async_cg_shared_global_16_s:
    return copy(16, operand(2));
  case Intrinsic::nvvm_cp_async_commit_group:
    return action("rotaSimtCommitCopies", {});
  case Intrinsic::nvvm_cp_async_wait_group:
    return action("rotaSimtWaitCopies", {operand(0)});
  default:
    return nullptr;
  }
}

Value *Emulation::copy(uint32_t bytes, Value *sourceBytes) {
  return action("rotaSimtCopyAsync", {operand(0), operand(1), i32(bytes),
                                      sourceBytes, site("cp.async")});
}

Value *Emulation::matrices() {
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16:
    return loadMatrix(2, false);
  case Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16:
    return loadMatrix(2, true);
  case Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16:
    return loadMatrix(4, false);
  case Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16:
    return loadMatrix(4, true);
  case Intrinsic::nvvm_mma_m16n8k16_row_col_bf16:
    return multiply();
  default:
    return nullptr;
  }
}

Value *Emulation::loadMatrix(uint32_t matrices, bool transpose) {
  Value *result = services.slot(*call.getFunction(), call.getType());
  action("rotaSimtLoadMatrix",
         {result, operand(0), i32(matrices), i32(transpose), site("ldmatrix")});
  return builder.CreateLoad(call.getType(), result);
}

/// Operands and RotaSimtFragments have the same order: a, b, c.
Value *Emulation::multiply() {
  Function &function = *call.getFunction();
  SmallVector<Type *> types;
  for (Value *argument : call.args())
    types.push_back(argument->getType());
  auto *type = StructType::get(call.getContext(), types);
  Value *fragments = services.slot(function, type);
  for (auto [index, argument] : enumerate(call.args()))
    builder.CreateStore(argument,
                        builder.CreateStructGEP(type, fragments, index));
  Value *result = services.slot(function, call.getType());
  action("rotaSimtMultiplyBf16", {result, fragments, site("mma.sync")});
  return builder.CreateLoad(call.getType(), result);
}

} // namespace

LogicalResult emulateIntrinsics(mlir::Location loc, Function &function,
                                ServiceCalls &services) {
  SmallVector<CallBase *> calls;
  for (Instruction &instruction : instructions(function))
    if (auto *call = dyn_cast<CallBase>(&instruction))
      calls.push_back(call);
  for (CallBase *call : calls) {
    Function *callee = call->getCalledFunction();
    if (!callee)
      return unknownInstruction(
          loc, *call, call->isInlineAsm() ? "inline assembly" : "pointer");
    auto *intrinsic = dyn_cast<IntrinsicInst>(call);
    if (!callee->isDeclaration() || callee->getName().starts_with("rotaSimt") ||
        (intrinsic && !callee->isTargetIntrinsic()))
      continue;
    Value *value = intrinsic ? Emulation(*intrinsic, services).find() : nullptr;
    if (!value)
      return unknownInstruction(loc, *call, callee->getName());
    if (!call->getType()->isVoidTy())
      call->replaceAllUsesWith(value);
    call->eraseFromParent();
  }
  return success();
}

} // namespace rota::lowering
