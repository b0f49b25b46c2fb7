// c = a x b: a [m, k] and b [k, n] in bf16, c [m, n] in f32; n and k are
// multiples of 8. A block of 4 warps has a tile of 32 rows and 16 columns, a
// warp 16 x 8 of them. The next tile is copied while
// one is used; the two lie in shared memory whose size the launch gives (4608
// bytes).
gpu.module @kernels {
  llvm.mlir.global external @tiles() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>

  gpu.func @matmul_two_stages(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %m: i32, %n: i32, %k: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %bx = nvvm.read.ptx.sreg.ctaid.x : i32
    %by = nvvm.read.ptx.sreg.ctaid.y : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c4 = arith.constant 4 : i32
    %c5 = arith.constant 5 : i32
    %c8 = arith.constant 8 : i32
    %c15 = arith.constant 15 : i32
    %c16 = arith.constant 16 : i32
    %c24 = arith.constant 24 : i32
    %c31 = arith.constant 31 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %c96 = arith.constant 96 : i32
    %c768 = arith.constant 768 : i32
    %zero = arith.constant 0.0 : f32
    %lane = arith.andi %t, %c31 : i32
    %warp = arith.shrui %t, %c5 : i32
    %rows = arith.muli %by, %c32 : i32
    %columns = arith.muli %bx, %c16 : i32
    %tiles = llvm.mlir.addressof @tiles : !llvm.ptr<3>
    %c1152 = arith.constant 1152 : i32

    // Threads 0 .. 63 copy 8 elements of a each, threads 64 .. 95 of b. Rows in
    // shared memory have 24 elements.
    %copiesA = arith.cmpi ult, %t, %c64 : i32
    %below96 = arith.cmpi ult, %t, %c96 : i32
    %notA = arith.cmpi uge, %t, %c64 : i32
    %copiesB = arith.andi %below96, %notA : i1
    %copyRow0 = arith.shrui %t, %c1 : i32
    %copyRow1 = arith.subi %copyRow0, %c32 : i32
    %copyRow = arith.select %copiesA, %copyRow0, %copyRow1 : i32
    %odd = arith.andi %t, %c1 : i32
    %copyColumn = arith.muli %odd, %c8 : i32
    %copyStart = arith.muli %copyRow, %c24 : i32
    %copyAt = arith.addi %copyStart, %copyColumn : i32
    %aRow = arith.addi %rows, %copyRow : i32
    %isARow = arith.cmpi ult, %aRow, %m : i32
    %bColumn = arith.addi %columns, %copyColumn : i32
    %isBColumn = arith.cmpi ult, %bColumn, %n : i32

    // Rows whose addresses a lane gives to ldmatrix.
    %low = arith.andi %lane, %c15 : i32
    %high = arith.shrui %lane, %c4 : i32
    %warpRow0 = arith.shrui %warp, %c1 : i32
    %warpRow = arith.muli %warpRow0, %c16 : i32
    %warpColumn0 = arith.andi %warp, %c1 : i32
    %warpColumn = arith.muli %warpColumn0, %c8 : i32
    %fragmentRow = arith.addi %warpRow, %low : i32
    %fragmentStart = arith.muli %fragmentRow, %c24 : i32
    %fragmentColumn = arith.muli %high, %c8 : i32
    %fragmentA = arith.addi %fragmentStart, %fragmentColumn : i32
    %bStart = arith.muli %low, %c24 : i32
    %fragmentB = arith.addi %bStart, %warpColumn : i32

    %firstB = llvm.getelementptr %tiles[%c768] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
    scf.if %copiesA {
      %column = arith.addi %c0, %copyColumn : i32
      %isColumn = arith.cmpi ult, %column, %k : i32
      %inside = arith.andi %isARow, %isColumn : i1
      %size = arith.select %inside, %c16, %c0 : i32
      %start = arith.muli %aRow, %k : i32
      %at = arith.addi %start, %column : i32
      %i = arith.select %inside, %at, %c0 : i32
      %from = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      %to = llvm.getelementptr %tiles[%copyAt] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
      nvvm.cp.async.shared.global %to, %from, 16, cache = cg, %size : !llvm.ptr<3>, !llvm.ptr<1>, i32
    }
    scf.if %copiesB {
      %row = arith.addi %c0, %copyRow : i32
      %isRow = arith.cmpi ult, %row, %k : i32
      %inside = arith.andi %isRow, %isBColumn : i1
      %size = arith.select %inside, %c16, %c0 : i32
      %start = arith.muli %row, %n : i32
      %at = arith.addi %start, %bColumn : i32
      %i = arith.select %inside, %at, %c0 : i32
      %from = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      %to = llvm.getelementptr %firstB[%copyAt] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
      nvvm.cp.async.shared.global %to, %from, 16, cache = cg, %size : !llvm.ptr<3>, !llvm.ptr<1>, i32
    }
    nvvm.cp.async.commit.group
    %d:4 = scf.for %kk = %c0 to %k step %c16 iter_args(%d0 = %zero, %d1 = %zero, %d2 = %zero, %d3 = %zero) -> (f32, f32, f32, f32) : i32 {
      %number = arith.shrui %kk, %c4 : i32
      %stage = arith.andi %number, %c1 : i32
      %otherStage = arith.subi %c1, %stage : i32
      %stageAt = arith.muli %stage, %c1152 : i32
      %otherAt = arith.muli %otherStage, %c1152 : i32
      %tileA = llvm.getelementptr %tiles[%stageAt] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
      %tileB = llvm.getelementptr %tileA[%c768] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
      %nextA = llvm.getelementptr %tiles[%otherAt] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
      %nextB = llvm.getelementptr %nextA[%c768] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
      %next = arith.addi %kk, %c16 : i32
      scf.if %copiesA {
        %column = arith.addi %next, %copyColumn : i32
        %isColumn = arith.cmpi ult, %column, %k : i32
        %inside = arith.andi %isARow, %isColumn : i1
        %size = arith.select %inside, %c16, %c0 : i32
        %start = arith.muli %aRow, %k : i32
        %at = arith.addi %start, %column : i32
        %i = arith.select %inside, %at, %c0 : i32
        %from = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
        %to = llvm.getelementptr %nextA[%copyAt] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
        nvvm.cp.async.shared.global %to, %from, 16, cache = cg, %size : !llvm.ptr<3>, !llvm.ptr<1>, i32
      }
      scf.if %copiesB {
        %row = arith.addi %next, %copyRow : i32
        %isRow = arith.cmpi ult, %row, %k : i32
        %inside = arith.andi %isRow, %isBColumn : i1
        %size = arith.select %inside, %c16, %c0 : i32
        %start = arith.muli %row, %n : i32
        %at = arith.addi %start, %bColumn : i32
        %i = arith.select %inside, %at, %c0 : i32
        %from = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
        %to = llvm.getelementptr %nextB[%copyAt] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
        nvvm.cp.async.shared.global %to, %from, 16, cache = cg, %size : !llvm.ptr<3>, !llvm.ptr<1>, i32
      }
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 1
      nvvm.barrier
      %pa = llvm.getelementptr %tileA[%fragmentA] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
      %pb = llvm.getelementptr %tileB[%fragmentB] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
      %fa = nvvm.ldmatrix %pa {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
      %fb = nvvm.ldmatrix %pb {num = 2 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
      %a0 = llvm.extractvalue %fa[0] : !llvm.struct<(i32, i32, i32, i32)>
      %a1 = llvm.extractvalue %fa[1] : !llvm.struct<(i32, i32, i32, i32)>
      %a2 = llvm.extractvalue %fa[2] : !llvm.struct<(i32, i32, i32, i32)>
      %a3 = llvm.extractvalue %fa[3] : !llvm.struct<(i32, i32, i32, i32)>
      %b0 = llvm.extractvalue %fb[0] : !llvm.struct<(i32, i32)>
      %b1 = llvm.extractvalue %fb[1] : !llvm.struct<(i32, i32)>
      %product = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%d0, %d1, %d2, %d3] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      %e0 = llvm.extractvalue %product[0] : !llvm.struct<(f32, f32, f32, f32)>
      %e1 = llvm.extractvalue %product[1] : !llvm.struct<(f32, f32, f32, f32)>
      %e2 = llvm.extractvalue %product[2] : !llvm.struct<(f32, f32, f32, f32)>
      %e3 = llvm.extractvalue %product[3] : !llvm.struct<(f32, f32, f32, f32)>
      nvvm.barrier
      scf.yield %e0, %e1, %e2, %e3 : f32, f32, f32, f32
    }
    nvvm.cp.async.wait.group 0

    // Element i of the fragment is in row lane / 4 (+ 8) and column
    // 2 * (lane % 4) (+ 1).
    %g = arith.shrui %lane, %c2 : i32
    %q = arith.andi %lane, %c3 : i32
    %q2 = arith.muli %q, %c2 : i32
    %r0 = arith.addi %rows, %warpRow : i32
    %row0 = arith.addi %r0, %g : i32
    %row1 = arith.addi %row0, %c8 : i32
    %l0 = arith.addi %columns, %warpColumn : i32
    %column = arith.addi %l0, %q2 : i32
    %isColumn = arith.cmpi ult, %column, %n : i32
    %isRow0 = arith.cmpi ult, %row0, %m : i32
    %isRow1 = arith.cmpi ult, %row1, %m : i32
    %stores0 = arith.andi %isColumn, %isRow0 : i1
    %stores1 = arith.andi %isColumn, %isRow1 : i1
    scf.if %stores0 {
      %start = arith.muli %row0, %n : i32
      %i = arith.addi %start, %column : i32
      %p = llvm.getelementptr %c[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %v = vector.from_elements %d#0, %d#1 : vector<2xf32>
      llvm.store %v, %p {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
    }
    scf.if %stores1 {
      %start = arith.muli %row1, %n : i32
      %i = arith.addi %start, %column : i32
      %p = llvm.getelementptr %c[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %v = vector.from_elements %d#2, %d#3 : vector<2xf32>
      llvm.store %v, %p {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
    }
    gpu.return
  }
}
