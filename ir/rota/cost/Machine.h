// SPDX-License-Identifier: Apache-2.0
//
// The machine that estimates of time are for.
#ifndef ROTA_IR_ROTA_COST_MACHINE_H
#define ROTA_IR_ROTA_COST_MACHINE_H

#include "ir/rota/cost/MeshGroup.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llvm::json {
class Value;
} // namespace llvm::json

namespace mlir::rota {

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

/// The gradient of a weight, dw = dy^T x, sums over the rows of both operands:
/// its left one is read by columns.
enum class ProductKind { Usual, WeightGradient };

/// Rates for elements of one type.
struct TypeRates {
  double flopsPerSecond = 0;             // peak of matrix products
  std::vector<MeasuredProduct> products; // empty: tiles and waves say the rate
  /// Gradients of weights; empty: `products` say their rate, too.
  std::vector<MeasuredProduct> weightGradients;
  /// Products that are each divided among all cores of a host, where they are
  /// known; those of `products` have a core of their own.
  std::vector<MeasuredProduct> sharedProducts;
  /// Products of experts take so many times as long as others of their size.
  double groupedSlower = 1;
  /// How many times as long a product takes where the cores of a rank share it,
  /// by its operations, in ascending order; set by `Machine::sharedBy`.
  std::vector<std::pair<double, double>> sharedSlower;
  /// Rates of attention and of kernels that are no products, where they are
  /// known by type; 0: the machine's.
  double attentionForward = 0, attentionBackward = 0, rowFlopsPerSecond = 0;
  /// Keys that a query of attention takes beside those that it sees: parts of
  /// tiles, and what a row costs whatever its keys.
  double attentionForwardKeys = 0, attentionBackwardKeys = 0;
  /// Where known, kernels that are no products take the sum of three times:
  /// loading and storing of elements, exponentials, divisions and the like, and
  /// other operations, at `rowFlopsPerSecond`. 0: all operations cost the same.
  double elementsPerSecond = 0, specialFunctionsPerSecond = 0;
};

/// The operations of a host's kernel that are no exponentials, divisions and
/// the like.
double otherOperations(const Cost &cost);

/// A level of the network: devices whose numbers have the same quotient by
/// `devices` reach each other through it.
struct NetworkLevel {
  std::string name;
  int64_t devices = 0;       // 0: any number; of the last level
  double bytesPerSecond = 0; // that a device sends, while it receives as many
  double latency = 0;        // seconds of a step of a collective, or a message
  double efficiency = 1; // share of the bandwidth that large transfers reach
  /// Share of the speed of work that a transfer takes from the device while
  /// both run. 1: they do not overlap.
  double slowsWork = 0;

  double reached() const { return bytesPerSecond * efficiency; }
};

/// A number in a machine's file.
struct MachineNumber {
  std::string path; // "memory.bytes", "network[0].efficiency"
  double value = 0;
  std::string unit;
};

/// A device, or a host whose cores are the devices of ranks, and the network
/// between. JSON files of machines are described in tools/README.md.
///
/// The machine that is assumed where none is named does 500 GFLOP/s at any
/// work, whatever bytes it reads, and sends 10 GB/s with 5 us of latency.
struct Machine {
  std::string name = "generic", description;
  std::string device = "any"; // "cpu", "cuda", ...
  /// Ranks share this number of cores; rates are those of all cores. 0: a rank
  /// has a device of its own.
  int64_t cores = 0;

  double units = 1; // that work on tiles at a time: multiprocessors, cores
  std::map<std::string, TypeRates> types; // by element type: "bf16"
  std::vector<ProductTile> tiles = {{}};
  double productEfficiency = 1; // share of the peak, for all products
  double depth = 0;             // k that a tile's start and end take as long as
  /// Share of the peak that attention reaches.
  double attentionForward = 1, attentionBackward = 1;
  double rowFlopsPerSecond = 5e11; // of kernels that are no products
  double launch = 0;               // seconds of a kernel beside its work
  /// Seconds more of a kernel that the cores of a rank share.
  double sharedLaunch = 0;
  double coresOfRank = 1; // set by `sharedBy`
  /// What equal work on all cores takes until the slowest has done it, by what
  /// it takes on average: ranks wait for each other.
  double slowestCore = 1;

  double memoryBytes = 0;             // of a device; 0: not said
  double memoryBytesPerSecond = 1e15; // peak
  double memoryEfficiency = 1;        // share of it that kernels reach
  double copiedPerSecond = 1e10;      // bytes copied within a device's memory
  /// Bytes a second of kernels that write over what they read, as the update of
  /// a parameter does: a processor reads a line before it writes a part of it.
  /// 0: as other kernels.
  double updatedPerSecond = 0;
  /// Tensors of a kernel with so many bytes in all are in a cache, which
  /// kernels read and write at that rate; on a host, each result of so many
  /// bytes that only its function uses, and each operand between whose uses the
  /// function touches `kBytesBetween` times as many at most. 0: none is known.
  double cacheBytes = 0, cacheBytesPerSecond = 0;
  static constexpr int kBytesBetween = 8; // as a host is measured
  double hostBytesPerSecond = 1e10;       // to or from host memory
  double hostLatency = 5e-6;              // seconds of such a copy

  std::vector<NetworkLevel> network = {{"network", 0, 1e10, 5e-6, 1, 0}};

  std::vector<std::string> fitted; // paths of numbers, three at most
  /// Where numbers come from, by the path of one or of what contains several.
  std::map<std::string, std::string> sources;

  /// Bytes a second that a kernel of so many bytes reaches.
  double reachedMemory(double bytes) const {
    return bytes <= cacheBytes ? cacheBytesPerSecond
                               : memoryBytesPerSecond * memoryEfficiency;
  }
  /// Operations a second of work of that form on elements of that type. Of
  /// products: their peak.
  double rateOf(WorkForm form, Type elementType) const;
  /// Operations a second of matrix products of elements of that type.
  double peakOf(Type elementType) const;
  double peakOf(StringRef elementType) const; // "bf16"

  double secondsOfProduct(const ProductSize &size, Type elementType,
                          ProductKind kind = ProductKind::Usual) const;
  /// Seconds of the products of experts, of which each has `m` rows on average,
  /// or of their matrices' gradients, where `k` are the rows.
  double secondsOfExperts(const ProductSize &size, Type elementType,
                          ProductKind kind) const;
  /// Seconds in which an op's tensors are read and written.
  double secondsOfMemory(Operation *op, const Cost &cost) const;
  /// Seconds in which a host whose cache is known writes those results of a
  /// product that are returned or added to gradients. They are in memory, while
  /// those of measured products are in a cache.
  double secondsOfKeeping(Operation *op) const;
  /// Seconds of a kernel that is no product, of which `seconds` are its work:
  /// the cores of a rank share it where that is sooner.
  double secondsOfKernel(double seconds) const;
  /// Seconds of the arithmetic of work that is no product.
  double secondsOfRows(const Cost &cost, Type elementType) const;
  /// Seconds of attention's arithmetic, where a query sees `seenKeys` keys on
  /// average.
  double secondsOfAttention(const Cost &cost, double seenKeys,
                            Type elementType) const;
  /// The share of the work on the block `behind` blocks before its own that a
  /// rank of a ring has on average: the first ranks have no such block, and
  /// wait. On a host their cores compute for the others meanwhile; elsewhere 1.
  double shareOfRanks(int64_t behind, int64_t ranks) const;
  /// Seconds of an op's work, without the transfer that it may start.
  double secondsOfOp(Operation *op) const;
  double secondsOfCopy(double bytes) const { return bytes / copiedPerSecond; }
  double secondsOfHostCopy(double bytes) const {
    return hostLatency + bytes / hostBytesPerSecond;
  }

  /// Seconds of a collective in a ring of `group`, of which each rank sends
  /// `bytes`.
  double secondsOfCollective(double bytes, const MeshGroup &group) const;
  /// Seconds of a message between neighbours of `group`.
  double secondsOfMessage(double bytes, const MeshGroup &group) const;
  /// The innermost level that has all ranks of the group.
  const NetworkLevel &levelOf(const MeshGroup &group) const;
  /// Bytes that a rank sends to its nearest neighbours in the time that large
  /// products of that type take for so many operations.
  double bytesOfWork(double flops, Type elementType) const {
    return flops / (peakOf(elementType) * productEfficiency) *
           network.front().reached();
  }

  /// This machine as one of `ranks` ranks finds it: its part of the cores. What
  /// it costs to share kernels and products among all cores falls with the
  /// logarithm of the ranks, to nothing where each has one core.
  Machine sharedBy(int64_t ranks) const;

  /// Reads a machine. Nothing, with the place, the value and the rule in
  /// `error`, where `json` is none.
  static std::optional<Machine> read(const llvm::json::Value &json,
                                     std::string &error);
  /// The text of the machine's file.
  std::string write() const;
  /// The numbers in the order of the file.
  std::vector<MachineNumber> numbers() const;
  /// The source of the number with this path; empty where none is said.
  std::string sourceOf(StringRef path) const;
  /// The mistake in `sources` or `fitted`, as of a file; empty: none.
  std::string checkSources() const;
};

/// The machine of the module around `op`, as one of `ranks` ranks finds it, of
/// those of the mesh where no number is given: the attribute `rota.machine`, a
/// dictionary with the keys of a machine's file; the generic one without it.
Machine machineOf(Operation *op, std::optional<int64_t> ranks = {});
/// Sets that attribute, without sources.
void setMachine(ModuleOp module, const Machine &machine);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_COST_MACHINE_H
