; What kernels on a GPU call: the runtime of emit/abi.h as far as threads there have one, with the same names; linked into every module that calls any of it,
; and optimised with it. emit/clike/cuda.def and hosted.def have the same in CUDA, and say more about tapes.
;
; @slope_hosted is a constant of the module: whether Slope's runtime launches the kernels and reads RtHost afterwards. Otherwise memory for tapes comes
; from the device's heap, and what goes wrong is told by CUDA's own assertion.

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; RtHost: stop, failed, room, room_size, room_used, print, print_size, print_used, spare, text
%host = type { i32, i32, i64, i64, i64, i64, i64, i64, [16 x [32 x i64]], [488 x i8] }
; RtDeviceThread: bytes of its room that are in use, tapes that are open, the last block, the room
%thread = type { i64, i64, ptr, [4096 x i8] }
; RtDeviceStack: data, elements in use, elements there is room for, and by how many bits places are shifted
%stack = type { ptr, i64, i64, i64 }
%tape = type { [12 x %stack], ptr }
; A part of the room for tapes, which leads each of its users to the block before: those, how many users there are, its size (-1: of the heap), the memory
; it is in; what follows begins at 384
%block = type { [32 x ptr], i32, i32, ptr }

@_ZN5slope10slope_hostE = addrspace(1) global %host zeroinitializer, align 8
@slope_hosted = external addrspace(4) constant i32
@slope_none = private addrspace(1) constant [1 x i8] zeroinitializer
@slope_name = private addrspace(1) constant [6 x i8] c"slope\00"
@slope_full = private addrspace(1) constant [54 x i8] c"out of memory for a tape: see cudaLimitMallocHeapSize\00"
@slope_much = private addrspace(1) constant [53 x i8] c"out of memory for a tape: a thread has kept too much\00"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare void @llvm.nvvm.membar.gl()
declare void @llvm.nvvm.barrier0()
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.down.i32(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.idx.f32(i32, float, i32, i32)
declare float @llvm.nvvm.shfl.sync.down.f32(i32, float, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
declare { i32, i1 } @llvm.nvvm.match.all.sync.i64p(i32, i64)
declare i32 @llvm.cttz.i32(i32, i1)
declare i32 @llvm.ctpop.i32(i32)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @__assertfail(ptr, ptr, i32, ptr, i64)

; ---- lanes

define i32 @slope_active() alwaysinline convergent nounwind {
  %mask = call i32 asm sideeffect "activemask.b32 $0;", "=r"() convergent
  ret i32 %mask
}

define i64 @slope_shuffle(i32 %mask, i64 %value, i32 %lane) alwaysinline convergent nounwind {
  %low = trunc i64 %value to i32
  %upper = lshr i64 %value, 32
  %high = trunc i64 %upper to i32
  %low.there = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %mask, i32 %low, i32 %lane, i32 31)
  %high.there = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %mask, i32 %high, i32 %lane, i32 31)
  %wide = zext i32 %low.there to i64
  %wide.high = zext i32 %high.there to i64
  %moved = shl i64 %wide.high, 32
  %both = or i64 %wide, %moved
  ret i64 %both
}

define i64 @slope_shuffle_down(i32 %mask, i64 %value, i32 %distance) alwaysinline convergent nounwind {
  %low = trunc i64 %value to i32
  %upper = lshr i64 %value, 32
  %high = trunc i64 %upper to i32
  %low.there = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 %mask, i32 %low, i32 %distance, i32 31)
  %high.there = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 %mask, i32 %high, i32 %distance, i32 31)
  %wide = zext i32 %low.there to i64
  %wide.high = zext i32 %high.there to i64
  %moved = shl i64 %wide.high, 32
  %both = or i64 %wide, %moved
  ret i64 %both
}

define i64 @slope_shuffle_xor(i32 %mask, i64 %value, i32 %bit) alwaysinline convergent nounwind {
  %low = trunc i64 %value to i32
  %upper = lshr i64 %value, 32
  %high = trunc i64 %upper to i32
  %low.there = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 %mask, i32 %low, i32 %bit, i32 31)
  %high.there = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 %mask, i32 %high, i32 %bit, i32 31)
  %wide = zext i32 %low.there to i64
  %wide.high = zext i32 %high.there to i64
  %moved = shl i64 %wide.high, 32
  %both = or i64 %wide, %moved
  ret i64 %both
}

; The same of numbers, for device_sums.ll.
define float @slope_other_float(i32 %mask, float %value, i32 %lane) alwaysinline convergent nounwind {
  %there = call float @llvm.nvvm.shfl.sync.idx.f32(i32 %mask, float %value, i32 %lane, i32 31)
  ret float %there
}

define double @slope_other_double(i32 %mask, double %value, i32 %lane) alwaysinline convergent nounwind {
  %bits = bitcast double %value to i64
  %there = call i64 @slope_shuffle(i32 %mask, i64 %bits, i32 %lane)
  %number = bitcast i64 %there to double
  ret double %number
}

define float @slope_down_float(i32 %mask, float %value, i32 %distance) alwaysinline convergent nounwind {
  %there = call float @llvm.nvvm.shfl.sync.down.f32(i32 %mask, float %value, i32 %distance, i32 31)
  ret float %there
}

define double @slope_down_double(i32 %mask, double %value, i32 %distance) alwaysinline convergent nounwind {
  %bits = bitcast double %value to i64
  %there = call i64 @slope_shuffle_down(i32 %mask, i64 %bits, i32 %distance)
  %number = bitcast i64 %there to double
  ret double %number
}

define float @slope_xor_float(i32 %mask, float %value, i32 %bit) alwaysinline convergent nounwind {
  %there = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 %mask, float %value, i32 %bit, i32 31)
  ret float %there
}

define double @slope_xor_double(i32 %mask, double %value, i32 %bit) alwaysinline convergent nounwind {
  %bits = bitcast double %value to i64
  %there = call i64 @slope_shuffle_xor(i32 %mask, i64 %bits, i32 %bit)
  %number = bitcast i64 %there to double
  ret double %number
}

; The lanes of the warp that are here, or that are wanted, as bits, and what each of them has: in `own`, 34 words.
define ptr @rt_wave(ptr %context, i64 %site, i64 %value, i64 %low, i64 %high, ptr %own) convergent nounwind {
entry:
  %here = call i32 @slope_active()
  %wanted = trunc i64 %low to i32
  %is.all = icmp eq i32 %wanted, 0
  %active = select i1 %is.all, i32 %here, i32 %wanted
  %bits = zext i32 %active to i64
  store i64 %bits, ptr %own, align 8
  %second = getelementptr i64, ptr %own, i64 1
  store i64 0, ptr %second, align 8
  br label %each
each:
  %left = phi i32 [ %active, %entry ], [ %rest, %each ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %theirs = call i64 @slope_shuffle(i32 %active, i64 %value, i32 %lane)
  %place = add i32 %lane, 2
  %to = getelementptr i64, ptr %own, i32 %place
  store i64 %theirs, ptr %to, align 8
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %end, label %each
end:
  ret ptr %own
}

define i32 @slope_local_index() alwaysinline nounwind {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %z = call i32 @llvm.nvvm.read.ptx.sreg.tid.z()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %height = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %below = mul i32 %height, %z
  %row = add i32 %y, %below
  %before = mul i32 %width, %row
  %index = add i32 %x, %before
  ret i32 %index
}

; All threads of a group set its shared memory to zero, of which there are `words` of 32 bits.
define void @rt_clear(ptr addrspace(3) %memory, i32 %words) convergent nounwind {
entry:
  %first = call i32 @slope_local_index()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %height = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %depth = call i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
  %layer = mul i32 %width, %height
  %step = mul i32 %layer, %depth
  br label %next
next:
  %i = phi i32 [ %first, %entry ], [ %after, %each ]
  %more = icmp ult i32 %i, %words
  br i1 %more, label %each, label %done
each:
  %place = getelementptr i32, ptr addrspace(3) %memory, i32 %i
  store i32 0, ptr addrspace(3) %place
  %after = add i32 %i, %step
  br label %next
done:
  call void @llvm.nvvm.barrier0()
  ret void
}

; Elements that a group copies for its threads, as words of 32 bits: `wanted` elements of `each` words; those that are not there are zero.
define void @rt_copy_elements(ptr addrspace(3) %to, i32 %wanted, i32 %each, ptr %data, i64 %count) convergent nounwind {
entry:
  %wanted.wide = zext i32 %wanted to i64
  %there = call i64 @llvm.umin.i64(i64 %count, i64 %wanted.wide)
  %few = trunc i64 %there to i32
  %known = mul i32 %few, %each
  %words = mul i32 %wanted, %each
  %first = call i32 @slope_local_index()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %height = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %depth = call i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
  %layer = mul i32 %width, %height
  %step = mul i32 %layer, %depth
  %address = ptrtoint ptr %data to i64
  %from = inttoptr i64 %address to ptr addrspace(1)
  br label %next
next:
  %i = phi i32 [ %first, %entry ], [ %after, %put ]
  %more = icmp ult i32 %i, %words
  br i1 %more, label %each.word, label %done
each.word:
  %is.there = icmp ult i32 %i, %known
  br i1 %is.there, label %read, label %put
read:
  %source = getelementptr i32, ptr addrspace(1) %from, i32 %i
  %found = load i32, ptr addrspace(1) %source
  br label %put
put:
  %word = phi i32 [ 0, %each.word ], [ %found, %read ]
  %place = getelementptr i32, ptr addrspace(3) %to, i32 %i
  store i32 %word, ptr addrspace(3) %place
  %after = add i32 %i, %step
  br label %next
done:
  ret void
}

; ---- the end

define void @rt_stop(ptr %thread) alwaysinline noreturn nounwind {
  call void asm sideeffect "exit;", ""()
  unreachable
}

; The runtime reads the text; a zero ends it.
define void @slope_tell(ptr %text, i64 %length) noinline nounwind {
entry:
  %first = cmpxchg ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 1), i32 0, i32 1 monotonic monotonic
  %won = extractvalue { i32, i1 } %first, 1
  %any = icmp ne i64 %length, 0
  %goes = and i1 %won, %any
  br i1 %goes, label %each, label %end
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %from = getelementptr i8, ptr %text, i64 %i
  %letter = load i8, ptr %from
  %to = getelementptr %host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 9, i64 %i
  store i8 %letter, ptr addrspace(1) %to
  %next = add i64 %i, 1
  %fits = icmp ult i64 %next, 487
  %more = icmp ult i64 %next, %length
  %again = and i1 %fits, %more
  br i1 %again, label %each, label %end
end:
  store volatile i32 1, ptr addrspace(1) @_ZN5slope10slope_hostE
  call void @llvm.nvvm.membar.gl()
  ret void
}

define void @rt_abort(ptr %context, ptr %text, i64 %length) noreturn nounwind {
entry:
  %hosted = load i32, ptr addrspace(4) @slope_hosted
  %is.hosted = icmp ne i32 %hosted, 0
  br i1 %is.hosted, label %tell, label %assert
tell:
  call void @slope_tell(ptr %text, i64 %length)
  call void @rt_stop(ptr null)
  unreachable
assert:
  call void @__assertfail(ptr %text, ptr addrspacecast (ptr addrspace(1) @slope_name to ptr), i32 0, ptr addrspacecast (ptr addrspace(1) @slope_none to ptr), i64 1)
  call void @rt_stop(ptr null)
  unreachable
}

; ---- printf: RtPrinted, its kinds, the format, values, texts

define i64 @slope_length(ptr %text) nounwind {
entry:
  %none = icmp eq ptr %text, null
  br i1 %none, label %end, label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %at = getelementptr i8, ptr %text, i64 %i
  %letter = load i8, ptr %at
  %next = add i64 %i, 1
  %done = icmp eq i8 %letter, 0
  br i1 %done, label %end, label %each
end:
  %length = phi i64 [ 0, %entry ], [ %i, %each ]
  ret i64 %length
}

define void @slope_bytes(ptr %to, ptr %from, i64 %count) nounwind {
entry:
  %any = icmp ne i64 %count, 0
  br i1 %any, label %each, label %end
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %source = getelementptr i8, ptr %from, i64 %i
  %byte = load i8, ptr %source
  %place = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %place
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %end
end:
  ret void
}

; Goes through the values: without a record it counts the bytes of texts, with one it puts them there, from `end` on. Returns the end.
define i64 @slope_texts(ptr %kinds, i64 %nargs, ptr %values, ptr %record, i64 %front, i64 %end) nounwind {
entry:
  %any = icmp ne i64 %nargs, 0
  br i1 %any, label %each, label %done
each:
  %i = phi i64 [ 0, %entry ], [ %next, %on ]
  %v = phi i64 [ 0, %entry ], [ %v.next, %on ]
  %at = phi i64 [ %end, %entry ], [ %at.next, %on ]
  %twice = mul i64 %i, 2
  %kind.at = getelementptr i8, ptr %kinds, i64 %twice
  %kind = load i8, ptr %kind.at
  %lanes.at = getelementptr i8, ptr %kind.at, i64 1
  %lanes = load i8, ptr %lanes.at
  %is.text = icmp eq i8 %kind, 6
  br i1 %is.text, label %text, label %on
text:
  %value.at = getelementptr i64, ptr %values, i64 %v
  %address = load i64, ptr %value.at
  %letters = inttoptr i64 %address to ptr
  %length = call i64 @slope_length(ptr %letters)
  %counts = icmp eq ptr %record, null
  br i1 %counts, label %counted, label %put
put:
  %words = getelementptr i8, ptr %record, i64 %front
  %word = getelementptr i64, ptr %words, i64 %v
  store i64 %at, ptr %word
  %to = getelementptr i8, ptr %record, i64 %at
  call void @slope_bytes(ptr %to, ptr %letters, i64 %length)
  %last = getelementptr i8, ptr %to, i64 %length
  store i8 0, ptr %last
  br label %counted
counted:
  %behind = add i64 %at, %length
  %after = add i64 %behind, 1
  br label %on
on:
  %at.next = phi i64 [ %at, %each ], [ %after, %counted ]
  %steps = zext i8 %lanes to i64
  %v.next = add i64 %v, %steps
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %nargs
  br i1 %more, label %each, label %done
done:
  %result = phi i64 [ %end, %entry ], [ %at.next, %on ]
  ret i64 %result
}

define i64 @slope_count_values(ptr %kinds, i64 %nargs) nounwind {
entry:
  %any = icmp ne i64 %nargs, 0
  br i1 %any, label %each, label %done
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %sum = phi i64 [ 0, %entry ], [ %more, %each ]
  %place = getelementptr [2 x i8], ptr %kinds, i64 %i, i64 1
  %lanes = load i8, ptr %place
  %wide = zext i8 %lanes to i64
  %more = add i64 %sum, %wide
  %next = add i64 %i, 1
  %goes = icmp ult i64 %next, %nargs
  br i1 %goes, label %each, label %done
done:
  %result = phi i64 [ 0, %entry ], [ %more, %each ]
  ret i64 %result
}

define void @rt_print(ptr %context, ptr %format, i64 %length, ptr %kinds, i64 %nargs, ptr %values) noinline nounwind {
entry:
  %nvalues = call i64 @slope_count_values(ptr %kinds, i64 %nargs)
  %kind.bytes = mul i64 %nargs, 2
  %letters.at = add i64 %kind.bytes, 16
  %front.end = add i64 %letters.at, %length
  %front.up = add i64 %front.end, 7
  %front = and i64 %front.up, -8
  %value.bytes = mul i64 %nvalues, 8
  %texts = add i64 %front, %value.bytes
  %end = call i64 @slope_texts(ptr %kinds, i64 %nargs, ptr %values, ptr null, i64 %front, i64 %texts)
  %end.up = add i64 %end, 7
  %size = and i64 %end.up, -8
  %first = atomicrmw add ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 7), i64 %size monotonic
  %last = add i64 %first, %size
  %room = load i64, ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 6)
  %fits = icmp ule i64 %last, %room
  br i1 %fits, label %put, label %done ; the runtime makes room, and runs it again
put:
  %base = load i64, ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 5)
  %address = add i64 %base, %first
  %record = inttoptr i64 %address to ptr
  %size.32 = trunc i64 %size to i32
  store i32 %size.32, ptr %record
  %length.32 = trunc i64 %length to i32
  %length.at = getelementptr i32, ptr %record, i64 1
  store i32 %length.32, ptr %length.at
  %nargs.32 = trunc i64 %nargs to i32
  %nargs.at = getelementptr i32, ptr %record, i64 2
  store i32 %nargs.32, ptr %nargs.at
  %nvalues.32 = trunc i64 %nvalues to i32
  %nvalues.at = getelementptr i32, ptr %record, i64 3
  store i32 %nvalues.32, ptr %nvalues.at
  %kinds.to = getelementptr i8, ptr %record, i64 16
  call void @slope_bytes(ptr %kinds.to, ptr %kinds, i64 %kind.bytes)
  %letters.to = getelementptr i8, ptr %record, i64 %letters.at
  call void @slope_bytes(ptr %letters.to, ptr %format, i64 %length)
  %values.to = getelementptr i8, ptr %record, i64 %front
  call void @slope_bytes(ptr %values.to, ptr %values, i64 %value.bytes)
  %unused = call i64 @slope_texts(ptr %kinds, i64 %nargs, ptr %values, ptr %record, i64 %front, i64 %texts)
  br label %done
done:
  ret void
}

; ---- blocks of the room that all threads share: 4 KiB, 8 KiB, ...; those that are given back are on lists of their size, of which warps that run at the
; same time mostly have different ones

define i64 @slope_list() nounwind {
  %group = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %index = call i32 @slope_local_index()
  %warp = lshr i32 %index, 5
  %sum = add i32 %group, %warp
  %list = and i32 %sum, 15
  %wide = zext i32 %list to i64
  ret i64 %wide
}

define ptr @slope_spare_take(ptr addrspace(1) %list) nounwind {
entry:
  %start = load volatile i64, ptr addrspace(1) %list
  br label %try
try:
  %old = phi i64 [ %start, %entry ], [ %found, %take ]
  %place = and i64 %old, 4294967295
  %none = icmp eq i64 %place, 0
  br i1 %none, label %nothing, label %take
take:
  %room = load i64, ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 2)
  %before = sub i64 %place, 1
  %offset = mul i64 %before, 4096
  %address = add i64 %room, %offset
  %top = inttoptr i64 %address to ptr
  %next = load volatile i32, ptr %top
  %next.wide = zext i32 %next to i64
  %number = lshr i64 %old, 32
  %number.next = add i64 %number, 1
  %upper = shl i64 %number.next, 32
  %new = or i64 %upper, %next.wide
  %pair = cmpxchg ptr addrspace(1) %list, i64 %old, i64 %new monotonic monotonic
  %found = extractvalue { i64, i1 } %pair, 0
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %have, label %try
have:
  ret ptr %top
nothing:
  ret ptr null
}

define ptr @slope_room_take(i64 %size) nounwind {
entry:
  %bytes = shl i64 4096, %size
  %first = atomicrmw add ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 4), i64 %bytes monotonic
  %end = add i64 %first, %bytes
  %room.size = load i64, ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 3)
  %fits = icmp ule i64 %end, %room.size
  br i1 %fits, label %new, label %search
new:
  %room = load i64, ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 2)
  %address = add i64 %room, %first
  %block = inttoptr i64 %address to ptr
  ret ptr %block
search:
  %i = phi i64 [ 0, %entry ], [ %next, %on ]
  %list = getelementptr %host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 8, i64 %i, i64 %size
  %spare = call ptr @slope_spare_take(ptr addrspace(1) %list)
  %found = icmp ne ptr %spare, null
  br i1 %found, label %have, label %on
have:
  %back = sub i64 0, %bytes
  %unused = atomicrmw add ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 4), i64 %back monotonic
  ret ptr %spare
on:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 16
  br i1 %more, label %search, label %nothing
nothing:
  ret ptr null
}

; What the room has no place for is on the heap, unless the runtime makes more room.
define ptr @slope_heap_take(i64 %size) nounwind {
entry:
  %hosted = load i32, ptr addrspace(4) @slope_hosted
  %is.hosted = icmp ne i32 %hosted, 0
  br i1 %is.hosted, label %nothing, label %take
take:
  %bytes = shl i64 4096, %size
  %back = sub i64 0, %bytes
  %unused = atomicrmw add ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 4), i64 %back monotonic
  %more = add i64 %bytes, 128
  %whole = call ptr @malloc(i64 %more)
  %none = icmp eq ptr %whole, null
  br i1 %none, label %nothing, label %have
have:
  %address = ptrtoint ptr %whole to i64
  %up = add i64 %address, 127
  %aligned = and i64 %up, -128
  %block = inttoptr i64 %aligned to ptr
  %size.at = getelementptr %block, ptr %block, i64 0, i32 2
  store i32 -1, ptr %size.at
  %whole.at = getelementptr %block, ptr %block, i64 0, i32 3
  store ptr %whole, ptr %whole.at
  ret ptr %block
nothing:
  ret ptr null
}

define ptr @slope_block_take(i64 %bytes) noinline nounwind {
entry:
  %least = call i64 @llvm.umax.i64(i64 %bytes, i64 4096)
  %less = sub i64 %least, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %less, i1 false)
  %size = sub i64 52, %zeros ; 4096 << size is not less
  %number = call i64 @slope_list()
  %list = getelementptr %host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 8, i64 %number, i64 %size
  %spare = call ptr @slope_spare_take(ptr addrspace(1) %list)
  %found = icmp ne ptr %spare, null
  br i1 %found, label %have, label %new
new:
  %taken = call ptr @slope_room_take(i64 %size)
  %given = icmp ne ptr %taken, null
  br i1 %given, label %have, label %heap
have:
  %block = phi ptr [ %spare, %entry ], [ %taken, %new ]
  %size.at = getelementptr %block, ptr %block, i64 0, i32 2
  %size.32 = trunc i64 %size to i32
  store i32 %size.32, ptr %size.at
  ret ptr %block
heap:
  %other = call ptr @slope_heap_take(i64 %size)
  ret ptr %other
}

define void @slope_block_give(ptr %block) noinline nounwind {
entry:
  %size.at = getelementptr %block, ptr %block, i64 0, i32 2
  %size = load i32, ptr %size.at
  %of.heap = icmp slt i32 %size, 0
  br i1 %of.heap, label %heap, label %give
heap:
  %whole.at = getelementptr %block, ptr %block, i64 0, i32 3
  %whole = load ptr, ptr %whole.at
  call void @free(ptr %whole)
  ret void
give:
  %number = call i64 @slope_list()
  %size.wide = zext i32 %size to i64
  %list = getelementptr %host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 8, i64 %number, i64 %size.wide
  %room = load i64, ptr addrspace(1) getelementptr (%host, ptr addrspace(1) @_ZN5slope10slope_hostE, i64 0, i32 2)
  %address = ptrtoint ptr %block to i64
  %offset = sub i64 %address, %room
  %chunk = udiv i64 %offset, 4096
  %place = add i64 %chunk, 1
  %start = load volatile i64, ptr addrspace(1) %list
  br label %try
try:
  %old = phi i64 [ %start, %give ], [ %found, %try ]
  %next = trunc i64 %old to i32
  store volatile i32 %next, ptr %block
  call void @llvm.nvvm.membar.gl()
  %count = lshr i64 %old, 32
  %count.next = add i64 %count, 1
  %upper = shl i64 %count.next, 32
  %new = or i64 %upper, %place
  %pair = cmpxchg ptr addrspace(1) %list, i64 %old, i64 %new monotonic monotonic
  %found = extractvalue { i64, i1 } %pair, 0
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %done, label %try
done:
  ret void
}

; ---- tapes: in the thread's own memory while there is room, then in blocks. Lanes of a warp that need one together take one together, and their elements
; lie side by side.

; Where `count` elements of `size` bytes begin, and the shift of their places.
define { ptr, i64 } @slope_tape_block(ptr %thread, i64 %count, i64 %size) noinline convergent nounwind {
entry:
  %active = call i32 @slope_active()
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %first = call i32 @llvm.cttz.i32(i32 %active, i1 true)
  %bytes = mul i64 %count, %size
  %match = call { i32, i1 } @llvm.nvvm.match.all.sync.i64p(i32 %active, i64 %bytes)
  %same = extractvalue { i32, i1 } %match, 1
  %users = call i32 @llvm.ctpop.i32(i32 %active)
  %several = icmp ugt i32 %users, 1
  %together = and i1 %same, %several
  %apart = xor i1 %together, true
  %is.first = icmp eq i32 %lane, %first
  %takes = or i1 %apart, %is.first
  br i1 %takes, label %take, label %joined
take:
  %rows = select i1 %together, i64 32, i64 1
  %all = mul i64 %bytes, %rows
  %whole = add i64 %all, 384
  %new = call ptr @slope_block_take(i64 %whole)
  %none = icmp eq ptr %new, null
  br i1 %none, label %joined, label %own
own:
  %users.at = getelementptr %block, ptr %new, i64 0, i32 1
  %number = select i1 %together, i32 %users, i32 1
  store i32 %number, ptr %users.at
  br label %joined
joined:
  %mine = phi ptr [ null, %entry ], [ null, %take ], [ %new, %own ]
  br i1 %together, label %share, label %have
share:
  %mine.bits = ptrtoint ptr %mine to i64
  %shared.bits = call i64 @slope_shuffle(i32 %active, i64 %mine.bits, i32 %first)
  %shared = inttoptr i64 %shared.bits to ptr
  br label %have
have:
  %block = phi ptr [ %mine, %joined ], [ %shared, %share ]
  %lacks = icmp eq ptr %block, null
  br i1 %lacks, label %full, label %link
full:
  %hosted = load i32, ptr addrspace(4) @slope_hosted
  %is.hosted = icmp ne i32 %hosted, 0
  br i1 %is.hosted, label %leave, label %fail
leave: ; the runtime makes room, and runs it again
  call void @rt_stop(ptr null)
  unreachable
fail:
  call void @rt_abort(ptr null, ptr addrspacecast (ptr addrspace(1) @slope_full to ptr), i64 53)
  unreachable
link:
  %before.at = getelementptr %block, ptr %block, i64 0, i32 0, i32 %lane
  %last.at = getelementptr %thread, ptr %thread, i64 0, i32 2
  %last = load ptr, ptr %last.at
  store ptr %last, ptr %before.at
  store ptr %block, ptr %last.at
  %lane.wide = zext i32 %lane to i64
  %within = mul i64 %lane.wide, %size
  %offset = select i1 %together, i64 %within, i64 0
  %data.at = add i64 %offset, 384
  %data = getelementptr i8, ptr %block, i64 %data.at
  %shift = select i1 %together, i64 5, i64 0
  %part = insertvalue { ptr, i64 } poison, ptr %data, 0
  %result = insertvalue { ptr, i64 } %part, i64 %shift, 1
  ret { ptr, i64 } %result
}

define { ptr, i64 } @slope_tape_bytes(ptr %thread, i64 %count, i64 %size) convergent nounwind {
entry:
  %used.at = getelementptr %thread, ptr %thread, i64 0, i32 0
  %used = load i64, ptr %used.at
  %up = add i64 %used, 7
  %first = and i64 %up, -8
  %bytes = mul i64 %count, %size
  %few = icmp ule i64 %count, 4096
  %end = add i64 %first, %bytes
  %fits = icmp ule i64 %end, 4096
  %here = and i1 %few, %fits
  br i1 %here, label %own, label %block
own:
  store i64 %end, ptr %used.at
  %data = getelementptr %thread, ptr %thread, i64 0, i32 3, i64 %first
  %part = insertvalue { ptr, i64 } poison, ptr %data, 0
  %result = insertvalue { ptr, i64 } %part, i64 0, 1
  ret { ptr, i64 } %result
block:
  %other = call { ptr, i64 } @slope_tape_block(ptr %thread, i64 %count, i64 %size)
  ret { ptr, i64 } %other
}

; All that the thread has taken for tapes is given back.
define void @rt_tape_end(ptr %thread) noinline convergent nounwind {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %last.at = getelementptr %thread, ptr %thread, i64 0, i32 2
  %last = load ptr, ptr %last.at
  store ptr null, ptr %last.at
  store i64 0, ptr %thread
  br label %next
next:
  %block = phi ptr [ %last, %entry ], [ %before, %on ]
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %leave
leave:
  %before.at = getelementptr %block, ptr %block, i64 0, i32 0, i32 %lane
  %before = load ptr, ptr %before.at
  call void @llvm.nvvm.membar.gl()
  %users.at = getelementptr %block, ptr %block, i64 0, i32 1
  %users = atomicrmw sub ptr %users.at, i32 1 monotonic
  %is.last = icmp eq i32 %users, 1
  br i1 %is.last, label %give, label %on
give:
  call void @slope_block_give(ptr %block)
  br label %on
on:
  br label %next
done:
  ret void
}

define ptr @rt_tape_open(ptr %thread) convergent nounwind {
  %place = call { ptr, i64 } @slope_tape_bytes(ptr %thread, i64 1, i64 392)
  %tape = extractvalue { ptr, i64 } %place, 0
  call void @llvm.memset.p0.i64(ptr align 8 %tape, i8 0, i64 392, i1 false)
  %thread.at = getelementptr %tape, ptr %tape, i64 0, i32 1
  store ptr %thread, ptr %thread.at
  %open.at = getelementptr %thread, ptr %thread, i64 0, i32 1
  %open = load i64, ptr %open.at
  %more = add i64 %open, 1
  store i64 %more, ptr %open.at
  ret ptr %tape
}

; Memory is given back when all are closed.
define void @rt_tape_close(ptr %tape) convergent nounwind {
entry:
  %thread.at = getelementptr %tape, ptr %tape, i64 0, i32 1
  %thread = load ptr, ptr %thread.at
  %open.at = getelementptr %thread, ptr %thread, i64 0, i32 1
  %open = load i64, ptr %open.at
  %less = sub i64 %open, 1
  store i64 %less, ptr %open.at
  %others = icmp ne i64 %less, 0
  br i1 %others, label %done, label %end
end:
  call void @rt_tape_end(ptr %thread)
  br label %done
done:
  ret void
}

define void @slope_move(ptr %to, i64 %to.shift, ptr %from, i64 %from.shift, i64 %count, i64 %size) nounwind {
entry:
  %any = icmp ne i64 %count, 0
  br i1 %any, label %each, label %done
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %i.to = shl i64 %i, %to.shift
  %i.from = shl i64 %i, %from.shift
  %byte.to = mul i64 %i.to, %size
  %byte.from = mul i64 %i.from, %size
  %place = getelementptr i8, ptr %to, i64 %byte.to
  %source = getelementptr i8, ptr %from, i64 %byte.from
  call void @slope_bytes(ptr %place, ptr %source, i64 %size)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

; Room for `more` elements of `size` bytes above those of stack `kind`.
define void @rt_tape_more(ptr %tape, i64 %kind, i64 %more, i64 %size) noinline convergent nounwind {
entry:
  %thread.at = getelementptr %tape, ptr %tape, i64 0, i32 1
  %thread = load ptr, ptr %thread.at
  %stack = getelementptr %tape, ptr %tape, i64 0, i32 0, i64 %kind
  %count.at = getelementptr %stack, ptr %stack, i64 0, i32 1
  %count = load i64, ptr %count.at
  %room.at = getelementptr %stack, ptr %stack, i64 0, i32 2
  %room = load i64, ptr %room.at
  %wanted = add i64 %count, %more
  %double = mul i64 %room, 2
  %larger = call i64 @llvm.umax.i64(i64 %wanted, i64 %double)
  %new = call i64 @llvm.umax.i64(i64 %larger, i64 8)
  %too.much = icmp ugt i64 %new, 134217728
  br i1 %too.much, label %fail, label %take
fail:
  call void @rt_abort(ptr null, ptr addrspacecast (ptr addrspace(1) @slope_much to ptr), i64 52)
  unreachable
take:
  %place = call { ptr, i64 } @slope_tape_bytes(ptr %thread, i64 %new, i64 %size)
  %data = extractvalue { ptr, i64 } %place, 0
  %shift = extractvalue { ptr, i64 } %place, 1
  %old = load ptr, ptr %stack
  %shift.at = getelementptr %stack, ptr %stack, i64 0, i32 3
  %old.shift = load i64, ptr %shift.at
  call void @slope_move(ptr %data, i64 %shift, ptr %old, i64 %old.shift, i64 %count, i64 %size)
  store ptr %data, ptr %stack
  store i64 %new, ptr %room.at
  store i64 %shift, ptr %shift.at
  ret void
}

define void @rt_tape_clear(ptr %stack, i64 %first, i64 %count, i64 %size) nounwind {
entry:
  %data = load ptr, ptr %stack
  %shift.at = getelementptr %stack, ptr %stack, i64 0, i32 3
  %shift = load i64, ptr %shift.at
  %end = add i64 %first, %count
  %any = icmp ult i64 %first, %end
  br i1 %any, label %each, label %done
each:
  %i = phi i64 [ %first, %entry ], [ %next, %each ]
  %at = shl i64 %i, %shift
  %byte = mul i64 %at, %size
  %place = getelementptr i8, ptr %data, i64 %byte
  call void @llvm.memset.p0.i64(ptr %place, i8 0, i64 %size, i1 false)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %each, label %done
done:
  ret void
}

; ---- large objects: LLVM's optimisations know its own operations on them, for which NVPTX goes byte by byte; afterwards these take their place (device_link.c)

@llvm.compiler.used = appending global [4 x ptr] [ptr @slope_set4, ptr @slope_set8, ptr @slope_copy4, ptr @slope_copy8], section "llvm.metadata"

define void @slope_set4(ptr %to, i64 %count) alwaysinline nounwind {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %place = getelementptr i32, ptr %to, i64 %i
  store i32 0, ptr %place
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

define void @slope_copy4(ptr %to, ptr %from, i64 %count) alwaysinline nounwind {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %source = getelementptr i32, ptr %from, i64 %i
  %word = load i32, ptr %source
  %place = getelementptr i32, ptr %to, i64 %i
  store i32 %word, ptr %place
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

define void @slope_set8(ptr %to, i64 %count) alwaysinline nounwind {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %place = getelementptr i64, ptr %to, i64 %i
  store i64 0, ptr %place
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

define void @slope_copy8(ptr %to, ptr %from, i64 %count) alwaysinline nounwind {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %source = getelementptr i64, ptr %from, i64 %i
  %word = load i64, ptr %source
  %place = getelementptr i64, ptr %to, i64 %i
  store i64 %word, ptr %place
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}
