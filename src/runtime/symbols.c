/* The functions that emitted code calls, by name. */
#include "runtime/runtime.h"

#define ROW(function)                                                                                        \
    { #function, (void (*)(void))function }

const RtSymbol *runtime_symbols(int *count) {
    static const RtSymbol rows[] = {
        ROW(rt_call),       ROW(rt_launch),    ROW(rt_close),       ROW(rt_abort),
        ROW(rt_barrier),    ROW(rt_wave),      ROW(rt_print),       ROW(rt_tape_open),
        ROW(rt_tape_close), ROW(rt_tape_more), ROW(rt_memory_take), ROW(rt_memory_give),
        ROW(rt_call_deep),  ROW(rt_stack),     ROW(rt_local_take),  ROW(rt_stop),
        ROW(rt_outside),    ROW(rt_made_take), ROW(rt_made_return), ROW(rt_made_constants),
    };
    *count = (int)(sizeof rows / sizeof *rows);
    return rows;
}
