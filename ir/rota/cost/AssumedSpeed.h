// SPDX-License-Identifier: Apache-2.0
//
// The machine that estimates of time assume.
#ifndef ROTA_IR_ROTA_COST_ASSUMEDSPEED_H
#define ROTA_IR_ROTA_COST_ASSUMEDSPEED_H

namespace mlir::rota {

/// The assumed speed of one rank.
struct AssumedSpeed {
  double flopsPerSecond = 5e11;
  double bytesPerSecond = 1e10;  // to and from other ranks, and host memory
  double latency = 5e-6;         // seconds, of each transfer
  double copiedPerSecond = 1e10; // bytes, within the rank's own memory

  double secondsOfWork(double flops) const { return flops / flopsPerSecond; }
  double secondsOfCopy(double bytes) const { return bytes / copiedPerSecond; }
  /// Bytes that a rank sends in the time of this work.
  double bytesOfWork(double flops) const {
    return secondsOfWork(flops) * bytesPerSecond;
  }
  double secondsOfTransfer(double bytes) const {
    return latency + bytes / bytesPerSecond;
  }
};

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_COST_ASSUMEDSPEED_H
