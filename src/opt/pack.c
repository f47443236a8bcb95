/* Memory that is seen as another type becomes memory that is taken apart into bits and put together again,
 * for targets that have places and no pointers: a struct seen as its base, an interface's payload as a value
 * of one of its types, whatever goes through bit_cast.
 *
 * A view is an address with a cast of addresses on its way. The bytes that it leads to are found by the
 * layout of the memory below the cast. If there is an object of the same type at that place already, it is
 * meant. Otherwise each number in that range of bytes is put into words of 32 bits, of which the numbers of
 * the other type are made; a number that is written to a view goes the other way, over what was there. Where
 * an index of a view is not known before the program runs, or where a call is given a view, a copy of the
 * object takes its place, which is written back; who is called with a view of memory that others see as well
 * becomes part of the caller.
 *
 * Words are values where they are few; else they are an array, that loops fill and read.
 *
 * What cannot be done stays: addresses and buffers have no bits, an atomic operation no copy, and memory that
 * others write meanwhile is not written but where the program says so. The target refuses it. */
#include <limits.h>

#include "opt.h"

enum {
    WORD = 4,          /* bytes */
    WIDEST = 8,        /* of a number, which is aligned as wide as it is */
    MOST_BYTES = 256,  /* of which words are values */
    MOST_ELEMENTS = 4, /* of arrays that need no loop, in a larger object */
};

/* ---- types */

/* Does it consist of numbers? */
static bool has_bits(const Type *type) {
    if (type->kind == TYPE_vector) return type_is_scalar(type->args[0]);
    if (type->kind == TYPE_array) return type_length(type) > 0 && has_bits(type->args[0]);
    if (type->kind != TYPE_record) return type_is_scalar(type);
    for (int i = 0; i < type_record(type)->nfields; i++)
        if (!has_bits(type_record(type)->fields[i].type)) return false;
    return true;
}

static int64_t size_of(const Type *type, LayoutRules rules) { return type_layout(type, rules).size; }

static int64_t count_of(const Type *row) {
    return row->kind == TYPE_vector ? type_count(row) : type_length(row);
}

/* ---- words */

typedef struct Pack {
    Builder *b;
    LayoutRules rules;
    int64_t first, end; /* the bytes that matter */
    int64_t start;      /* of the first word, a multiple of WIDEST */
    Val **words;        /* or ... */
    Val *memory;        /* ... all of them in an array */
} Pack;

static const Type *basic(const Pack *p, TypeKind kind) { return type_basic(p->b->func->module->types, kind); }

static const Type *unsigned_of(const Pack *p, int64_t size) {
    return basic(p, size == 1 ? TYPE_uint8 : size == 2 ? TYPE_uint16 : size == 4 ? TYPE_uint : TYPE_uint64);
}

static Val *number(const Pack *p, TypeKind kind, int64_t value) {
    return ir_const_int(p->b->func->module, basic(p, kind), value);
}

static Val *plus(const Pack *p, Val *at, int64_t bytes) {
    return build_binary(p->b, OP_add, at, number(p, TYPE_int, bytes));
}

/* Which word, of those that are values. */
static int64_t known_word(const Val *index) {
    int64_t word = -1;
    val_is_int(index, &word);
    assert(word >= 0);
    return word;
}

static Val *word_of(const Pack *p, Val *at) {
    return build_binary(p->b, OP_div, plus(p, at, -p->start), number(p, TYPE_int, WORD));
}

static Val *get_word(const Pack *p, Val *index) {
    if (p->words) return p->words[known_word(index)];
    return build_load(p->b, build_elem(p->b, p->memory, index, true));
}

static void set_word(Pack *p, Val *index, Val *word) {
    if (p->words) p->words[known_word(index)] = word;
    else build_store(p->b, build_elem(p->b, p->memory, index, true), word);
}

/* Of a number that shares its word with others: how far up it is. */
static Val *shift_of(const Pack *p, Val *at) {
    Val *byte = build_binary(p->b, OP_and, at, number(p, TYPE_int, WORD - 1));
    return build_convert(p->b, build_binary(p->b, OP_mul, byte, number(p, TYPE_int, 8)), basic(p, TYPE_uint));
}

static void put_bits(Pack *p, Val *bits, int64_t size, Val *at) {
    Val *index = word_of(p, at), *low = build_convert(p->b, bits, basic(p, TYPE_uint));
    if (size < WORD) {
        Val *up = shift_of(p, at), *mask = number(p, TYPE_uint, ((int64_t)1 << size * 8) - 1);
        Val *others = build_unary(p->b, OP_not, build_binary(p->b, OP_shl, mask, up));
        others = build_binary(p->b, OP_and, get_word(p, index), others);
        low = build_binary(p->b, OP_or, others, build_binary(p->b, OP_shl, low, up));
    }
    set_word(p, index, low);
    if (size <= WORD) return;
    Val *high = build_binary(p->b, OP_shr, bits, number(p, TYPE_uint64, 32));
    Val *next = plus(p, index, 1);
    set_word(p, next, build_convert(p->b, high, basic(p, TYPE_uint)));
}

static Val *take_bits(const Pack *p, int64_t size, Val *at) {
    Val *index = word_of(p, at), *low = get_word(p, index);
    if (size < WORD) low = build_binary(p->b, OP_shr, low, shift_of(p, at));
    low = build_convert(p->b, low, unsigned_of(p, size));
    if (size <= WORD) return low;
    Val *high = build_convert(p->b, get_word(p, plus(p, index, 1)), low->type);
    return build_binary(p->b, OP_or, low, build_binary(p->b, OP_shl, high, number(p, TYPE_uint64, 32)));
}

/* ---- values; a bool is what is not zero */

static void put(Pack *p, Val *value, Val *at) {
    const Type *type = value->type;
    int64_t size = size_of(type_element(type), p->rules);
    if (type->kind == TYPE_vector) {
        for (int i = 0; i < type_count(type); i++) {
            Val *lane = build_extract_lane(p->b, value, i);
            put(p, lane, plus(p, at, i * size));
        }
        return;
    }
    const Type *bits = unsigned_of(p, size);
    put_bits(p, type->kind == TYPE_bool ? build_convert(p->b, value, bits) : build_bitcast(p->b, value, bits),
             size, at);
}

static Val *take(Pack *p, const Type *type, Val *at) {
    int64_t size = size_of(type_element(type), p->rules);
    if (type->kind == TYPE_vector) {
        Val **lanes = arena_array(p->b->func->module->arena, Val *, type_count(type));
        for (int i = 0; i < type_count(type); i++) lanes[i] = take(p, type->args[0], plus(p, at, i * size));
        return build_vec(p->b, type, lanes);
    }
    Val *bits = take_bits(p, size, at);
    return type->kind == TYPE_bool ? build_convert(p->b, bits, type) : build_bitcast(p->b, bits, type);
}

/* ---- objects */

typedef void (*OnValue)(Pack *p, Val *address, Val *at);

static void put_from(Pack *p, Val *address, Val *at) { put(p, build_load(p->b, address), at); }

static void take_into(Pack *p, Val *address, Val *at) {
    build_store(p->b, address, take(p, ir_target(address->type), at));
}

/* Is none of it among the bytes that matter, or all of it? Where words are in memory, all bytes do. */
static bool is_outside(const Pack *p, const Type *type, const Val *at) {
    int64_t byte;
    if (!p->words || !val_is_int(at, &byte)) return false;
    return byte >= p->end || byte + size_of(type, p->rules) <= p->first;
}

static bool is_inside(const Pack *p, const Type *type, const Val *at) {
    int64_t byte;
    if (!p->words || !val_is_int(at, &byte)) return true;
    return byte >= p->first && byte + size_of(type, p->rules) <= p->end;
}

static void for_values(Pack *p, Val *address, Val *at, OnValue on_value);

static void for_elements(Pack *p, Val *row, Val *at, OnValue on_value) {
    const Type *type = ir_target(row->type);
    int64_t stride = type_element_stride(type, p->rules);
    if (p->words || count_of(type) <= MOST_ELEMENTS) {
        for (int64_t i = 0; i < count_of(type); i++) {
            Val *element = build_elem(p->b, row, number(p, TYPE_int, i), true);
            for_values(p, element, plus(p, at, i * stride), on_value);
        }
        return;
    }
    CountLoop loop = build_count(p->b, 0, count_of(type));
    Pack inside = *p;
    inside.b = &loop.body;
    Val *from_start = build_binary(&loop.body, OP_mul, loop.index, number(p, TYPE_int, stride));
    Val *part = build_elem(&loop.body, row, loop.index, true);
    Val *at_part = build_binary(&loop.body, OP_add, at, from_start);
    for_values(&inside, part, at_part, on_value);
    build_next(&loop);
}

/* Of an object at that byte, those that have bytes that matter. */
static void for_values(Pack *p, Val *address, Val *at, OnValue on_value) {
    const Type *type = ir_target(address->type);
    if (is_outside(p, type, at)) return;
    if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++) {
            Val *field = build_field(p->b, address, i);
            for_values(p, field, plus(p, at, type_field_offset(type, i, p->rules)), on_value);
        }
    } else if (type->kind == TYPE_array || (type->kind == TYPE_vector && !is_inside(p, type, at))) {
        for_elements(p, address, at, on_value);
    } else {
        on_value(p, address, at);
    }
}

/* ---- views */

typedef struct View {
    Val *base; /* memory of a type of its own */
    LayoutRules rules;
    int64_t at;       /* the byte in it ... */
    const Type *type; /* ... where there is what is seen as that; */
    const Val *known; /* its address; what is behind it has indices that are not known */
} View;

static bool is_cast(const Val *v) { return v->kind == VAL_inst && ir_is_view(v->inst); }

static bool is_step(const Val *v) {
    return is_cast(v) || (v->kind == VAL_inst && op_has(v->inst->op, OP_PART));
}

/* The cast that is nearest to the memory; NULL: there is none. */
static Val *first_cast(Val *address) {
    Val *found = NULL;
    for (Val *v = ir_resolve(address); is_step(v); v = inst_operand(v->inst, 0))
        if (is_cast(v)) found = v;
    return found;
}

/* Bytes from the address of a whole to that of its part; -1: not known. */
static int64_t bytes_before(const Inst *step, LayoutRules rules) {
    const Type *whole = ir_target(inst_operand(step, 0)->type);
    int64_t index;
    if (step->op == OP_bitcast) return 0;
    if (step->op == OP_field) return type_field_offset(whole, step->index, rules);
    if (!val_is_int(inst_operand(step, 1), &index) || index < 0 || index >= count_of(whole)) return -1;
    return index * type_element_stride(whole, rules);
}

/* As far as steps from the cast are known. */
static void follow(View *view, Val *address, const Val *cast) {
    if (address == cast) return;
    follow(view, inst_operand(address->inst, 0), cast);
    int64_t bytes = bytes_before(address->inst, view->rules);
    if (view->known != inst_operand(address->inst, 0) || bytes < 0) return;
    view->at += bytes;
    view->known = address;
}

/* A cast can lead to more than is at the address that is cast: bytes from one of them on. */
static bool widen(View *view) {
    int64_t size = size_of(view->type, view->rules);
    while (view->at + size > size_of(ir_target(view->base->type), view->rules)) {
        Val *part = view->base;
        if (part->kind != VAL_inst || !op_has(part->inst->op, OP_PART)) return false;
        int64_t bytes = bytes_before(part->inst, view->rules);
        if (bytes < 0) return false;
        view->base = inst_operand(part->inst, 0);
        view->at += bytes;
    }
    return true;
}

/* What is in a uniform as the host lays it out; elements of buffers plainly, whatever the buffer is in. */
static LayoutRules rules_at(Val *address) {
    const Val *root = ir_root(address);
    bool in_uniform =
        root->kind == VAL_inst && root->inst->op == OP_global && root->inst->global->kind == GLOBAL_uniform;
    return in_uniform ? (LayoutRules)root->inst->global->layout : LAYOUT_scalar;
}

static bool find_view(Val *address, View *view) {
    Val *cast = first_cast(address);
    if (!cast) return false;
    Val *base = inst_operand(cast->inst, 0);
    *view = (View){.base = base, .rules = rules_at(base), .known = cast};
    if (!has_bits(ir_target(cast->type))) return false;
    follow(view, ir_resolve(address), cast);
    view->type = ir_target(view->known->type);
    if (!has_bits(ir_target(base->type)) || !widen(view) || !has_bits(ir_target(view->base->type)))
        return false;
    return view->at % type_layout(view->type, view->rules).align == 0;
}

/* What is there already as that type; NULL: nothing. */
static Val *part_at(Builder *b, Val *whole, int64_t at, const View *view) {
    const Type *type = ir_target(whole->type);
    if (at == 0 && type == view->type) return whole;
    if (type->kind == TYPE_record) {
        for (int i = type_record(type)->nfields - 1; i >= 0; i--) {
            int64_t offset = type_field_offset(type, i, view->rules);
            if (offset <= at && size_of(type_record(type)->fields[i].type, view->rules) > 0)
                return part_at(b, build_field(b, whole, i), at - offset, view);
        }
        return NULL;
    }
    if (type->kind != TYPE_array && type->kind != TYPE_vector) return NULL;
    int64_t stride = type_element_stride(type, view->rules), index = at / stride;
    if (index >= count_of(type)) return NULL;
    Val *constant = ir_const_int(b->func->module, type_basic(b->func->module->types, TYPE_int), index);
    return part_at(b, build_elem(b, whole, constant, true), at % stride, view);
}

/* ---- from a view, and to one */

static bool is_small(const View *view) { return size_of(view->type, view->rules) <= MOST_BYTES; }

/* The words of the bytes of a view, as they are in memory; of the whole, if they are many. */
static Pack open_view(Builder *b, const View *view) {
    Module *module = b->func->module;
    Pack p = {.b = b, .rules = view->rules, .first = view->at};
    p.end = view->at + size_of(view->type, view->rules);
    if (is_small(view)) p.start = p.first / WIDEST * WIDEST;
    else p.first = 0, p.end = size_of(ir_target(view->base->type), view->rules);
    int64_t count = (p.end - p.start + WIDEST - 1) / WIDEST * (WIDEST / WORD);
    if (is_small(view)) {
        p.words = arena_array(module->arena, Val *, count);
        for (int64_t i = 0; i < count; i++) p.words[i] = number(&p, TYPE_uint, 0);
    } else {
        p.memory = build_var(b, type_array(module->types, basic(&p, TYPE_uint), count),
                             name_from(module->names, "words"), false);
    }
    for_values(&p, view->base, number(&p, TYPE_int, 0), put_from);
    return p;
}

static void close_view(Pack *p, const View *view) {
    for_values(p, view->base, number(p, TYPE_int, 0), take_into);
}

static Val *start_of(const Pack *p, const View *view) { return number(p, TYPE_int, view->at); }

static Val *read_value(Builder *b, const View *view) {
    Pack p = open_view(b, view);
    return take(&p, view->type, start_of(&p, view));
}

static void read_object(Builder *b, const View *view, Val *to) {
    Pack p = open_view(b, view);
    for_values(&p, to, start_of(&p, view), take_into);
}

static void write_value(Builder *b, const View *view, Val *value) {
    Pack p = open_view(b, view);
    put(&p, value, start_of(&p, view));
    close_view(&p, view);
}

static void write_object(Builder *b, const View *view, Val *from) {
    Pack p = open_view(b, view);
    for_values(&p, from, start_of(&p, view), put_from);
    close_view(&p, view);
}

/* ---- instructions */

typedef struct Instead {
    const Val *known;
    Val *object;
} Instead;

static Val *stands_for(void *user, Builder *b, Val *v) {
    const Instead *instead = user;
    (void)b;
    return v == instead->known ? instead->object : NULL;
}

static void use_instead(Inst *inst, int operand, const View *view, Val *object) {
    Builder b = build_before(inst);
    inst->args[operand] =
        build_place_again(&b, inst->args[operand], stands_for, &(Instead){view->known, object});
}

/* Nobody else writes any of the memory meanwhile. */
static bool is_alone(const View *view) {
    const Val *root = ir_base(view->base);
    if (root->kind == VAL_inst) return root->inst->op == OP_var;
    return root->kind == VAL_param && !root->region->owner &&
           root->region->func->params[root->index].dir != DIR_ref;
}

/* A copy is used, and written back: also what the instruction leaves as it was. That is
 * what a call does with an inout parameter anyway. */
static bool use_copy(Inst *inst, int operand, const View *view) {
    Role role = ir_role(inst, operand);
    bool is_copied = inst->op == OP_call && role == ROLE_write && is_small(view);
    if (!op_has(inst->op, OP_PLAIN) && inst->op != OP_call) return false;
    if (role != ROLE_read && !is_alone(view) && !is_copied) return false;
    Builder before = build_before(inst), after = build_after(inst);
    Val *copy = build_var(&before, view->type, NULL, true);
    read_object(&before, view, copy);
    use_instead(inst, operand, view, copy);
    if (role != ROLE_read) write_object(&after, view, copy);
    return true;
}

/* What takes the place of an instruction that does nothing but read or write the whole; false: nothing
 * can. */
static bool do_instead(Inst *inst, int operand, const View *view) {
    Builder b = build_before(inst);
    bool is_written = operand == 0 && inst->op != OP_load;
    if (is_written && !is_small(view) && !is_alone(view)) return false;
    switch ((Op)inst->op) {
    case OP_load: inst->results[0]->forward = read_value(&b, view); break;
    case OP_store: write_value(&b, view, inst_operand(inst, 1)); break;
    case OP_zero: write_object(&b, view, build_var(&b, view->type, NULL, false)); break;
    case OP_copy:
        if (is_written) write_object(&b, view, inst_operand(inst, 1));
        else if (first_cast(inst->args[0])) return false;
        else read_object(&b, view, inst_operand(inst, 0));
        break;
    default: return false;
    }
    inst_remove(inst);
    return true;
}

typedef enum Outcome { PACKED, REMOVED, IMPOSSIBLE } Outcome;

static Outcome pack(Inst *inst, int operand, const View *view) {
    Builder b = build_before(inst);
    Val *part = part_at(&b, view->base, view->at, view);
    if (part) {
        use_instead(inst, operand, view, part);
        return PACKED;
    }
    bool is_whole = view->known == inst_operand(inst, operand);
    if (is_whole && do_instead(inst, operand, view)) return REMOVED;
    return use_copy(inst, operand, view) ? PACKED : IMPOSSIBLE;
}

static bool is_access(Role role) { return role == ROLE_read || role == ROLE_write || role == ROLE_share; }

static void visit(void *user, Inst *inst) {
    bool *found = user;
    View view;
    for (int i = inst->nargs - 1; i >= 0; i--) {
        Outcome outcome = PACKED;
        while (outcome == PACKED && is_access(ir_role(inst, i)) && find_view(inst->args[i], &view)) {
            outcome = pack(inst, i, &view);
            *found = true;
        }
        if (outcome == REMOVED) return;
    }
}

/* A method of a base is called for memory that others use as well: they would not see what it writes to a
 * copy. */
static bool is_given_view(void *user, const Func *callee, const Inst *call) {
    View view;
    (void)user, (void)callee;
    for (int i = 0; i < call->nargs; i++)
        if (ir_role(call, i) == ROLE_share && find_view(call->args[i], &view) && !is_alone(&view))
            return true;
    return false;
}

bool opt_pack(Func *func) {
    if (!func->body) return false;
    bool found =
        opt_inline(func, (InlinePolicy){.max_size = INT_MAX, .may = is_given_view, .any_form = true});
    region_walk(func->body, visit, &found);
    if (found) ir_resolve_func(func);
    return found;
}
