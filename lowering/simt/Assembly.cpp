// SPDX-License-Identifier: Apache-2.0
//
// The assembly of lowering/gpu/WarpgroupInstructions as loads and
// mma.sync, which have an emulation. A warp of a warpgroup multiplies its own
// 16 rows, in the layout of mma.sync, with all of the right matrix, when it
// starts: the earliest that a GPU may. With checks the emulator keeps the sums
// until they have been waited for, and knows what the product reads until then.
#include "lowering/simt/Steps.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Regex.h"

using namespace llvm;

namespace rota::lowering {
namespace {

/// A matrix in shared memory by its descriptor, from `offset` units of 16 bytes
/// on.
struct Described {
  Value *descriptor = nullptr; // i64
  int64_t offset = 0;
};

class Expansion {
public:
  Expansion(CallBase &call, GlobalVariable *shared, ServiceCalls *checks)
      : call(call), builder(&call), shared(shared), checks(checks) {}

  /// The results of the assembly as a struct; null where it is unknown.
  Value *expand();

private:
  /// Reads a line that changes left, right or sums; false for an unknown one.
  bool expandLine(StringRef line);
  bool multiply(unsigned columns, StringRef left, bool isFirst,
                bool leftByDepth, bool rightByDepth);
  SmallVector<Value *> leftWords(StringRef left, bool byDepth);
  /// Word `i` of this lane in the fragment of 16 rows from `firstRow` on.
  Value *leftWord(Value *firstRow, unsigned i, bool byDepth);
  Value *rightWord(unsigned column, unsigned half, bool byDepth);
  /// The word of this lane's two neighbouring depths of eight, `half` eights
  /// further, of a matrix whose rows are depths; `own` bytes from a row's
  /// begin.
  Value *wordByDepth(const Described &matrix, Value *own, unsigned half);

  /// Calls a service that changes the sums in memory, with its other operands.
  void callOnSums(StringRef service, ArrayRef<Value *> operands);
  void takeSums(bool mayBePending);
  void commit();
  void wait(StringRef pending);

  Value *i32(uint32_t value) { return builder.getInt32(value); }
  /// Operand `$number` of the text: results come first.
  Value *operand(StringRef number) {
    unsigned index = 0;
    number.getAsInteger(10, index);
    return call.getArgOperand(index - results());
  }
  unsigned results() const {
    auto *type = dyn_cast<StructType>(call.getType());
    return type ? type->getNumElements() : 0;
  }
  /// A field of a descriptor, in bytes (i32).
  Value *field(Value *descriptor, unsigned bit);
  /// Loads `type` from the matrix, `distance` bytes (i32) from its begin.
  Value *load(Type *type, const Described &from, Value *distance);
  /// The sum of x and number * step.
  Value *add(Value *x, Value *step, Value *number) {
    return builder.CreateAdd(x, builder.CreateMul(step, number));
  }

  CallBase &call;
  IRBuilder<> builder;
  GlobalVariable *shared;
  ServiceCalls *checks; // null without checks
  Described left, right;
  SmallVector<Value *> sums;
  Value *lane = nullptr, *row = nullptr; // i32; row of the warp's first in 64
};

Value *Expansion::field(Value *descriptor, unsigned bit) {
  constexpr uint32_t mask = (1 << 14) - 1;
  Value *shifted = builder.CreateLShr(descriptor, bit);
  Value *units = builder.CreateAnd(
      builder.CreateTrunc(shifted, builder.getInt32Ty()), mask);
  return builder.CreateMul(units, i32(16));
}

Value *Expansion::load(Type *type, const Described &from, Value *distance) {
  // The address is cut to 18 bits, and swizzled: bits 4 to 6 by bits 7 to 9.
  constexpr uint32_t mask = (1 << 18) - 1;
  Value *place = builder.CreateAdd(
      builder.CreateAdd(field(from.descriptor, 0), i32(16 * from.offset)),
      distance);
  Value *bits = builder.CreateAnd(builder.CreateLShr(place, 7), 7);
  place = builder.CreateXor(place, builder.CreateShl(bits, 4));
  Value *begin = builder.CreatePtrToInt(shared, builder.getInt32Ty());
  Value *inShared = builder.CreateAnd(builder.CreateSub(place, begin), mask);
  Value *address =
      builder.CreateGEP(builder.getInt8Ty(), shared,
                        builder.CreateZExt(inShared, builder.getInt64Ty()));
  LoadInst *load = builder.CreateLoad(type, address);
  load->setMetadata(kProductRead, MDNode::get(call.getContext(), {}));
  return load;
}

void Expansion::callOnSums(StringRef service, ArrayRef<Value *> operands) {
  Type *f32 = builder.getFloatTy();
  auto *type = ArrayType::get(f32, sums.size());
  Value *memory = checks->slot(*call.getFunction(), type);
  auto placeOf = [&](unsigned i) {
    return builder.CreateConstGEP2_32(type, memory, 0, i);
  };
  for (auto [i, sum] : enumerate(sums))
    builder.CreateStore(sum, placeOf(i));
  SmallVector<Value *> all{memory, i32(sums.size())};
  all.append(operands.begin(), operands.end());
  checks->call(builder, service, builder.getVoidTy(), all);
  for (auto [i, sum] : enumerate(sums))
    sum = builder.CreateLoad(f32, placeOf(i));
}

void Expansion::takeSums(bool mayBePending) {
  if (checks && !sums.empty())
    callOnSums("rotaSimtTakeSums",
               {i32(mayBePending), checks->site(call, "sums")});
}

void Expansion::commit() {
  if (!checks)
    return;
  callOnSums("rotaSimtHoldSums", {checks->site(call, "product")});
  checks->call(builder, "rotaSimtCommitProducts", builder.getVoidTy(), {});
}

void Expansion::wait(StringRef pending) {
  uint32_t groups = 0;
  pending.getAsInteger(10, groups);
  if (checks)
    checks->call(builder, "rotaSimtWaitProducts", builder.getVoidTy(),
                 {i32(groups)});
}

SmallVector<Value *> Expansion::leftWords(StringRef text, bool byDepth) {
  SmallVector<Value *> words;
  if (text != "left") {
    SmallVector<StringRef> numbers;
    text.drop_front().drop_back().split(numbers, ", ");
    for (StringRef number : numbers)
      words.push_back(operand(number.drop_front()));
    return words;
  }
  for (unsigned i = 0; i < 4; ++i)
    words.push_back(leftWord(row, i, byDepth));
  // PTX does not say which warp of the group reads which rows: for the checks
  // each reads all.
  for (unsigned first = 0; checks && first < 64; first += 16)
    for (unsigned i = 0; i < 4; ++i)
      leftWord(i32(first), i, byDepth);
  return words;
}

Value *Expansion::wordByDepth(const Described &matrix, Value *own,
                              unsigned half) {
  Value *depth = builder.CreateMul(builder.CreateAnd(lane, 3), i32(2));
  Value *word = i32(0);
  for (unsigned element = 0; element < 2; ++element) {
    Value *at = add(own, i32(128), builder.CreateAdd(depth, i32(element)));
    at = add(at, field(matrix.descriptor, 32), i32(half));
    Value *loaded = builder.CreateZExt(load(builder.getInt16Ty(), matrix, at),
                                       builder.getInt32Ty());
    word = builder.CreateOr(word, builder.CreateShl(loaded, 16 * element));
  }
  return word;
}

Value *Expansion::leftWord(Value *firstRow, unsigned i, bool byDepth) {
  Value *inEight = builder.CreateLShr(lane, 2);
  Value *own =
      builder.CreateAdd(firstRow, builder.CreateAdd(inEight, i32(i % 2 * 8)));
  // The 64 rows are the columns of one panel.
  if (byDepth)
    return wordByDepth(left, builder.CreateMul(own, i32(2)), i / 2);
  Value *at = builder.CreateMul(builder.CreateAnd(lane, 3), i32(4));
  at = builder.CreateAdd(at, i32(i / 2 * 16));
  at = add(at, i32(128), builder.CreateAnd(own, 7));
  at = add(at, field(left.descriptor, 32), builder.CreateLShr(own, 3));
  return load(builder.getInt32Ty(), left, at);
}

Value *Expansion::rightWord(unsigned column, unsigned half, bool byDepth) {
  Value *inEight = builder.CreateLShr(lane, 2);
  if (byDepth) {
    Value *own = add(i32(column % 64 * 2), i32(2), inEight);
    own = add(own, field(right.descriptor, 16), i32(column / 64));
    return wordByDepth(right, own, half);
  }
  // Rows are columns of the product; two elements of a row are one word.
  Value *at = add(i32(half * 16), i32(4), builder.CreateAnd(lane, 3));
  at = add(at, i32(128), inEight);
  at = add(at, field(right.descriptor, 32), i32(column / 8));
  return load(builder.getInt32Ty(), right, at);
}

bool Expansion::multiply(unsigned columns, StringRef text, bool isFirst,
                         bool leftByDepth, bool rightByDepth) {
  if (columns / 2 != results() || !right.descriptor ||
      (text == "left" && !left.descriptor))
    return false;
  SmallVector<Value *> words = leftWords(text, leftByDepth);
  for (unsigned column = 0; column < columns; column += 8) {
    SmallVector<Value *> operands(words);
    for (unsigned half = 0; half < 2; ++half)
      operands.push_back(rightWord(column, half, rightByDepth));
    for (unsigned i = 0; i < 4; ++i)
      operands.push_back(isFirst ? ConstantFP::get(builder.getFloatTy(), 0)
                                 : sums[column / 2 + i]);
    SmallVector<Type *> four(4, builder.getFloatTy());
    Value *product = builder.CreateIntrinsic(
        StructType::get(call.getContext(), four),
        Intrinsic::nvvm_mma_m16n8k16_row_col_bf16, operands);
    for (unsigned i = 0; i < 4; ++i)
      sums[column / 2 + i] = builder.CreateExtractValue(product, i);
  }
  return true;
}

bool Expansion::expandLine(StringRef line) {
  static const Regex toDescriptor(
      "^add\\.s64 (left|right), \\$([0-9]+), ([0-9]+);$");
  static const Regex product(
      "^wgmma\\.mma_async\\.sync\\.aligned\\.m64n([0-9]+)k16\\.f32\\.bf16\\."
      "bf16 "
      "\\{[^}]*\\}, (left|\\{[^}]*\\}), right, (yes|no), 1, 1, (([01]), "
      ")?([01]);$");
  static const Regex without(
      "^$|^\\{$|^\\}$|^\\.reg |^setp\\.|^wgmma\\.fence\\.|"
      "^fence\\.proxy\\.async\\.shared::cta;$");
  static const Regex waits("^wgmma\\.wait_group\\.sync\\.aligned ([0-9]+);$");
  SmallVector<StringRef> parts;
  if (toDescriptor.match(line, &parts)) {
    Described &matrix = parts[1] == "left" ? left : right;
    matrix.descriptor = operand(parts[2]);
    parts[3].getAsInteger(10, matrix.offset);
    return true;
  }
  if (product.match(line, &parts)) {
    unsigned columns = 0;
    parts[1].getAsInteger(10, columns);
    return multiply(columns, parts[2], parts[3] == "no", parts[5] == "1",
                    parts[6] == "1");
  }
  if (line == "wgmma.commit_group.sync.aligned;") {
    commit();
    return true;
  }
  if (waits.match(line, &parts)) {
    wait(parts[1]);
    return true;
  }
  return without.match(line);
}

Value *Expansion::expand() {
  StringRef text = cast<InlineAsm>(call.getCalledOperand())->getAsmString();
  // Without operands that lie in results' registers a product begins at once.
  for (unsigned i = 0; i < results(); ++i)
    sums.push_back(i < call.arg_size() &&
                           call.getArgOperand(i)->getType()->isFloatTy()
                       ? call.getArgOperand(i)
                       : ConstantFP::get(builder.getFloatTy(), 0));
  bool isProduct = text.contains("wgmma.mma_async");
  takeSums(/*mayBePending=*/isProduct);
  if (isProduct) {
    if (!shared)
      return nullptr;
    Value *thread = builder.CreateIntrinsic(
        builder.getInt32Ty(), Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
    lane = builder.CreateAnd(thread, 31);
    Value *warp = builder.CreateAnd(builder.CreateLShr(thread, 5), 3);
    row = builder.CreateMul(warp, i32(16));
  }
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines)
    if (!expandLine(line))
      return nullptr;
  Value *all = PoisonValue::get(call.getType()->isVoidTy()
                                    ? Type::getInt1Ty(call.getContext())
                                    : call.getType());
  for (auto [i, sum] : enumerate(sums))
    all = builder.CreateInsertValue(all, sum, i);
  return all;
}

} // namespace

LogicalResult expandAssembly(mlir::Location loc, Function &function,
                             ServiceCalls *checks) {
  GlobalVariable *shared =
      function.getParent()->getNamedGlobal("dynamic_shared_memory");
  SmallVector<CallBase *> calls;
  for (Instruction &instruction : instructions(function))
    if (auto *call = dyn_cast<CallBase>(&instruction))
      if (call->isInlineAsm())
        calls.push_back(call);
  for (CallBase *call : calls) {
    Value *value = Expansion(*call, shared, checks).expand();
    if (!value)
      return unknownInstruction(loc, *call, "inline assembly");
    if (!call->getType()->isVoidTy())
      call->replaceAllUsesWith(value);
    call->eraseFromParent();
  }
  return success();
}

} // namespace rota::lowering
