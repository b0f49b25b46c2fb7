// SPDX-License-Identifier: Apache-2.0
//
// The machine that estimates of time are for.
#ifndef ROTA_IR_ROTA_COST_MACHINE_H
#define ROTA_IR_ROTA_COST_MACHINE_H

#include "ir/rota/Rota.h"

#include "llvm/Support/JSON.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir::rota {

/// Ranks that exchange something: `ranks` of them, of which neighbours are
/// `stride` ranks apart by number, or a product of several such groups, the one
/// with the smallest stride last.
struct RankGroup {
  struct Part {
    int64_t ranks = 1, stride = 1;
  };
  SmallVector<Part, 2> parts;

  int64_t ranks() const;
  /// The ranks of the group among `devices` ranks that are numbered one after
  /// another, of which the first number is a multiple of `devices`.
  int64_t ranksWithin(int64_t devices) const;
};

/// A matrix product: `batch` products of [m, k] by [k, n].
struct ProductSize {
  double batch = 1, m = 0, n = 0, k = 0;
};

/// A tile of the result that a unit of the device computes at a time.
struct ProductTile {
  int64_t m = 1, n = 1;
  double efficiency = 1; // share of a unit's peak, for an endless k
};

/// A measured product, of all of a device's (or of a host's cores') units.
struct MeasuredProduct {
  ProductSize size;
  double flopsPerSecond = 0;
};

/// Rates for elements of one type.
struct TypeRates {
  double flopsPerSecond = 0;            // peak of matrix products
  std::vector<MeasuredProduct> products; // empty: tiles and waves say the rate
};

/// A level of the network: devices whose numbers have the same quotient by
/// `devices` reach each other through it.
struct NetworkLevel {
  std::string name;
  int64_t devices = 0;       // 0: any number; of the last level
  double bytesPerSecond = 0; // that a device sends, while it receives as many
  double latency = 0;        // seconds of a step of a collective, or a message
  double efficiency = 1;     // share of the bandwidth that large transfers reach
  /// Share of the speed of work that a transfer takes from the device while
  /// both run. 1: they do not overlap.
  double slowsWork = 0;
};

/// A device, or a host whose cores are the devices of ranks, and the network
/// between. JSON files of machines are described in tools/README.md.
///
/// The machine that is assumed where none is named does 500 GFLOP/s at any
/// work, whatever bytes it reads, and sends 10 GB/s with 5 us of latency.
struct Machine {
  std::string name = "generic", description;
  std::string device; // "cpu", "cuda", ...; empty: any
  /// Ranks share this number of cores, of which a rank that runs alone takes as
  /// many as it has threads; rates are those of all cores. 0: a rank has a
  /// device of its own.
  int64_t cores = 0;

  double units = 1; // that work on tiles at a time: multiprocessors, cores
  std::map<std::string, TypeRates> types = {}; // by element type: "bf16"
  std::vector<ProductTile> tiles = {{}};
  double productEfficiency = 1; // of the peak, for all products
  double depth = 0; // k that a tile's start and end take as long as
  /// Share of the peak that attention reaches.
  double attentionForward = 1, attentionBackward = 1;
  double rowFlopsPerSecond = 5e11; // of kernels that are no products
  double launch = 0;               // seconds that a kernel takes at least

  double memoryBytes = 0;            // of a device; 0: not said
  double memoryBytesPerSecond = 1e15; // peak
  double memoryEfficiency = 1;        // share of it that kernels reach
  double copiedPerSecond = 1e10;      // bytes copied within a device's memory
  double hostBytesPerSecond = 1e10;   // to or from host memory
  double hostLatency = 5e-6;          // seconds of such a copy

  std::vector<NetworkLevel> network = {{"network", 0, 1e10, 5e-6, 1, 0}};

  double peakOf(Type elementType) const;

  /// Seconds of a matrix product.
  double secondsOfProduct(const ProductSize &size, Type elementType,
                          double bytes) const;
  /// Seconds of a kernel that reads and writes `bytes`.
  double secondsOfRows(double flops, double bytes) const;
  /// Seconds of one op's work, without the transfer that it may start.
  double secondsOfOp(Operation *op) const;
  double secondsOfCopy(double bytes) const { return bytes / copiedPerSecond; }
  double secondsOfHostCopy(double bytes) const {
    return hostLatency + bytes / hostBytesPerSecond;
  }

  /// Seconds of a collective of which each rank of `group` sends `bytes`, in
  /// `steps` steps one after another (0: one less than it has ranks).
  double secondsOfCollective(double bytes, const RankGroup &group,
                             int64_t steps = 0) const;
  /// Seconds of a message to the rank that is `distance` numbers away.
  double secondsOfMessage(double bytes, int64_t distance) const;
  /// The innermost level that has all ranks of the group.
  const NetworkLevel &levelOf(const RankGroup &group) const;

  /// Reads a machine. Nothing, with the place, the value and the rule in
  /// `error`, where the text is none.
  static std::optional<Machine> read(const llvm::json::Value &json,
                                     std::string &error);
};

/// The machine of the module around `op`: its attribute `rota.machine`, a
/// dictionary with the keys of a machine's file; the generic one without it.
Machine machineOf(Operation *op);
void setMachine(ModuleOp module, const llvm::json::Object &json);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_COST_MACHINE_H
