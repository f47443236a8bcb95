/* Buffers that do not overlap. A program may be given one memory as two buffers, so that nobody may take a
 * number that was read from one to be there still after a store to the other; which costs most in a reverse
 * pass, that reads parameters and adds to their gradients. But where a nest of loops is there twice
 * (range.c), the test before it asks for this, too: in the copy that runs if all is well, each access says
 * which of the buffers it leads into, and LLVM is told that these are apart (emit/llvm/scope.c).
 *
 * What is said is to hold for all that the function does, not for one round of a loop around the nest, where
 * buffers may have changed places. So buffers that come about in a loop have no part in it. Two that are read
 * from the same place of a uniform are one. */
#include "opt.h"

static bool is_same(const Val *a, const Val *b) {
    if (a == b) return true;
    if (a->kind != VAL_inst || b->kind != VAL_inst) return false;
    const Inst *one = a->inst, *other = b->inst;
    if (one->op != other->op) return false;
    if (one->op == OP_global) return one->global == other->global;
    bool is_read = one->op == OP_load && inst_is_steady(one) && inst_is_steady(other);
    if (!is_read && (one->op != OP_field || one->index != other->index)) return false;
    return is_same(inst_operand(one, 0), inst_operand(other, 0));
}

int opt_number_of_buffer(const ApartBuffers *buffers, const Val *buffer) {
    for (int i = 0; i < buffers->count; i++)
        if (is_same(buffers->at[i].buffer, buffer)) return buffers->at[i].number;
    return -1;
}

static bool is_in_loop(const Val *v) {
    if (v->kind == VAL_const) return false;
    const Region *region = v->kind == VAL_param ? v->region : v->inst->parent;
    while (region->owner && region->owner->op != OP_loop) region = region->owner->parent;
    return region->owner;
}

/* ---- what is used */

/* An element of a buffer; of lanes, too. */
Inst *opt_buffer_element(Val *address) {
    Val *root = ir_root(address);
    if (root->kind == VAL_inst && root->inst->op == OP_extract) root = ir_root(root->inst->args[0]);
    if (root->kind != VAL_inst) return NULL;
    bool is_element = root->inst->op == OP_buffer_elem || root->inst->op == OP_buffer_bytes;
    return is_element ? root->inst : NULL;
}

/* That an operand leads into, so that it is read or written. What is called does so as well, but only C can
 * be told then (outline.c). */
static Inst *element_used(const Inst *inst, int operand) {
    bool calls = inst->op == OP_call && inst->func->module->keeps_order;
    if (!calls && !op_has(inst->op, OP_READS | OP_WRITES)) return NULL;
    Role role = ir_role(inst, operand);
    bool is_used = role == ROLE_read || role == ROLE_write || role == ROLE_share;
    return is_used ? opt_buffer_element(inst->args[operand]) : NULL;
}

static void find_access(void *user, Inst *inst) {
    ApartBuffers *buffers = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Inst *element = element_used(inst, i);
        Val *buffer = element ? inst_operand(element, 0) : NULL;
        if (!buffer || is_in_loop(buffer)) continue;
        int number = opt_number_of_buffer(buffers, buffer);
        buffers->overflows |= number < 0 && buffers->count == MOST_APART;
        if (buffers->overflows) return;
        if (number < 0) {
            number = buffers->count++;
            buffers->at[number] = (ApartBuffer){.buffer = buffer, .number = number};
        }
        buffers->at[number].is_written |= ir_role(inst, i) != ROLE_read;
    }
}

void opt_find_buffers(ApartBuffers *buffers, const Inst *loop) { inst_walk(loop, find_access, buffers); }

void opt_join_written(ApartBuffers *buffers) {
    const ApartBuffer *first = NULL;
    for (int i = 0; i < buffers->count; i++) {
        ApartBuffer *buffer = &buffers->at[i];
        if (!buffer->is_written) continue;
        if (!first) first = buffer;
        buffer->number = first->number;
    }
}

/* ---- the test */

Val *opt_test_apart(Builder *b, const ApartBuffers *buffers) {
    const Type *type = type_basic(b->func->module->types, TYPE_bool);
    Val *all = NULL;
    for (int i = 0; i < buffers->count && !buffers->overflows; i++)
        for (int k = i + 1; k < buffers->count; k++) {
            const ApartBuffer *one = &buffers->at[i], *other = &buffers->at[k];
            if ((!one->is_written && !other->is_written) || one->number == other->number) continue;
            Val *args[] = {one->buffer, other->buffer};
            Val *apart = build_op(b, OP_buffers_apart, type, args, 2);
            all = all ? build_binary(b, OP_and, all, apart) : apart;
        }
    return all;
}

/* ---- marks */

typedef struct Marking {
    const ApartBuffers *buffers;
    Inst *loop;
    int nest;
    CloneMap outside; /* addresses that come about before the loop, and are those of other code, too */
} Marking;

/* The address, made in the loop or for it. */
static Val *marked(Marking *m, Val *address) {
    Val *v = ir_resolve(address);
    bool is_element =
        v->kind == VAL_inst && (v->inst->op == OP_buffer_elem || v->inst->op == OP_buffer_bytes);
    bool is_part = v->kind == VAL_inst && (op_has(v->inst->op, OP_PART) || v->inst->op == OP_extract);
    if (!is_element && !is_part) return v;
    Val *made = map_get(&m->outside.vals, PTR_KEY(v));
    if (made) return made;
    Val *base = is_part ? marked(m, v->inst->args[0]) : inst_operand(v->inst, 0);
    int number = is_element ? opt_number_of_buffer(m->buffers, base) : -1;
    Inst *inst = v->inst;
    if (!inst_contains(m->loop, v)) {
        inst = clone_inst(&m->outside, inst);
        inst_insert_before(m->loop, inst);
    }
    inst->args[0] = base;
    if (number >= 0)
        inst->apart = (ApartMark){(uint16_t)m->nest, (uint8_t)(number + 1), (uint8_t)m->buffers->count};
    return inst->results[0];
}

static void mark_access(void *user, Inst *inst) {
    Marking *m = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Inst *element = element_used(inst, i);
        if (element && opt_number_of_buffer(m->buffers, inst_operand(element, 0)) >= 0)
            inst->args[i] = marked(m, inst->args[i]);
    }
}

void opt_mark_apart(const ApartBuffers *buffers, Inst *loop, int nest) {
    Marking m = {.buffers = buffers, .loop = loop, .nest = nest};
    m.outside = (CloneMap){.module = loop->func->module, .func = loop->func};
    inst_walk(loop, mark_access, &m);
}
