// SPDX-License-Identifier: Apache-2.0
//
// Results of the CUDA driver that the emulated driver gives beside those that
// the runtime knows by name, and the words for all of them.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_DRIVERRESULTS_H
#define ROTA_RUNTIME_DEVICE_SIMT_DRIVERRESULTS_H

#include "runtime/device/cuda/DriverApi.h"

namespace rota::simt {

inline constexpr cuda::Result kNotInitialized = 3;
inline constexpr cuda::Result kInvalidDevice = 101;
inline constexpr cuda::Result kInvalidContext = 201;
inline constexpr cuda::Result kInvalidHandle = 400;
inline constexpr cuda::Result kIllegalState = 401;
inline constexpr cuda::Result kCaptureUnsupported = 900;
inline constexpr cuda::Result kCaptureInvalidated = 901;
inline constexpr cuda::Result kCaptureMerge = 902;
inline constexpr cuda::Result kCaptureUnmatched = 903;
inline constexpr cuda::Result kCaptureUnjoined = 904;
inline constexpr cuda::Result kCaptureIsolation = 905;
inline constexpr cuda::Result kCapturedEvent = 907;

struct ResultWords {
  cuda::Result result;
  const char *name, *text;
};

/// Null for a result that the emulated driver does not give.
const ResultWords *findWords(cuda::Result result);

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_DRIVERRESULTS_H
