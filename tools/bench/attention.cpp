// SPDX-License-Identifier: Apache-2.0
//
// Speed of the attention kernels. Operations counted are those of the causal
// half: 2 products forward, 5 backward.
// `bench-attention [threads] [batch] [sequence] [heads] [key heads] [size]`.
#include "runtime/device/cpu/Cores.h"
#include "tools/bench/CompiledOp.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

using rota::bench::CompiledOp;

static double seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A buffer of small values.
static std::vector<char> filled(int64_t elements, bool half) {
  std::vector<char> bytes(elements * (half ? 2 : 4) + 64);
  for (int64_t i = 0; i < elements; ++i) {
    float value = float((i * 7919) % 1013) / 1013.0f - 0.5f;
    if (half)
      reinterpret_cast<uint16_t *>(bytes.data())[i] =
          uint16_t(*reinterpret_cast<uint32_t *>(&value) >> 16);
    else
      reinterpret_cast<float *>(bytes.data())[i] = value;
  }
  return bytes;
}

int main(int argc, char **argv) {
  auto argument = [&](int i, int64_t otherwise) {
    return argc > i ? std::atoll(argv[i]) : otherwise;
  };
  int64_t threads = argument(1, rota::availableCores());
  int64_t batch = argument(2, 4), sequence = argument(3, 512);
  int64_t heads = argument(4, 12), keyHeads = argument(5, 12);
  int64_t size = argument(6, 64);
  rota::Cores cores(int(std::max<int64_t>(threads, 1)));
  rota::ComputeToken token(cores);
  RotaContext context;
  context.cores = &cores;
  for (bool half : {false, true}) {
    char q[128], k[128], l[128], source[2048];
    const char *element = half ? "bf16" : "f32";
    std::snprintf(q, sizeof q, "tensor<%ldx%ldx%ldx%ldx%s>", long(batch),
                  long(sequence), long(heads), long(size), element);
    std::snprintf(k, sizeof k, "tensor<%ldx%ldx%ldx%ldx%s>", long(batch),
                  long(sequence), long(keyHeads), long(size), element);
    std::snprintf(l, sizeof l, "tensor<%ldx%ldx%ldxf32>", long(batch),
                  long(heads), long(sequence));
    std::snprintf(source, sizeof source,
                  "func.func @f(%%q: %s, %%k: %s, %%v: %s) {\n"
                  "%%o, %%l = rota.attention %%q, %%k, %%v scale = 0.125 : "
                  "(%s, %s, %s) -> (%s, %s)\nreturn }",
                  q, k, k, q, k, k, q, l);
    auto forward = CompiledOp::create(source);
    std::snprintf(source, sizeof source,
                  "func.func @f(%%d: %s, %%q: %s, %%k: %s, %%v: %s, %%o: %s, "
                  "%%l: %s) {\n"
                  "%%x, %%y, %%z = rota.attention_grad %%d, %%q, %%k, %%v, "
                  "%%o, %%l scale = 0.125 : "
                  "(%s, %s, %s, %s, %s, %s) -> (%s, %s, %s)\nreturn }",
                  q, q, k, k, q, l, q, q, k, k, q, l, q, k, k);
    auto backward = CompiledOp::create(source);
    if (!forward || !backward)
      return 1;
    int64_t many = batch * sequence * heads * size;
    int64_t few = batch * sequence * keyHeads * size;
    auto dout = filled(many, half), query = filled(many, half);
    auto key = filled(few, half), value = filled(few, half);
    auto out = filled(many, half), dquery = out, dkey = key, dvalue = key;
    auto lse = filled(batch * heads * sequence, false);
    auto measure = [&](const char *name, double products, auto run) {
      double least = 1e30;
      for (int i = 0; i < 5; ++i) {
        double start = seconds();
        run();
        least = std::min(least, seconds() - start);
      }
      double flops =
          products * 2.0 * batch * heads * size * sequence * (sequence + 1) / 2;
      std::printf("%-8s %-4s %8.3f ms %7.1f GF/s\n", name, element, least * 1e3,
                  flops / least * 1e-9);
    };
    measure("forward", 2, [&] {
      forward->run(&context, {query.data(), key.data(), value.data(),
                              out.data(), lse.data()});
    });
    measure("backward", 5, [&] {
      backward->run(&context, {dout.data(), query.data(), key.data(),
                               value.data(), out.data(), lse.data(),
                               dquery.data(), dkey.data(), dvalue.data()});
    });
  }
}
