// The kernels of transfers are valid IR, in accesses of 16 bytes. They call
// nothing, and no operation is fused.
// RUN: rota-opt %S/../../../lowering/gpu/transfer-services.mlir --verify-roundtrip -o /dev/null
// RUN: rota-opt %S/../../../lowering/gpu/transfer-services.mlir --print-ptx=chip=sm_80 -o /dev/null | FileCheck %s --implicit-check-not=.func --implicit-check-not=fma.
// RUN: rota-opt %S/../../../lowering/gpu/transfer-services.mlir --print-ptx=chip=sm_100 -o /dev/null | FileCheck %s --implicit-check-not=.func --implicit-check-not=fma.

// CHECK: .visible .entry rota_add_f32(
// CHECK: .maxntid 256
// CHECK: st.global.v{{4.b32|2.b64}}

// CHECK: .visible .entry rota_add_bf16(
// CHECK: .maxntid 256
// CHECK: st.global.v{{4.b32|2.b64}}

// CHECK: .visible .entry rota_round_bf16(
// CHECK: .maxntid 256
// CHECK: cvt.rn.bf16x2.f32
// CHECK: st.global.v{{4.b32|2.b64}}

// CHECK: .visible .entry rota_combine_f32(
// CHECK: .maxntid 256
// CHECK: st.global.v{{4.b32|2.b64}}

// CHECK: .visible .entry rota_combine_bf16(
// CHECK: .maxntid 256
// CHECK: cvt.rn.bf16x2.f32
// CHECK: st.global.v{{4.b32|2.b64}}

// CHECK: .visible .entry rota_combine_i32(
// CHECK: .maxntid 256
// CHECK: st.global.v{{4.b32|2.b64}}

// CHECK: .visible .entry rota_copy_2(
// CHECK: .maxntid 256
// CHECK: st.global.v{{4.b32|2.b64}}

// CHECK: .visible .entry rota_copy_4(
// CHECK: .maxntid 256
// CHECK: st.global.v{{4.b32|2.b64}}
