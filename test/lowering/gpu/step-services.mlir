// The kernels of a step's end are valid IR, in f64. They call nothing, and no
// operation is fused.
// RUN: rota-opt %S/../../../lowering/gpu/step-services.mlir --verify-roundtrip -o /dev/null
// RUN: rota-opt %S/../../../lowering/gpu/step-services.mlir --print-ptx=chip=sm_80 -o /dev/null | FileCheck %s --implicit-check-not=.func --implicit-check-not=fma.
// RUN: rota-opt %S/../../../lowering/gpu/step-services.mlir --print-ptx=chip=sm_100 -o /dev/null | FileCheck %s --implicit-check-not=.func --implicit-check-not=fma.

// CHECK: .visible .entry rota_sum_f64(
// CHECK: .maxntid 256
// CHECK: add.rn.f64

// CHECK: .visible .entry rota_note(
// CHECK: st.global.b32

// CHECK: .visible .entry rota_finish_step(
// CHECK: .maxntid 256
// CHECK: add.rn.f64
// CHECK: sqrt.rn.f64
// CHECK: div.rn.f64

// CHECK: .visible .entry rota_decide_step(
// CHECK: .maxntid 256
// CHECK: add.rn.f64
// CHECK: mul.rn.f64
// CHECK-NOT: fma
// CHECK: sqrt.rn.f64
