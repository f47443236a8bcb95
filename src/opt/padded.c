/* Rows of local arrays that fill whole vectors.
 *
 *     x = var float[14]                     x = var float[16]
 *     for (i = 0; i < 14; i++)              for (i = 0; i < 14; i++)
 *         x[i] = tanh x[i]                      x[i] = tanh x[i]
 *
 * Where a processor can leave out elements of vectors, two of eight do 14 rounds. But what is read back soon,
 * as by the next layer of a network, has to wait until a vector that was written in part has gone to the
 * cache: only whole ones are handed on before. If the array has room for what is left out, C writes whole
 * ones (emit/clike/masked.c). Elements that were added begin as zero, and nobody looks at them. */
#include "opt.h"

enum { MOST_SIZE = 4096 }; /* bytes of an array */

typedef struct Arrays {
    Arena *scratch;
    bool *wanted, *refused; /* by Val.id of variables */
    const Inst *loop;       /* the innermost one; NULL: none */
    bool is_long;           /* what is done in a round of it */
    VEC(Inst *) counted;    /* addresses of elements of rows that it goes through */
} Arrays;

/* ---- which */

static const Type *row_of(const Type *type) {
    while (type->kind == TYPE_array && type->args[0]->kind == TYPE_array) type = type->args[0];
    return type;
}

static bool is_short(const Type *type) {
    const Type *row = row_of(type);
    return row->kind == TYPE_array &&
           (row->args[0]->kind == TYPE_float || row->args[0]->kind == TYPE_double) &&
           type_layout(type, LAYOUT_scalar).size <= MOST_SIZE &&
           loop_leaves_rest(type_length(row), row->args[0]);
}

static bool is_array(const Val *v) {
    return v->kind == VAL_inst && v->inst->op == OP_var && is_short(v->inst->type);
}

/* All that may be done with it is to read and write numbers. An index into a row that is tested is tested
 * against its length. */
static bool keeps_rows(const Inst *inst, int index) {
    bool finds_row = inst->op == OP_elem && ir_target(inst->results[0]->type)->kind == TYPE_array;
    if (inst->op == OP_elem) return index == 0 && (finds_row || inst_has(inst, INST_UNCHECKED));
    bool is_place = inst->op == OP_load || ((inst->op == OP_store || inst->op == OP_atomic) && index == 0);
    return is_place && type_is_scalar(ir_target(inst_operand(inst, index)->type));
}

static bool is_counted(const Inst *loop, const Inst *elem) {
    if (elem->op != OP_elem) return false; /* a field of what the array is seen as */
    const Val *index = val_unconverted(inst_operand(elem, 1));
    const Type *row = ir_target(inst_operand(elem, 0)->type);
    return index->kind == VAL_param && index->region->owner == loop && row->kind == TYPE_array &&
           loop_most_trips(loop) == type_length(row);
}

static void note_use(Arrays *arrays, Inst *inst, int index) {
    Val *v = inst_operand(inst, index);
    const Val *root = v->type->kind == TYPE_pointer ? ir_root(v) : v;
    if (!is_array(root)) return;
    if (!keeps_rows(inst, index)) arrays->refused[root->id] = true;
    else if (!arrays->loop) return;
    else if (inst->op == OP_elem && is_counted(arrays->loop, inst))
        vec_push(arrays->scratch, &arrays->counted, inst);
    else if (inst->op == OP_store && arrays->is_long && is_counted(arrays->loop, v->inst))
        arrays->wanted[root->id] = true;
}

static bool takes_long(const void *user, const Inst *inst) {
    (void)user;
    return op_is_quotient_or_root(inst->op) || op_is_elementary(inst->op);
}

static bool is_long(const Inst *loop) { return region_find(loop->regions[1], takes_long, NULL); }

static void visit_region(Arrays *arrays, const Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        const Inst *around = arrays->loop;
        bool was_long = arrays->is_long;
        for (int i = 0; i < inst->nargs; i++) note_use(arrays, inst, i);
        if (inst->op == OP_loop) arrays->loop = inst, arrays->is_long = is_long(inst);
        for (int i = 0; i < inst->nregions; i++) visit_region(arrays, inst->regions[i]);
        arrays->loop = around, arrays->is_long = was_long;
    }
}

/* ---- longer rows */

typedef struct Lengthen {
    Func *func;
    const Arrays *arrays;
    bool changed;
} Lengthen;

static bool is_chosen(const Arrays *arrays, const Val *root) {
    return root->kind == VAL_inst && arrays->wanted[root->id] && !arrays->refused[root->id];
}

static const Type *longer(Types *types, const Type *type) {
    const Type *element = type->args[0];
    if (element->kind == TYPE_array) return type_array(types, longer(types, element), type_length(type));
    return type_array(types, element, loop_whole_vectors(type_length(type), element));
}

static void lengthen(void *user, Inst *inst) {
    Lengthen *lengthens = user;
    Module *module = lengthens->func->module;
    if (inst->op != OP_var && inst->op != OP_elem) return;
    if (!is_chosen(lengthens->arrays, ir_root(inst->results[0]))) return;
    if (inst->op == OP_var) {
        inst->type = longer(module->types, inst->type);
        inst->flags &=
            (uint8_t)~INST_RAW; /* numbers near zero are slow, and what nobody looks at is computed all the same */
    }
    inst->results[0]->type = ir_result_type(module, inst);
    lengthens->changed = true;
}

static void mark(const Arrays *arrays) {
    for (int i = 0; i < arrays->counted.count; i++) {
        Inst *elem = arrays->counted.at[i];
        if (is_chosen(arrays, ir_root(elem->results[0]))) elem->flags |= INST_RAW;
    }
}

bool opt_pad_rows(Func *func) {
    if (!func->body || !func->module->keeps_order) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    size_t count = (size_t)func->nvals;
    Arrays arrays = {.scratch = scratch,
                     .wanted = arena_array(scratch, bool, count),
                     .refused = arena_array(scratch, bool, count)};
    Lengthen lengthens = {func, &arrays, false};
    visit_region(&arrays, func->body);
    mark(&arrays);
    region_walk(func->body, lengthen, &lengthens);
    arena_free(scratch);
    return lengthens.changed;
}
