/* Slang as a dialect: the derivative as somebody could have written it, for any compiler of Slang. It uses
 * nothing that is Slope's own: no pointers, no jumps but `break` and `return`, no memory that grows. What
 * cannot be said that way is refused, with its line.
 *
 * Which thread runs is in static variables that kernels set; static variables and constants that need code
 * are what a function returns. */
#include "emit/clike/slang.h"

/* ---- what cannot be said */

static bool is_pointer(const Type *type) { return type->kind == TYPE_pointer && !clike_is_text(type); }

static bool has_pointer(const Type *type) {
    if (is_pointer(type)) return true;
    if (type->kind == TYPE_array || type->kind == TYPE_buffer) return has_pointer(type->args[0]);
    if (type->kind != TYPE_record) return false;
    for (int i = 0; i < type_record(type)->nfields; i++)
        if (has_pointer(type_record(type)->fields[i].type)) return true;
    return false;
}

static bool is_place(const Inst *inst) {
    return slang_is_block(inst) || inst->op == OP_var || inst->op == OP_global || inst->op == OP_field ||
           inst->op == OP_elem || inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes;
}

static bool is_text_made(const Inst *inst) {
    return inst->op == OP_bitcast && clike_is_text(inst->results[0]->type);
}

/* ---- what cannot be said */

static bool calls_from_program(const void *callee, const Inst *inst) {
    return inst->op == OP_call && inst->callee == callee && inst->loc;
}

/* The line of the program that it belongs to: what Slope has made, to read values behind an interface, say,
 * stands for who calls it. */
static Loc place_of(const Printer *p, const Inst *inst) {
    Loc loc = inst->loc ? inst->loc : inst->func->loc;
    for (int i = 0; i < p->reached.funcs.count && !loc; i++) {
        const Inst *call = region_find(p->reached.funcs.at[i]->func->body, calls_from_program, inst->func);
        if (call) loc = call->loc;
    }
    return loc;
}

static bool takes_null(const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (is_pointer(inst->args[i]->type) && val_is_const(ir_resolve(inst->args[i]))) return true;
    return false;
}

static void refuse_inst(void *user, Inst *inst) {
    Printer *p = user;
    if (takes_null(inst))
        clike_fail(p, place_of(p, inst), "this needs a pointer; what is printed as Slang has none");
    if (inst->op == OP_abort) clike_fail(p, place_of(p, inst), "Slang has no 'abort'");
    if (inst->op == OP_buffer_counter)
        clike_fail(p, place_of(p, inst), "the counter of a buffer cannot be reached in Slang");
    if (inst->op == OP_buffer_pointer ||
        (inst->op == OP_bitcast && !is_text_made(inst) &&
         (is_pointer(inst->args[0]->type) || is_pointer(inst->results[0]->type))))
        clike_fail(p, place_of(p, inst),
                   "this needs memory to be read as another type, or the bits of an address, which Slang "
                   "does not have");
    for (int i = 0; i < inst->nresults; i++)
        if (is_pointer(inst->results[i]->type) && !is_place(inst))
            clike_fail(p, place_of(p, inst), "this needs a pointer; what is printed as Slang has none");
    if (inst->op == OP_var && has_pointer(inst->type))
        clike_fail(p, place_of(p, inst), "this needs a pointer; what is printed as Slang has none");
}

static void refuse_params(Printer *p, const Func *func) {
    for (int i = 0; i < func->nparams; i++)
        if (has_pointer(slang_held(&func->params[i])))
            clike_fail(p, func->loc, "'%s' takes a pointer; what is printed as Slang has none",
                       func->name->text);
}

static const char *const id_names[] = {"thread_id", "group_id", "local_id", "local_index"};

enum { IDS = 4 };

static bool is_kernel(const Func *func) { return func->group_size[0] > 0; }

static void note_id(void *user, Inst *inst) {
    Printer *p = user;
    if (inst->op == OP_thread_id && inst->index < IDS) p->static_ids |= 1 << inst->index;
}

/* What is in the blocks, if it is an array of them. */
static const Type *held_by(const Global *global) {
    const Type *type = global->type;
    while (global->is_block && type->kind == TYPE_array) type = type->args[0];
    return global->is_block && type->kind == TYPE_pointer ? type->args[0] : global->type;
}

static void refuse(Printer *p) {
    for (int i = 0; i < p->reached.funcs.count; i++) {
        const Func *func = p->reached.funcs.at[i]->func;
        refuse_params(p, func);
        region_walk(func->body, refuse_inst, p);
        if (!is_kernel(func)) region_walk(func->body, note_id, p);
    }
    for (int i = 0; i < p->reached.globals.count; i++)
        if (has_pointer(held_by(p->reached.globals.at[i]->global)))
            clike_fail(p, p->reached.globals.at[i]->global->loc,
                       "'%s' has a pointer; what is printed as Slang has none",
                       p->reached.globals.at[i]->global->name->text);
    for (int i = 0; i < IDS; i++) clike_unique(p, &p->names, id_names[i]);
    slang_check_tapes(p);
}

/* ---- output */

static void print(Printer *p, const Inst *inst) {
    Text text = {.arena = &p->arena};
    for (int i = 0; i < inst->nargs; i++) text_printf(&text, ", %s", clike_operand(p, inst, i).text);
    clike_line(p, "printf(%s%s);", clike_string(p, inst->text), text.len ? text.at : "");
}

/* ---- kernels */

static const char *const id_semantics[] = {"SV_DispatchThreadID", "SV_GroupID", "SV_GroupThreadID",
                                           "SV_GroupIndex"};

static const char *id_type(int index) { return index == 3 ? "uint" : "uint3"; }

/* What functions ask for is a static variable, which the kernel sets; what only kernels do is a parameter. */
static bool is_static_id(const Printer *p, int index) { return p->static_ids >> index & 1; }

static void declare_static_id(Printer *p, int index) {
    if (clike_begin_helper(p, id_names[index]))
        text_printf(&p->globals, "static %s %s;\n", id_type(index), id_names[index]);
}

const char *slang_thread_id(Printer *p, int index) {
    if (index == IDS) return "uint3(WorkgroupSize())";
    if (index > IDS) clike_fail(p, p->at->loc, "how large a dispatch is cannot be asked for in Slang");
    p->own_ids |= 1 << index;
    if (is_static_id(p, index)) declare_static_id(p, index);
    return id_names[index];
}

static const char *kernel_params(Printer *p, const Func *func, const char **names) {
    Text text = {.arena = &p->arena};
    for (int i = 0; i < IDS; i++)
        if ((p->own_ids | p->static_ids) >> i & 1)
            text_printf(&text, "%s%s %s%s : %s", text.len ? ", " : "", id_type(i),
                        is_static_id(p, i) ? "its_" : "", id_names[i], id_semantics[i]);
    for (int i = 0; i < func->nparams; i++) {
        const char *param = slang_declare_param(p, &func->params[i], names[i]);
        if (param) text_printf(&text, "%suniform %s", text.len ? ", " : "", param);
    }
    return text.len ? text.at : "";
}

static void print_kernel(Printer *p, const Func *func, const char **names) {
    Text body = {.arena = &p->arena}, *outer = p->out;
    p->out = &body;
    p->own_ids = 0;
    p->indent++;
    clike_body(p, func, names);
    p->out = outer;
    p->indent--;
    clike_line(p, "[shader(\"compute\")]\n[numthreads(%d, %d, %d)]", func->group_size[0], func->group_size[1],
               func->group_size[2]);
    clike_line(p, "void %s(%s) {", clike_func_name(p, func), kernel_params(p, func, names));
    for (int i = 0; i < IDS; i++) {
        if (!is_static_id(p, i)) continue;
        declare_static_id(p, i);
        clike_line(p, "    %s = its_%s;", id_names[i], id_names[i]);
    }
    if (body.len) text_add(p->out, text_str(&body));
    clike_line(p, "}\n");
}

static const char *const kernel_names[] = {"its_thread_id", "its_group_id", "its_local_id", "its_local_index",
                                           NULL};

/* ---- globals and what others see: all of it */

static void declare_uniform(Printer *p, const Global *global) { (void)p, (void)global; }

static void uniform(Printer *p, const Global *global, const char *declaration) {
    if (global->layout == LAYOUT_std140 && global->type->kind == TYPE_record) {
        text_printf(&p->globals, "ConstantBuffer<%s> %s;\n", clike_type(p, global->type),
                    clike_global_name(p, global));
        return;
    }
    bool is_resource = global->type->kind == TYPE_buffer || held_by(global) != global->type;
    text_printf(&p->globals, "%s%s;\n", is_resource ? "" : "uniform ", declaration);
}

static void start(Printer *p) { (void)p; }

/* ---- the dialect */

/* Nothing can be called so. */
static const char claimed_words[] =
    " __ref AppendStructuredBuffer as associatedtype bool bool2 bool3 bool4 break Buffer bwd_diff "
    "ByteAddressBuffer case cbuffer centroid class column_major const ConstantBuffer "
    "ConsumeStructuredBuffer continue default defer differentiable DifferentialPair DifferentialPtrPair "
    "discard do double double2 double3 double4 each else enum expand export extension extern false float "
    "float2 float2x2 float3 float3x3 float4 float4x4 for func fwd_diff get groupshared half half2 half3 "
    "half4 IDifferentiable if implementing import in init inout int int16_t int2 int3 int4 int64_t int8_t "
    "interface internal is let linear matrix module namespace new no_diff nointerpolation none "
    "noperspective nullptr operator Optional out packoffset ParameterBlock precise private property "
    "public register return row_major RWByteAddressBuffer RWStructuredBuffer sample set shared sizeof "
    "SlopeTape snorm static String struct StructuredBuffer switch tbuffer This this throw throws true try "
    "Tuple typealias typedef typename uint uint16_t uint2 uint3 uint4 uint64_t uint8_t uniform unorm "
    "using var vector void volatile where while WorkgroupSize ";

/* Functions that printed code calls. A field can be called as one of them. */
static const char called_words[] =
    " abs acos acosh all AllMemoryBarrier any Append asdouble asfloat asin asinh asint asuint atan atan2 "
    "atanh bit_cast ceil copysign cos cosh countbits DeviceMemoryBarrier diffPair erf exp exp2 "
    "firstbithigh firstbitlow floor fma fmod GroupMemoryBarrierWithGroupSync InterlockedAdd "
    "InterlockedAnd InterlockedCompareExchange InterlockedExchange InterlockedMax InterlockedMin "
    "InterlockedOr InterlockedXor isinf isnan ldexp log log10 log2 max min pow printf reversebits rint "
    "select sign sin sinh slope_cbrt slope_expm1 slope_hypot slope_length slope_log1p slope_ratio "
    "slope_scale sqrt tan tanh trunc ";

static const Language places = {
    .declare = slang_declare,
    .declare_value = slang_declare,
    .declare_param = slang_declare_param,
    .define_record = slang_define_record,
    .constant = slang_constant,
    .compute = slang_compute,
    .address = slang_address,
    .load = slang_load,
    .memory = slang_memory,
    .var = slang_var,
    .call = slang_call,
    .atomic = slang_atomic,
    .tape = slang_tape,
    .print = print,
    .refuse = refuse,
    .has_places_only = true,
    .no_params = "",
    .claimed = claimed_words,
    .called = called_words,
};

const Dialect clike_slang = {
    .language = &places,
    .includes = "",
    .header_includes = "",
    .open = "",
    .close = "",
    .outside_open = "",
    .outside_close = "",
    .helper = "",
    .inner = "",
    .outer = "",
    .constant = "static const ",
    .computed = "static const ",
    .shared = "groupshared ",
    .thread_local_ = "static ",
    .barrier = "GroupMemoryBarrierWithGroupSync();",
    .fence = "AllMemoryBarrier();",
    .kernel_names = kernel_names,
    .thread_type = slang_tape_type,
    .kernel = print_kernel,
    .declare_uniform = declare_uniform,
    .uniform = uniform,
    .start = start,
};
