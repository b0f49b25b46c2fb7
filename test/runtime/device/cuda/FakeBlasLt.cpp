// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/device/cuda/FakeBlasLt.h"

#include "runtime/Abi.h"
#include "runtime/device/GemmShape.h"
#include "runtime/device/cpu/GemmConvert.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>

namespace rota::cuda {

struct BlasLtContext {};

struct BlasLtLayout {
  int type;
  int64_t rows, columns, leading;
  int32_t batch = 1;
  int64_t stride = 0;
};

struct BlasLtOperation {
  int computeType;
  int32_t transposed[2] = {kBlasPlain, kBlasPlain}; // A, B
};

/// With the library's defaults.
struct BlasLtPreference {
  uint64_t workspaceBytes = 0;
  uint32_t reductions = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

} // namespace rota::cuda

struct CUevent_st {
  float milliseconds;
};

using namespace rota::cuda;

namespace rota::test {
namespace {

FakeBlasLt *fake = nullptr;

template <typename T> BlasStatus destroy(T *object) {
  delete object;
  --fake->live;
  return kBlasSuccess;
}

template <typename T, typename... Values>
BlasStatus create(T **object, Values... values) {
  *object = new T{values...};
  ++fake->live;
  return kBlasSuccess;
}

/// Refuses values of another size, as the library does.
template <typename T>
BlasStatus assign(T &place, const void *value, size_t bytes) {
  if (bytes != sizeof place)
    return kBlasInvalidValue;
  std::memcpy(&place, value, bytes);
  return kBlasSuccess;
}

BlasStatus setLayout(BlasLtLayout *layout, int attribute, const void *value,
                     size_t bytes) {
  if (attribute == kBlasLtBatchCount)
    return assign(layout->batch, value, bytes);
  if (attribute == kBlasLtBatchStride)
    return assign(layout->stride, value, bytes);
  return kBlasInvalidValue;
}

BlasStatus setOperation(BlasLtOperation *operation, int attribute,
                        const void *value, size_t bytes) {
  if (attribute != kBlasLtTransposeA && attribute != kBlasLtTransposeB)
    return kBlasInvalidValue;
  return assign(operation->transposed[attribute - kBlasLtTransposeA], value,
                bytes);
}

BlasStatus setPreference(BlasLtPreference *preference, int attribute,
                         const void *value, size_t bytes) {
  if (attribute == kBlasLtMostWorkspaceBytes)
    return assign(preference->workspaceBytes, value, bytes);
  if (attribute == kBlasLtReductionSchemes)
    return assign(preference->reductions, value, bytes);
  if (attribute < kBlasLtAlignmentA || attribute > kBlasLtAlignmentD)
    return kBlasInvalidValue;
  return assign(preference->alignments[attribute - kBlasLtAlignmentA], value,
                bytes);
}

const FakeAlgorithm *find(const BlasLtAlgorithm &algorithm) {
  for (const FakeAlgorithm &known : fake->algorithms)
    if (BlasLtAlgorithm{{known.number}} == algorithm)
      return &known;
  return nullptr;
}

/// Whether one of the matrices has so many rows or columns.
bool has(int64_t size, const BlasLtLayout *a, const BlasLtLayout *b,
         const BlasLtLayout *c) {
  for (const BlasLtLayout *layout : {a, b, c})
    if (layout->rows == size || layout->columns == size)
      return true;
  return false;
}

BlasStatus findAlgorithms(BlasLtContext *, BlasLtOperation *,
                          BlasLtLayout *layoutA, BlasLtLayout *layoutB,
                          BlasLtLayout *layoutC, BlasLtLayout *,
                          BlasLtPreference *preference, int most,
                          BlasLtCandidate *candidates, int *count) {
  ++fake->searches;
  *count = 0;
  if (has(fake->unknownSize, layoutA, layoutB, layoutC))
    return kBlasNotSupported;
  for (const FakeAlgorithm &known : fake->algorithms) {
    const uint32_t *given = preference->alignments;
    uint32_t alignments[3] = {given[0], given[1], std::min(given[2], given[3])};
    bool isAligned = std::ranges::equal(known.alignments, alignments,
                                        std::ranges::less_equal());
    if (!isAligned || (known.reduction & ~preference->reductions) ||
        uint64_t(known.workspaceBytes) > preference->workspaceBytes ||
        *count == most)
      continue;
    candidates[(*count)++] = {
        {{known.number}}, size_t(known.workspaceBytes), kBlasSuccess, 1.0f, {}};
  }
  return *count ? kBlasSuccess : kBlasNotSupported;
}

BlasStatus checkAlgorithm(BlasLtContext *, BlasLtOperation *, BlasLtLayout *,
                          BlasLtLayout *, BlasLtLayout *, BlasLtLayout *,
                          const BlasLtAlgorithm *algorithm,
                          BlasLtCandidate *result) {
  const FakeAlgorithm *known = find(*algorithm);
  if (!known)
    return kBlasInvalidValue;
  result->workspaceBytes = size_t(known->workspaceBytes);
  return kBlasSuccess;
}

int32_t abiType(const BlasLtLayout *layout) {
  return layout->type == kBlasF32 ? ROTA_F32 : ROTA_BF16;
}

/// One column-major matrix of a batch.
struct Matrix {
  Matrix(const BlasLtLayout *layout, const void *data, int32_t batch,
         int32_t transposed)
      : layout(layout), transposed(transposed), type(abiType(layout)),
        data(const_cast<char *>(static_cast<const char *>(data)) +
             batch * layout->stride * elementBytes(type)) {}

  int64_t rows() const { return transposed ? layout->columns : layout->rows; }
  int64_t columns() const {
    return transposed ? layout->rows : layout->columns;
  }
  char *at(int64_t row, int64_t column) const {
    if (transposed)
      std::swap(row, column);
    return data + (row + column * layout->leading) * elementBytes(type);
  }
  float get(int64_t row, int64_t column) const {
    float value;
    widenRows(at(row, column), type, 1, 1, 1, &value, 1);
    return value;
  }
  void set(int64_t row, int64_t column, float value) const {
    narrowRows(&value, 1, type, 1, 1, 1, at(row, column));
  }

  const BlasLtLayout *layout;
  int32_t transposed, type;
  char *data;
};

BlasStatus multiplyOne(const Matrix &a, const Matrix &b, const Matrix &c,
                       float alpha, float beta) {
  if (a.rows() != c.rows() || b.columns() != c.columns() ||
      a.columns() != b.rows())
    return kBlasInvalidValue;
  for (const Matrix *matrix : {&a, &b, &c})
    if (matrix->layout->leading < matrix->layout->rows)
      return kBlasInvalidValue;
  for (int64_t i = 0; i < c.rows(); ++i) {
    for (int64_t j = 0; j < c.columns(); ++j) {
      double sum = 0.0;
      for (int64_t k = 0; k < a.columns(); ++k)
        sum += double(a.get(i, k)) * b.get(k, j);
      double old = beta == 0.0f ? 0.0 : beta * double(c.get(i, j));
      c.set(i, j, float(alpha * sum + old));
    }
  }
  return kBlasSuccess;
}

bool isAligned(const void *pointer, uintptr_t alignment) {
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

BlasStatus multiply(BlasLtContext *, BlasLtOperation *operation,
                    const void *alpha, const void *a, BlasLtLayout *layoutA,
                    const void *b, BlasLtLayout *layoutB, const void *beta,
                    const void *c, BlasLtLayout *layoutC, void *d,
                    BlasLtLayout *, const BlasLtAlgorithm *algorithm,
                    void *workspace, size_t workspaceBytes, StreamHandle) {
  const FakeAlgorithm *known = find(*algorithm);
  if (!known || c != d || !isAligned(workspace, 256) ||
      workspaceBytes < size_t(known->workspaceBytes))
    return kBlasInvalidValue;
  if (!isAligned(a, known->alignments[0]) ||
      !isAligned(b, known->alignments[1]) ||
      !isAligned(c, known->alignments[2]))
    return kBlasInvalidValue;
  if (known->isRefused)
    return kBlasNotSupported;
  if (fake->isBroken || has(fake->failingSize, layoutA, layoutB, layoutC))
    return kBlasExecutionFailed;
  fake->isBroken = known->isFatal;
  fake->used.push_back(known->number);
  fake->computeType = operation->computeType;
  fake->milliseconds += known->milliseconds;
  for (const BlasLtLayout *layout : {layoutA, layoutB, layoutC})
    if (layout->rows > 256 &&
        layout->rows * elementBytes(abiType(layout)) % 16 != 0) {
      fake->milliseconds += known->oddMilliseconds;
      break;
    }
  // The algorithm uses all that it may.
  std::memset(workspace, 0xff, size_t(known->workspaceBytes));
  for (int32_t batch = 0; batch < layoutC->batch; ++batch) {
    BlasStatus status = multiplyOne(
        {layoutA, a, batch, operation->transposed[0]},
        {layoutB, b, batch, operation->transposed[1]},
        {layoutC, d, batch, kBlasPlain}, *static_cast<const float *>(alpha),
        *static_cast<const float *>(beta));
    if (status != kBlasSuccess)
      return status;
  }
  return kBlasSuccess;
}

void fill(BlasLtApi &api) {
  api.create = [](BlasLtContext **context) { return create(context); };
  api.destroy = destroy<BlasLtContext>;
  api.version = [] { return size_t(130100); };
  api.statusName = [](BlasStatus status) {
    return status == kBlasNotSupported      ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == kBlasExecutionFailed ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                            : "CUBLAS_STATUS_INVALID_VALUE";
  };
  api.createLayout = [](BlasLtLayout **layout, int type, uint64_t rows,
                        uint64_t columns, int64_t leading) {
    return create(layout, type, int64_t(rows), int64_t(columns), leading);
  };
  api.destroyLayout = destroy<BlasLtLayout>;
  api.setLayout = setLayout;
  api.createOperation = [](BlasLtOperation **operation, int computeType, int) {
    return create(operation, computeType);
  };
  api.destroyOperation = destroy<BlasLtOperation>;
  api.setOperation = setOperation;
  api.createPreference = [](BlasLtPreference **preference) {
    return create(preference);
  };
  api.destroyPreference = destroy<BlasLtPreference>;
  api.setPreference = setPreference;
  api.findAlgorithms = findAlgorithms;
  api.checkAlgorithm = checkAlgorithm;
  api.multiply = multiply;
}

void fill(DriverApi &driver) {
  // Other functions may wait for the whole device. A program that measures
  // does not call them.
  driver.allocateInStream = [](Address *address, size_t bytes, StreamHandle) {
    if (fake->allocation != kSuccess)
      return fake->allocation;
    ++fake->live;
    *address = reinterpret_cast<Address>(
        std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    return kSuccess;
  };
  driver.freeInStream = [](Address address, StreamHandle) {
    --fake->live;
    std::free(reinterpret_cast<void *>(address));
    return kSuccess;
  };
  driver.copy = [](Address to, Address from, size_t bytes, StreamHandle) {
    std::memcpy(reinterpret_cast<void *>(to),
                reinterpret_cast<const void *>(from), bytes);
    return kSuccess;
  };
  driver.fill8 = [](Address to, unsigned char value, size_t count,
                    StreamHandle) {
    std::memset(reinterpret_cast<void *>(to), value, count);
    return kSuccess;
  };
  driver.createEvent = [](EventHandle *event, unsigned) {
    return Result(create(event));
  };
  driver.destroyEvent = [](EventHandle event) {
    return Result(destroy(event));
  };
  // The driver gives up the capture besides.
  driver.recordEvent = [](EventHandle event, StreamHandle) {
    event->milliseconds = fake->milliseconds;
    return kSuccess;
  };
  driver.synchronizeEvent = [](EventHandle) {
    return fake->isBroken     ? kIllegalAddress
           : fake->isCaptured ? kInvalidValue
                              : kSuccess;
  };
  driver.elapsedTime = [](float *time, EventHandle begin, EventHandle end) {
    *time = end->milliseconds - begin->milliseconds;
    return kSuccess;
  };
  driver.captureStatus = [](StreamHandle, int *status) {
    *status = fake->isCaptured ? kNoCapture + 1 : kNoCapture;
    return kSuccess;
  };
  driver.errorText = [](Result result, const char **text) {
    *text = result == kIllegalAddress
                ? "an illegal memory access was encountered"
                : "invalid argument";
    return kSuccess;
  };
}

} // namespace

FakeBlasLt::FakeBlasLt() {
  fake = this;
  fill(api);
  fill(driver);
}

FakeBlasLt::~FakeBlasLt() {
  EXPECT_EQ(live, 0) << "objects that were not destroyed";
  fake = nullptr;
}

} // namespace rota::test
