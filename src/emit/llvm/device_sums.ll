; Sums of a GPU's threads. It is read for numbers of type float and for those of type double, which take the place of the word real; emit/clike/cuda.def has the same in CUDA.

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare void @llvm.nvvm.barrier0()
declare { i32, i1 } @llvm.nvvm.match.all.sync.i64p(i32, i64)
declare i1 @llvm.nvvm.vote.all.sync(i32, i1)
declare i32 @llvm.cttz.i32(i32, i1)
declare i32 @llvm.ctpop.i32(i32)
declare i32 @slope_active()
declare i32 @slope_local_index()
declare i64 @slope_shuffle(i32, i64, i32)
declare real @slope_other_real(i32, real, i32)
declare real @slope_down_real(i32, real, i32)

; ---- where all lanes of a warp add to one number, they add up first, by halves of the warp if those that are here are beside each other, else in turn

define real @slope_turns_real(i32 %active, real %value) noinline convergent nounwind {
entry:
  br label %each
each:
  %left = phi i32 [ %active, %entry ], [ %rest, %each ]
  %sum = phi real [ 0.0, %entry ], [ %more, %each ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %theirs = call real @slope_other_real(i32 %active, real %value, i32 %lane)
  %more = fadd real %sum, %theirs
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %end, label %each
end:
  ret real %more
}

define i1 @slope_are_beside_real(i32 %active) alwaysinline nounwind {
  %first = call i32 @llvm.cttz.i32(i32 %active, i1 true)
  %row = lshr i32 %active, %first
  %next = add i32 %row, 1
  %gaps = and i32 %row, %next
  %beside = icmp eq i32 %gaps, 0
  ret i1 %beside
}

; The sum over the lanes that are here, for the first of them.
define real @slope_warp_sum_real(i32 %active, real %value) convergent nounwind {
entry:
  %all = icmp eq i32 %active, -1
  br i1 %all, label %halves, label %some
halves:
  %other.1 = call real @slope_down_real(i32 -1, real %value, i32 16)
  %sum.1 = fadd real %value, %other.1
  %other.2 = call real @slope_down_real(i32 -1, real %sum.1, i32 8)
  %sum.2 = fadd real %sum.1, %other.2
  %other.3 = call real @slope_down_real(i32 -1, real %sum.2, i32 4)
  %sum.3 = fadd real %sum.2, %other.3
  %other.4 = call real @slope_down_real(i32 -1, real %sum.3, i32 2)
  %sum.4 = fadd real %sum.3, %other.4
  %other.5 = call real @slope_down_real(i32 -1, real %sum.4, i32 1)
  %sum.5 = fadd real %sum.4, %other.5
  ret real %sum.5
some:
  %beside = call i1 @slope_are_beside_real(i32 %active)
  br i1 %beside, label %next, label %turns
next:
  %distance = phi i32 [ 16, %some ], [ %closer, %next ]
  %sum = phi real [ %value, %some ], [ %sum.next, %next ]
  %other = call real @slope_down_real(i32 %active, real %sum, i32 %distance)
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %there = add i32 %lane, %distance
  %exists = icmp ult i32 %there, 32
  %safe = and i32 %there, 31
  %moved = lshr i32 %active, %safe
  %bit = trunc i32 %moved to i1
  %counts = and i1 %exists, %bit
  %more = fadd real %sum, %other
  %sum.next = select i1 %counts, real %more, real %sum
  %closer = lshr i32 %distance, 1
  %done = icmp eq i32 %closer, 0
  br i1 %done, label %end, label %next
end:
  ret real %sum.next
turns:
  %in.turn = call real @slope_turns_real(i32 %active, real %value)
  ret real %in.turn
}

define i1 @slope_is_first_real(i32 %active) alwaysinline nounwind {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %first = call i32 @llvm.cttz.i32(i32 %active, i1 true)
  %is.first = icmp eq i32 %lane, %first
  ret i1 %is.first
}

define void @rt_sum_real(ptr %place, real %value) convergent nounwind {
entry:
  %active = call i32 @slope_active()
  %address = ptrtoint ptr %place to i64
  %match = call { i32, i1 } @llvm.nvvm.match.all.sync.i64p(i32 %active, i64 %address)
  %same = extractvalue { i32, i1 } %match, 1
  br i1 %same, label %together, label %add
together:
  %sum = call real @slope_warp_sum_real(i32 %active, real %value)
  %is.first = call i1 @slope_is_first_real(i32 %active)
  br i1 %is.first, label %add, label %done
add:
  %whole = phi real [ %value, %entry ], [ %sum, %together ]
  %unused = atomicrmw fadd ptr %place, real %whole monotonic
  br label %done
done:
  ret void
}

; ---- sums that a group keeps until it ends
;
; slope_sum_order: 2: what lanes have in common is among the first numbers of a buffer that all sums are in; sum i is of its number i. 1: all are in one buffer, and in its order
; if it is small. Otherwise, and if there are several (0), sums are found by their address.

@slope_sums = external addrspace(3) global [0 x real]
@slope_sum_places = external addrspace(3) global [0 x i64]
@slope_sum_base = external addrspace(3) global i64
@slope_sum_count = external addrspace(4) constant i32
@slope_sum_order = external addrspace(4) constant i32

define i32 @slope_group_threads_real() alwaysinline nounwind {
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %height = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %depth = call i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
  %layer = mul i32 %width, %height
  %all = mul i32 %layer, %depth
  ret i32 %all
}

define i64 @slope_number_size_real() alwaysinline nounwind {
  ret i64 ptrtoint (ptr getelementptr (real, ptr null, i64 1) to i64)
}

define i1 @slope_buffer_fits_real(i64 %count, i64 %stride) alwaysinline nounwind {
  %order = load i32, ptr addrspace(4) @slope_sum_order
  %one = icmp ne i32 %order, 0
  %room = load i32, ptr addrspace(4) @slope_sum_count
  %room.wide = zext i32 %room to i64
  %size = call i64 @slope_number_size_real()
  %bytes = mul i64 %room.wide, %size
  %most = udiv i64 %bytes, %stride
  %small = icmp ule i64 %count, %most
  %fits = and i1 %one, %small
  ret i1 %fits
}

define i1 @slope_in_order_real(i1 %fits) alwaysinline nounwind {
  %order = load i32, ptr addrspace(4) @slope_sum_order
  %always = icmp eq i32 %order, 2
  %in.order = or i1 %always, %fits
  ret i1 %in.order
}

; How many of the places are in use.
define i32 @slope_sums_used_real(i64 %count, i64 %stride, i1 %fits) alwaysinline nounwind {
  %room = load i32, ptr addrspace(4) @slope_sum_count
  %size = call i64 @slope_number_size_real()
  %bytes = mul i64 %count, %stride
  %numbers = udiv i64 %bytes, %size
  %few = trunc i64 %numbers to i32
  %used = select i1 %fits, i32 %few, i32 %room
  ret i32 %used
}

define void @rt_sums_start_real(ptr %data, i64 %count, i64 %stride) convergent nounwind {
entry:
  %fits = call i1 @slope_buffer_fits_real(i64 %count, i64 %stride)
  %in.order = call i1 @slope_in_order_real(i1 %fits)
  %used = call i32 @slope_sums_used_real(i64 %count, i64 %stride, i1 %fits)
  %index = call i32 @slope_local_index()
  %step = call i32 @slope_group_threads_real()
  br label %next
next:
  %i = phi i32 [ %index, %entry ], [ %after, %on ]
  %more = icmp ult i32 %i, %used
  br i1 %more, label %each, label %done
each:
  %sum = getelementptr real, ptr addrspace(3) @slope_sums, i32 %i
  store real 0.0, ptr addrspace(3) %sum
  br i1 %in.order, label %on, label %clear
clear:
  %place = getelementptr i64, ptr addrspace(3) @slope_sum_places, i32 %i
  store i64 0, ptr addrspace(3) %place
  br label %on
on:
  %after = add i32 %i, %step
  br label %next
done:
  %is.first = icmp eq i32 %index, 0
  br i1 %is.first, label %base, label %wait
base:
  %address = ptrtoint ptr %data to i64
  %first = select i1 %in.order, i64 %address, i64 0
  store i64 %first, ptr addrspace(3) @slope_sum_base
  br label %wait
wait:
  call void @llvm.nvvm.barrier0()
  ret void
}

define void @rt_sums_end_real(ptr %data, i64 %count, i64 %stride) convergent nounwind {
entry:
  call void @llvm.nvvm.barrier0()
  %fits = call i1 @slope_buffer_fits_real(i64 %count, i64 %stride)
  %in.order = call i1 @slope_in_order_real(i1 %fits)
  %used = call i32 @slope_sums_used_real(i64 %count, i64 %stride, i1 %fits)
  %base = ptrtoint ptr %data to i64
  %size = call i64 @slope_number_size_real()
  %index = call i32 @slope_local_index()
  %step = call i32 @slope_group_threads_real()
  br label %next
next:
  %i = phi i32 [ %index, %entry ], [ %after, %on ]
  %more = icmp ult i32 %i, %used
  br i1 %more, label %each, label %done
each:
  br i1 %in.order, label %order, label %search
order:
  %i.wide = zext i32 %i to i64
  %offset = mul i64 %i.wide, %size
  %ordered = add i64 %base, %offset
  br label %found
search:
  %place.at = getelementptr i64, ptr addrspace(3) @slope_sum_places, i32 %i
  %place = load i64, ptr addrspace(3) %place.at
  br label %found
found:
  %address = phi i64 [ %ordered, %order ], [ %place, %search ]
  %sum.at = getelementptr real, ptr addrspace(3) @slope_sums, i32 %i
  %sum = load real, ptr addrspace(3) %sum.at
  %there = icmp ne i64 %address, 0
  %any = fcmp une real %sum, 0.0
  %adds = and i1 %there, %any
  br i1 %adds, label %add, label %on
add:
  %to = inttoptr i64 %address to ptr addrspace(1)
  %unused = atomicrmw fadd ptr addrspace(1) %to, real %sum monotonic
  br label %on
on:
  %after = add i32 %i, %step
  br label %next
done:
  ret void
}

; Found by its address, in one of four places; if others have them all, it is added at once.
define void @slope_sum_search_real(i64 %address, real %value) noinline nounwind {
entry:
  %room = load i32, ptr addrspace(4) @slope_sum_count
  %size = call i64 @slope_number_size_real()
  %low = udiv i64 %address, %size
  %high = lshr i64 %address, 12
  %mixed = xor i64 %low, %high
  %hash = trunc i64 %mixed to i32
  br label %try
try:
  %i = phi i32 [ 0, %entry ], [ %next, %other ]
  %number = add i32 %hash, %i
  %at = urem i32 %number, %room
  %place = getelementptr i64, ptr addrspace(3) @slope_sum_places, i32 %at
  %pair = cmpxchg ptr addrspace(3) %place, i64 0, i64 %address monotonic monotonic
  %old = extractvalue { i64, i1 } %pair, 0
  %new = extractvalue { i64, i1 } %pair, 1
  %same = icmp eq i64 %old, %address
  %mine = or i1 %new, %same
  br i1 %mine, label %add, label %other
add:
  %sum = getelementptr real, ptr addrspace(3) @slope_sums, i32 %at
  %unused = atomicrmw fadd ptr addrspace(3) %sum, real %value monotonic
  ret void
other:
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %try, label %full
full:
  %to = inttoptr i64 %address to ptr addrspace(1)
  %unused.2 = atomicrmw fadd ptr addrspace(1) %to, real %value monotonic
  ret void
}

; Are sums in order, and is there one for this address? If they are and there is none, it is added at once.
define i1 @slope_sum_ordered_real(i64 %address, real %value) alwaysinline nounwind {
entry:
  %base = load i64, ptr addrspace(3) @slope_sum_base
  %fits = icmp ne i64 %base, 0
  %in.order = call i1 @slope_in_order_real(i1 %fits)
  br i1 %in.order, label %order, label %search
order:
  %size = call i64 @slope_number_size_real()
  %offset = sub i64 %address, %base
  %at = udiv i64 %offset, %size
  %room = load i32, ptr addrspace(4) @slope_sum_count
  %room.wide = zext i32 %room to i64
  %kept = icmp ult i64 %at, %room.wide
  br i1 %kept, label %keep, label %add
keep:
  %sum = getelementptr real, ptr addrspace(3) @slope_sums, i64 %at
  %unused = atomicrmw fadd ptr addrspace(3) %sum, real %value monotonic
  ret i1 true
add:
  %to = inttoptr i64 %address to ptr addrspace(1)
  %unused.2 = atomicrmw fadd ptr addrspace(1) %to, real %value monotonic
  ret i1 true
search:
  ret i1 false
}

; A sum that a warp has made.
define void @slope_sum_add_real(i64 %address, real %value) nounwind {
entry:
  %done = call i1 @slope_sum_ordered_real(i64 %address, real %value)
  br i1 %done, label %end, label %search
search:
  call void @slope_sum_search_real(i64 %address, real %value)
  br label %end
end:
  ret void
}

; A sum of this lane's own. To be found by its address, it would have to be that of a whole warp.
define void @slope_sum_own_real(i64 %address, real %value) nounwind {
entry:
  %done = call i1 @slope_sum_ordered_real(i64 %address, real %value)
  br i1 %done, label %end, label %add
add:
  %to = inttoptr i64 %address to ptr addrspace(1)
  %unused = atomicrmw fadd ptr addrspace(1) %to, real %value monotonic
  br label %end
end:
  ret void
}

; Where there are many, code that is not inlined is the faster one.
define void @rt_group_sum_real(ptr %place, real %value) noinline convergent nounwind {
entry:
  %active = call i32 @slope_active()
  %address = ptrtoint ptr %place to i64
  %match = call { i32, i1 } @llvm.nvvm.match.all.sync.i64p(i32 %active, i64 %address)
  %same = extractvalue { i32, i1 } %match, 1
  br i1 %same, label %together, label %apart
together:
  %sum = call real @slope_warp_sum_real(i32 %active, real %value)
  %is.first = call i1 @slope_is_first_real(i32 %active)
  br i1 %is.first, label %keep, label %done
keep:
  call void @slope_sum_add_real(i64 %address, real %sum)
  br label %done
apart:
  call void @slope_sum_own_real(i64 %address, real %value)
  br label %done
done:
  ret void
}

; ---- several sums of some lanes of a warp: elements of a buffer, `step` of them apart, and in them `offset` bytes, with `distance` more from one to the next

; Indices are as wide as the program has them, and wrap around as there: they have 64 bits less `unused`.
define i64 @slope_index_real(i64 %first, i32 %which, i64 %step, i64 %unused, i1 %signed) alwaysinline nounwind {
  %wide = sext i32 %which to i64
  %more = mul i64 %wide, %step
  %long = add i64 %first, %more
  %high = shl i64 %long, %unused
  %int = ashr i64 %high, %unused
  %uint = lshr i64 %high, %unused
  %index = select i1 %signed, i64 %int, i64 %uint
  ret i64 %index
}

define i64 @slope_place_real(ptr %data, i64 %stride, i64 %index, i64 %offset, i64 %distance, i32 %which) alwaysinline nounwind {
  %base = ptrtoint ptr %data to i64
  %bytes = mul i64 %index, %stride
  %element = add i64 %base, %bytes
  %wide = sext i32 %which to i64
  %part = mul i64 %wide, %distance
  %inside = add i64 %offset, %part
  %place = add i64 %element, %inside
  ret i64 %place
}

; A number of this lane's own, if it is in range.
define void @slope_sum_within_real(ptr %data, i64 %count, i64 %stride, i64 %index, i64 %offset, i64 %distance, i32 %which, real %value) alwaysinline nounwind {
entry:
  %within = icmp ult i64 %index, %count
  br i1 %within, label %add, label %end
add:
  %place = call i64 @slope_place_real(ptr %data, i64 %stride, i64 %index, i64 %offset, i64 %distance, i32 %which)
  call void @slope_sum_own_real(i64 %place, real %value)
  br label %end
end:
  ret void
}

; Where all lanes add to the same places, they add up one sum after the other, and each takes some to where they belong. Lanes beside each other whose places are so too pass on what
; is for others, and the first ones take what is beyond the last.
define void @slope_sums_some_real(ptr %data, i64 %count, i64 %stride, i64 %first, i64 %step, i64 %offset, i64 %distance, i64 %unused, i1 %signed, ptr %values, i32 %n) noinline convergent nounwind {
entry:
  %active = call i32 @slope_active()
  %start = call i32 @llvm.cttz.i32(i32 %active, i1 true)
  %lanes = call i32 @llvm.ctpop.i32(i32 %active)
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %bit = shl i32 1, %lane
  %lower = sub i32 %bit, 1
  %before = and i32 %active, %lower
  %rank = call i32 @llvm.ctpop.i32(i32 %before)
  %least = call i64 @slope_shuffle(i32 %active, i64 %first, i32 %start)
  %is.same = icmp eq i64 %first, %least
  %same = call i1 @llvm.nvvm.vote.all.sync(i32 %active, i1 %is.same)
  br i1 %same, label %part, label %apart

part:
  %k = phi i32 [ 0, %entry ], [ %k.next, %taken ]
  br label %each
each:
  %i = phi i32 [ 0, %part ], [ %i.next, %each ]
  %mine = phi real [ 0.0, %part ], [ %mine.next, %each ]
  %number = add i32 %k, %i
  %value.at = getelementptr real, ptr %values, i32 %number
  %value = load real, ptr %value.at
  %warp.sum = call real @slope_warp_sum_real(i32 %active, real %value)
  %sum = call real @slope_other_real(i32 %active, real %warp.sum, i32 %start)
  %is.mine = icmp eq i32 %rank, %i
  %mine.next = select i1 %is.mine, real %sum, real %mine
  %i.next = add i32 %i, 1
  %number.next = add i32 %number, 1
  %lanes.left = icmp ult i32 %i.next, %lanes
  %numbers.left = icmp ult i32 %number.next, %n
  %more = and i1 %lanes.left, %numbers.left
  br i1 %more, label %each, label %take
take:
  %which = add i32 %k, %rank
  %is.one = icmp ult i32 %which, %n
  %index = call i64 @slope_index_real(i64 %first, i32 %which, i64 %step, i64 %unused, i1 %signed)
  %within = icmp ult i64 %index, %count
  %adds = and i1 %is.one, %within
  br i1 %adds, label %add, label %taken
add:
  %place = call i64 @slope_place_real(ptr %data, i64 %stride, i64 %index, i64 %offset, i64 %distance, i32 %which)
  call void @slope_sum_add_real(i64 %place, real %mine.next)
  br label %taken
taken:
  %k.next = add i32 %k, %lanes
  %parts.left = icmp ult i32 %k.next, %n
  br i1 %parts.left, label %part, label %end

apart:
  %beside = call i1 @slope_are_beside_real(i32 %active)
  %expected = call i64 @slope_index_real(i64 %least, i32 %rank, i64 %step, i64 %unused, i1 %signed)
  %own.index = call i64 @slope_index_real(i64 %first, i32 0, i64 %step, i64 %unused, i1 %signed)
  %follows = icmp eq i64 %own.index, %expected
  %all.follow = call i1 @llvm.nvvm.vote.all.sync(i32 %active, i1 %follows)
  %moves = icmp ne i64 %step, 0
  %whole = icmp eq i64 %distance, 0
  %fits = icmp ule i32 %n, %lanes
  %row.1 = and i1 %beside, %all.follow
  %row.2 = and i1 %moves, %whole
  %row.3 = and i1 %row.1, %row.2
  %in.row = and i1 %row.3, %fits
  %value.0 = load real, ptr %values
  %any = icmp ugt i32 %n, 1
  %pass.on = and i1 %in.row, %any
  br i1 %pass.on, label %pass, label %alone

pass:
  %j = phi i32 [ 1, %apart ], [ %j.next, %pass ]
  %own = phi real [ %value.0, %apart ], [ %own.next, %pass ]
  %beyond = phi real [ 0.0, %apart ], [ %beyond.next, %pass ]
  %j.at = getelementptr real, ptr %values, i32 %j
  %j.value = load real, ptr %j.at
  %is.beyond = icmp ult i32 %rank, %j
  %around = select i1 %is.beyond, i32 %lanes, i32 0
  %from.1 = add i32 %rank, %around
  %from.2 = sub i32 %from.1, %j
  %from = add i32 %from.2, %start
  %theirs = call real @slope_other_real(i32 %active, real %j.value, i32 %from)
  %own.more = fadd real %own, %theirs
  %beyond.more = fadd real %beyond, %theirs
  %own.next = select i1 %is.beyond, real %own, real %own.more
  %beyond.next = select i1 %is.beyond, real %beyond.more, real %beyond
  %j.next = add i32 %j, 1
  %j.more = icmp ult i32 %j.next, %n
  br i1 %j.more, label %pass, label %passed
passed:
  call void @slope_sum_within_real(ptr %data, i64 %count, i64 %stride, i64 %own.index, i64 %offset, i64 0, i32 0, real %own.next)
  %last = sub i32 %n, 1
  %has.beyond = icmp ult i32 %rank, %last
  br i1 %has.beyond, label %further, label %end
further:
  %further.index = call i64 @slope_index_real(i64 %first, i32 %lanes, i64 %step, i64 %unused, i1 %signed)
  call void @slope_sum_within_real(ptr %data, i64 %count, i64 %stride, i64 %further.index, i64 %offset, i64 0, i32 0, real %beyond.next)
  br label %end

alone:
  %m = phi i32 [ 0, %apart ], [ %m.next, %alone ]
  %m.at = getelementptr real, ptr %values, i32 %m
  %m.value = load real, ptr %m.at
  %m.index = call i64 @slope_index_real(i64 %first, i32 %m, i64 %step, i64 %unused, i1 %signed)
  call void @slope_sum_within_real(ptr %data, i64 %count, i64 %stride, i64 %m.index, i64 %offset, i64 %distance, i32 %m, real %m.value)
  %m.next = add i32 %m, 1
  %m.more = icmp ult i32 %m.next, %n
  br i1 %m.more, label %alone, label %end
end:
  ret void
}
