// SPDX-License-Identifier: Apache-2.0
//
// Stacks in one mapping, and the switch between them. ROTA_FIBERS_UCONTEXT asks
// for the portable switch.
#include "runtime/device/simt/Fibers.h"

#include <sys/mman.h>

#if !defined(__x86_64__) && !defined(ROTA_FIBERS_UCONTEXT)
#define ROTA_FIBERS_UCONTEXT
#endif
#ifdef ROTA_FIBERS_UCONTEXT
#include <ucontext.h>
#endif

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define ROTA_FIBERS_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif
#endif

namespace rota::simt {

/// Tops of stacks at the same address of every stack would share few sets of
/// the cache: each fiber starts a bit lower than the one before.
static constexpr size_t kStagger = 448, kStaggerRange = 16 << 10;

static size_t staggerOf(uint32_t fiber) {
  return fiber * kStagger % kStaggerRange / 64 * 64;
}

#ifdef ROTA_FIBERS_UCONTEXT

struct Fibers::Context {
  ucontext_t state;
};

/// makecontext passes ints only: two halves of each pointer.
static void start(unsigned bodyHigh, unsigned bodyLow, unsigned ownerHigh,
                  unsigned ownerLow) {
  auto join = [](unsigned high, unsigned low) {
    return static_cast<uintptr_t>(static_cast<uint64_t>(high) << 32 | low);
  };
  auto body = reinterpret_cast<Fibers::Body>(join(bodyHigh, bodyLow));
  body(reinterpret_cast<void *>(join(ownerHigh, ownerLow)));
}

void Fibers::makeContext(uint32_t fiber) {
  ucontext_t &state = contexts[fiber].state;
  getcontext(&state);
  state.uc_stack.ss_sp = stackOf(fiber);
  state.uc_stack.ss_size = kStackBytes - staggerOf(fiber);
  state.uc_link = nullptr;
  auto function = reinterpret_cast<uint64_t>(body);
  auto argument = reinterpret_cast<uint64_t>(owner);
  makecontext(
      &state, reinterpret_cast<void (*)()>(start), 4,
      static_cast<unsigned>(function >> 32), static_cast<unsigned>(function),
      static_cast<unsigned>(argument >> 32), static_cast<unsigned>(argument));
}

void Fibers::switchTo(uint32_t from, uint32_t to) {
  swapcontext(&contexts[from].state, &contexts[to].state);
}

void Fibers::prefetch(uint32_t) const {}

#else

struct Fibers::Context {
  void *stackPointer;
};

// rotaSwitchFiber(void **save, void *to) puts the registers that a callee keeps
// on the stack, the stack's pointer into *save, and takes both from `to`. The
// control words of SSE and x87 are the same in all fibers. rotaStartFiber calls
// rbp(rbx).
asm(R"(
.text
.type rotaSwitchFiber, @function
rotaSwitchFiber:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  popq %rcx
  jmpq *%rcx
.size rotaSwitchFiber, . - rotaSwitchFiber
.type rotaStartFiber, @function
rotaStartFiber:
  movq %rbx, %rdi
  callq *%rbp
  ud2
.size rotaStartFiber, . - rotaStartFiber
)");
extern "C" __attribute__((visibility("hidden"))) void
rotaSwitchFiber(void **save, void *to);
extern "C" __attribute__((visibility("hidden"))) void rotaStartFiber();

void Fibers::makeContext(uint32_t fiber) {
  // In the order of the pops: r15, r14, r13, r12, rbp, rbx, return address. The
  // stack is then aligned to 16 bytes, as in front of a call.
  char *top = stackOf(fiber) + kStackBytes - 64 - staggerOf(fiber);
  void **frame = reinterpret_cast<void **>(top) - 7;
  frame[4] = reinterpret_cast<void *>(body);
  frame[5] = owner;
  frame[6] = reinterpret_cast<void *>(rotaStartFiber);
  contexts[fiber].stackPointer = frame;
}

void Fibers::switchTo(uint32_t from, uint32_t to) {
  rotaSwitchFiber(&contexts[from].stackPointer, contexts[to].stackPointer);
}

void Fibers::prefetch(uint32_t fiber) const {
  const char *top = static_cast<char *>(contexts[fiber].stackPointer);
  for (int line = 0; line < 3; ++line)
    __builtin_prefetch(top + 64 * line);
}

#endif

void Fibers::enter(uint32_t fiber) {
#ifdef ROTA_FIBERS_THREAD_SANITIZER
  // The sanitizer keeps the calls of a thread. A fiber that ends returns from
  // none of its own: they are those of a thread that ends, too.
  void *caller = __tsan_get_current_fiber(), *fibers = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(fibers, 0);
  switchTo(capacity, fiber);
  __tsan_switch_to_fiber(caller, 0);
  __tsan_destroy_fiber(fibers);
#else
  switchTo(capacity, fiber);
#endif
}

void Fibers::leave(uint32_t from) { switchTo(from, capacity); }

Fibers::Fibers(Body body, void *owner) : body(body), owner(owner) {}

Fibers::~Fibers() { unmap(); }

void Fibers::unmap() {
  if (stacks)
    munmap(stacks, capacity * kStackBytes);
  stacks = nullptr;
  capacity = 0;
}

bool Fibers::prepare(uint32_t count) {
  if (count > capacity) {
    unmap();
    void *mapped =
        mmap(nullptr, count * kStackBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapped == MAP_FAILED)
      return false;
    stacks = static_cast<char *>(mapped);
    capacity = count;
    contexts.reset(new Context[count + 1]);
    // Fibers touch little of their stacks. Advice only.
    madvise(mapped, count * kStackBytes, MADV_NOHUGEPAGE);
  }
  for (uint32_t fiber = 0; fiber < count; ++fiber)
    makeContext(fiber);
  return true;
}

bool Fibers::isOnStack(uint32_t fiber, const void *address) const {
  const char *byte = static_cast<const char *>(address);
  return byte >= stackOf(fiber) && byte < stackOf(fiber) + kStackBytes;
}

} // namespace rota::simt
