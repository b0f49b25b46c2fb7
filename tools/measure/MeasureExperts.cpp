// SPDX-License-Identifier: Apache-2.0
//
// Products of experts beside those of equal size that all rows share. Compiled
// with exceptions.
#include "runtime/GroupedAbi.h"
#include "runtime/device/Context.h"
#include "tools/measure/MeasureHost.h"
#include "tools/measure/Products.h"

#include "mlir/IR/BuiltinTypes.h"

#include <fmt/format.h>

namespace rota {
namespace {

using mlir::rota::ProductKind;

constexpr int64_t kExperts = 8, kIn = 256, kOut = 512;
/// Rows of all experts: a few tokens of a microbatch, and many.
constexpr int64_t kRows[] = {256, 1024};

/// Rows of each expert, from 0.4 to 1.6 of their mean: about what a router
/// gives that learns to balance them.
std::vector<int32_t> unequalRows(int64_t rows) {
  std::vector<int32_t> counts;
  int64_t left = rows;
  for (int64_t expert = 0; expert + 1 < kExperts; ++expert) {
    double share = 0.4 + 1.2 * double(expert) / (kExperts - 1);
    counts.push_back(int32_t(share * double(rows) / kExperts));
    left -= counts.back();
  }
  counts.push_back(int32_t(left));
  return counts;
}

/// One product of all experts, with operands in `memory`; their matrices are as
/// cold as in makeProduct.
Repeated makeExperts(int64_t rows, ProductForm form, int32_t type,
                     ProductMemory &memory) {
  int64_t element = type == ROTA_F32 ? 4 : 2, matrix = kIn * kOut;
  struct Work {
    RotaGroupedGemm gemm;
    std::vector<int32_t> counts;
    int64_t bytesA, bytesB, copies, next = 0;
    RotaContext context = {};
  };
  bool isGradient = form == ProductForm::WeightGradient;
  auto work = std::make_shared<Work>();
  work->gemm = {.batch = 1,
                .rows = rows,
                .experts = kExperts,
                .blocks = 1,
                .in = kIn,
                .out = kOut,
                .transposed = form == ProductForm::Forward,
                .typeA = type,
                .typeC = isGradient ? ROTA_F32 : type,
                .accumulate = isGradient};
  work->counts = unequalRows(rows);
  work->bytesA = element * rows * kIn;
  work->bytesB = element * (isGradient ? rows * kOut : kExperts * matrix);
  work->copies = isGradient ? 1 : copiesOf(work->bytesB);
  memory.provide(work->bytesA + work->copies * work->bytesB,
                 4 * std::max(rows * kOut, kExperts * matrix));
  return [work, isGradient, &memory] {
    void *a = memory.operands->at(0), *c = memory.results->at(0);
    void *b = memory.operands->at(work->bytesA + work->next * work->bytesB);
    if (isGradient)
      rotaGroupedGemmGrad(&work->context, &work->gemm, a, b,
                          work->counts.data(), c);
    else
      rotaGroupedGemm(&work->context, &work->gemm, a, b, work->counts.data(),
                      /*offset=*/nullptr, c);
    work->next = (work->next + 1) % work->copies;
  };
}

} // namespace

void measureExperts(mlir::rota::Machine &machine, HostRounds &host,
                    double seconds) {
  double each =
      seconds / double(2 * std::size(kRows) * std::size(kProductForms));
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  for (const auto &[type, number] :
       {std::pair<mlir::Type, int32_t>(mlir::Float32Type::get(&context),
                                       ROTA_F32),
        {mlir::BFloat16Type::get(&context), ROTA_BF16}}) {
    double &slower =
        machine.types[type.isF32() ? "f32" : "bf16"].groupedSlower = 1;
    std::vector<double> ratios;
    for (int64_t rows : kRows)
      for (ProductForm form : kProductForms) {
        auto make = [&](int thread) {
          return makeExperts(rows, form, number, host.products[thread]);
        };
        double time = host.times.add(
            fmt::format("experts {} {} {}", number, rows, int(form)),
            pacedTogether(host.cores, each, make, makePace(host)));
        auto mean = double(rows) / kExperts;
        bool isGradient = form == ProductForm::WeightGradient;
        double alike = machine.secondsOfExperts(
            {kExperts, isGradient ? kIn : mean, kOut, isGradient ? mean : kIn},
            type,
            isGradient ? ProductKind::WeightGradient : ProductKind::Usual);
        ratios.push_back(time / (double(host.cores) * alike));
      }
    slower = median(ratios);
  }
}

} // namespace rota
