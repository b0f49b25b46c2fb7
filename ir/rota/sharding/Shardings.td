//===- Shardings.td - Shardings and placements -------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The mesh, and how tensors are divided over its axes.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_SHARDINGS
#define ROTA_IR_ROTA_SHARDINGS

include "ir/rota/Rota.td"

/// In the order in which ranks are numbered: the first axis changes slowest.
def Rota_MeshAxis : I32EnumAttr<"MeshAxis", "an axis of the device mesh", [
    I32EnumAttrCase<"Data", 0, "data">, I32EnumAttrCase<"Stage", 1, "stage">,
    I32EnumAttrCase<"Fsdp", 2, "fsdp">,
    I32EnumAttrCase<"Expert", 3, "expert">,
    I32EnumAttrCase<"Context", 4, "context">,
    I32EnumAttrCase<"Sequence", 5, "sequence">,
    I32EnumAttrCase<"Tensor", 6, "tensor">]> {
  let cppNamespace = "::mlir::rota";
  let genSpecializedAttr = 0;
}

def Rota_MeshAttr : Rota_Attr<"Mesh", "mesh"> {
  let summary = "the sizes of the mesh's axes";
  let description = [{
    A size for each axis, in the order of the axes; those of size 1 are not
    printed: `#rota.mesh<data = 2, stage = 4>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getSize(MeshAxis axis) const {
      return getSizes()[static_cast<size_t>(axis)];
    }
    /// The size of an axis or of the part of one that `ref` means.
    int64_t getSize(AxisRefAttr ref) const;
    /// The product of the sizes of `refs`.
    int64_t getSize(ArrayRef<AxisRefAttr> refs) const;
    /// Number of ranks.
    int64_t getRanks() const;
  }];
}

def Rota_AxisRefAttr : Rota_Attr<"AxisRef", "axis"> {
  let summary = "an axis, or a part of one";
  let description = [{
    `#rota.axis<tensor>` is a whole axis. `#rota.axis<tensor:(2)4>` is the part
    of size 4 that has a part of size 2 in front of it: with the rank's position
    p on an axis of size n, position (p / (n / (2*4))) mod 4.
  }];
  let parameters = (ins "::mlir::rota::MeshAxis":$axis, "int64_t":$before,
                        "int64_t":$size);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "::mlir::rota::MeshAxis":$axis), [{
    return $_get($_ctxt, axis, 1, 0); // nothing before, all of it
  }]>];
  let extraClassDeclaration = [{
    /// `before` is 1 and `size` 0 for a whole axis.
    bool isWhole() const { return getSize() == 0; }
  }];
}

def Rota_DimensionShardingAttr : Rota_Attr<"DimensionSharding", "dimension"> {
  let summary = "how one dimension is divided";
  let description = [{
    The axes that split the dimension, major first, and whether propagation may
    add more (an open dimension): `[data, fsdp, ?]`.
  }];
  let parameters = (ins ArrayRefParameter<"AxisRefAttr">:$axes, "bool":$open);
  let hasCustomAssemblyFormat = 1;
}

def Rota_ShardingAttr : Rota_Attr<"Sharding", "sharding"> {
  let summary = "how a tensor is divided over the mesh";
  let description = [{
    A list of axes per dimension. Along `unreduced` axes, the value is the sum of
    the ranks' tensors; along `replicated` axes it is the same on all ranks and
    propagation may not divide it; along axes that are not named it is the same
    on all ranks and propagation may divide it:

    `#rota.sharding<[[data, fsdp], [?], [tensor]] unreduced [sequence] replicated [context]>`

    Part i of n of a dimension of size d holds elements [i*p, min(d, (i+1)*p))
    with p = ceil(d / n).

    Constraints:
    - C1: an axis, or a part of it, stands at most once
  }];
  let parameters = (ins ArrayRefParameter<"DimensionShardingAttr">:$dimensions,
                        ArrayRefParameter<"AxisRefAttr">:$unreduced,
                        ArrayRefParameter<"AxisRefAttr">:$replicated);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Rota_PlacementAttr : Rota_Attr<"Placement", "placement"> {
  let summary = "where a parameter lives";
  let description = [{
    The shape of the whole tensor and its three shardings: `compute`, as the
    layer's body sees it; `storage`, as it rests between uses; `optimizer`, as
    its master copy and moments rest. Each is the one before, divided further
    along at most one dimension. Their differences are the communication:
    compute - storage is an all-gather before use and a reduce-scatter of the
    gradient, storage - optimizer a reduce-scatter before and an all-gather after
    the update. `unreduced` of the compute sharding names the axes over which
    the gradient that functions accumulate is still to be summed.

    `#rota.placement<whole [64, 64] compute <[[tensor], []] unreduced [data, fsdp]> storage <[[tensor], [fsdp]]> optimizer <[[tensor], [fsdp, data]]>>`
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$whole,
                        "ShardingAttr":$compute, "ShardingAttr":$storage,
                        "ShardingAttr":$optimizer);
  let assemblyFormat = [{
    `<` `whole` `[` $whole `]` `compute` `` $compute `storage` `` $storage
    `optimizer` `` $optimizer `>`
  }];
}

def Rota_WorkAttr : Rota_Attr<"Work", "work"> {
  let summary = "how the mesh divides the operations of a function";
  let description = [{
    Operations of one call: `rank`, of the rank that has most; `whole`, on a mesh
    of one rank; and `without`, by axis in the order of the axes, of the busiest
    rank if that axis had one rank and the others divided what they do. Axes
    that divide nothing are not printed:

    `#rota.work<rank = 40, whole = 160, tensor = 160>`
  }];
  let parameters = (ins "int64_t":$rank, "int64_t":$whole,
                        ArrayRefParameter<"int64_t">:$without);
  let hasCustomAssemblyFormat = 1;
}

def Rota_AxisRefs : TypedArrayAttrBase<Rota_AxisRefAttr, "mesh axes">;

#endif // ROTA_IR_ROTA_SHARDINGS
