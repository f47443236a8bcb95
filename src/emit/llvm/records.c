/* What lanes read and write of records, each of its own: rows that are turned.
 *
 *     gather (field %place, 0), mask        lane:    0  1  2  3
 *     gather (field %place, 1), mask        row:     x0 x1 x2 x3  <- four rows of memory, x y z w of one lane each,
 *     ...                                            y0 y1 ...       by two exchanges of halves
 *
 * Numbers that stand beside each other in a record are read as one row for each lane instead of one by one
 * for all lanes, and so are those that are written. Whether all lanes are on, and in range, is asked once for
 * all; if not, each is gathered or scattered by itself (wide.c). So are elements of a flat array at one index
 * and different constants (opt/lanes_rows.c).
 *
 * Reads are done where the first of them is, writes where the last one is: between them nothing happens to
 * memory that others see but to other numbers of the same records, which is what sums do:
 *
 *     gather (field %place, 0); ...; scatter (field %place, 0); gather (field %place, 1); ... */
#include "emit/llvm/wide.h"

enum { MOST_MEMBERS = 64, MOST_OPEN = 4, MOST_FIELDS = 8 };

/* The record of each lane: its address; or the buffer and the index to which constants are added. */
typedef struct RecordPlace {
    const Val *root, *index;
} RecordPlace;

/* Of one record, under one mask, in the order of the program. */
struct RecordAccess {
    RecordPlace place;
    int number; /* of the first, in the region */
    const Val *mask;
    const Inst *members[MOST_MEMBERS];
    int count;
};

/* ---- which are one */

static bool is_fixed_step(const Inst *inst) {
    if (inst->op == OP_field) return true;
    return inst->op == OP_elem && inst_has(inst, INST_UNCHECKED) && val_is_const(ir_resolve(inst->args[1]));
}

/* What the address leads into. */
static RecordPlace place_of(const Val *address) {
    int64_t number;
    if (ir_is_beside(address))
        return (RecordPlace){inst_operand(address->inst, 0), ir_index_beside(address->inst, &number)};
    while (address->kind == VAL_inst && is_fixed_step(address->inst) &&
           address->inst->args[0]->type->kind == TYPE_vector)
        address = ir_resolve(address->inst->args[0]);
    return (RecordPlace){address, NULL};
}

static bool is_same_place(RecordPlace a, RecordPlace b) { return a.root == b.root && a.index == b.index; }

static bool is_member(const Inst *inst) {
    if (inst->op != OP_gather && inst->op != OP_scatter) return false;
    const Type *type = inst->args[0]->type;
    return type->kind == TYPE_vector && type_is_scalar(ir_target(type));
}

static bool is_private(const Val *address) {
    while (address->kind == VAL_inst && (address->inst->op == OP_field || address->inst->op == OP_elem))
        address = ir_resolve(address->inst->args[0]);
    return address->kind == VAL_inst && address->inst->op == OP_var;
}

/* Does it do something that has to stay before, or behind, what others read and write? */
static bool is_seen(const Inst *inst) {
    if (op_has(inst->op, OP_REGIONS | OP_EFFECT | OP_CALLS)) return true;
    if (!op_has(inst->op, OP_READS | OP_WRITES)) return false;
    for (int i = 0; i < inst->nargs; i++)
        if (ir_target(inst->args[i]->type) && !is_private(ir_resolve(inst->args[i]))) return true;
    return false;
}

/* Of one record, two numbers are the same or have nothing in common; so have two records. */
static bool is_same_number(const Val *a, const Val *b, RecordPlace place) {
    int64_t of_a, of_b;
    if (place.index)
        return ir_index_beside(a->inst, &of_a) == ir_index_beside(b->inst, &of_b) && of_a == of_b;
    for (; a != place.root && b != place.root;
         a = ir_resolve(a->inst->args[0]), b = ir_resolve(b->inst->args[0])) {
        bool is_field = a->inst->op == OP_field;
        if (a->inst->op != b->inst->op || (is_field && a->inst->index != b->inst->index)) return false;
        if (!is_field && !val_is_same(ir_resolve(a->inst->args[1]), ir_resolve(b->inst->args[1])))
            return false;
    }
    return a == b;
}

static bool has_number(const RecordAccess *record, const Val *address) {
    for (int i = 0; record && i < record->count; i++)
        if (is_same_number(ir_resolve(record->members[i]->args[0]), address, record->place)) return true;
    return false;
}

/* While reads are open, nothing was written but other records' numbers of their own: those of `writes`. */
typedef struct Finder {
    Emitter *e;
    RecordAccess *reads[MOST_OPEN], *writes; /* that may take one more */
    int next;
    int number; /* of the instruction */
    Map made;   /* Inst -> its number: addresses of elements beside others */
} Finder;

static void close_all(Finder *f) {
    for (int i = 0; i < MOST_OPEN; i++) f->reads[i] = NULL;
    f->writes = NULL;
}

static bool is_splat_of_true(const Val *mask) {
    int64_t on;
    return mask->kind == VAL_inst && mask->inst->op == OP_splat &&
           val_is_int(inst_operand(mask->inst, 0), &on) && on;
}

static bool is_same_mask(const Val *a, const Val *b) {
    return a == b || (is_splat_of_true(a) && is_splat_of_true(b));
}

/* Where the record is read, the address has to be known. */
static bool comes_too_late(const Finder *f, const RecordAccess *record, const Val *address) {
    if (!record->place.index) return false;
    return (int)(intptr_t)map_get(&f->made, PTR_KEY(address->inst)) > record->number;
}

static bool takes(const Finder *f, const RecordAccess *record, const Inst *inst) {
    const Val *address = ir_resolve(inst->args[0]);
    return record && record->count < MOST_MEMBERS && is_same_place(record->place, place_of(address)) &&
           is_same_mask(record->mask, ir_resolve(inst->args[inst->nargs - 1])) &&
           (inst->op == OP_scatter || !comes_too_late(f, record, address));
}

static RecordAccess *new_record(Finder *f, const Inst *inst) {
    RecordAccess *record = arena_new(&f->e->arena, RecordAccess);
    record->place = place_of(ir_resolve(inst->args[0]));
    record->mask = ir_resolve(inst->args[inst->nargs - 1]);
    record->number = f->number;
    return record;
}

/* What is read behind what is written: other numbers of the same record. */
static RecordAccess *record_to_read(Finder *f, const Inst *inst) {
    const Val *address = ir_resolve(inst->args[0]);
    if (f->writes && (!is_same_place(f->writes->place, place_of(address)) || has_number(f->writes, address)))
        close_all(f);
    for (int i = 0; i < MOST_OPEN; i++)
        if (takes(f, f->reads[i], inst)) return f->reads[i];
    RecordAccess **oldest = &f->reads[f->next++ % MOST_OPEN];
    return *oldest = new_record(f, inst);
}

/* ... and written behind what is read. */
static RecordAccess *record_to_write(Finder *f, const Inst *inst) {
    if (takes(f, f->writes, inst)) return f->writes;
    if (f->writes) close_all(f);
    f->writes = new_record(f, inst);
    for (int i = 0; i < MOST_OPEN; i++)
        if (f->reads[i] && !is_same_place(f->reads[i]->place, f->writes->place)) f->reads[i] = NULL;
    return f->writes;
}

static void visit(Finder *f, const Inst *inst) {
    f->number++;
    if (inst->nresults == 1 && ir_is_beside(inst->results[0]))
        map_put(&f->e->arena, &f->made, PTR_KEY(inst), (void *)(intptr_t)f->number);
    if (!is_member(inst)) {
        if (is_seen(inst)) close_all(f);
        return;
    }
    RecordAccess *record = inst->op == OP_gather ? record_to_read(f, inst) : record_to_write(f, inst);
    record->members[record->count++] = inst;
    map_put(&f->e->arena, &f->e->at->records, PTR_KEY(inst), record);
}

void emit_find_records(Emitter *e, const Region *region) {
    Finder f = {.e = e};
    for (const Inst *inst = region->first; inst; inst = inst->next) visit(&f, inst);
}

/* ---- rows that are turned */

/* Of each row of `block` numbers, half of those of a and of b by turns. */
static LLVMValueRef zip(Emitter *e, LLVMValueRef a, LLVMValueRef b, unsigned block, bool upper) {
    unsigned count = LLVMGetVectorSize(LLVMTypeOf(a));
    LLVMValueRef from[64];
    for (unsigned i = 0; i < count; i++) {
        unsigned within = i % block, start = i - within + (upper ? block / 2 : 0);
        from[i] = emit_i32(e, start + within / 2 + (within % 2 ? count : 0));
    }
    return LLVMBuildShuffleVector(e->builder, a, b, LLVMConstVector(from, count), "");
}

/* Of each row of 2 * `half`, the lower halves, or the upper ones. */
static LLVMValueRef halves(Emitter *e, LLVMValueRef a, LLVMValueRef b, unsigned half, bool upper) {
    unsigned count = LLVMGetVectorSize(LLVMTypeOf(a));
    LLVMValueRef from[64];
    for (unsigned i = 0; i < count; i++) {
        bool second = (i & half) != 0;
        unsigned at = second == upper ? i : upper ? i + half : i - half;
        from[i] = emit_i32(e, at + (second ? count : 0));
    }
    return LLVMBuildShuffleVector(e->builder, a, b, LLVMConstVector(from, count), "");
}

/* `fields` vectors, made of blocks of as many numbers: number k of block b of vector i becomes number i of
 * that block of vector k. What a register of 128 bits holds is exchanged number by number, the rest in such
 * parts. */
static void turn(Emitter *e, LLVMValueRef *rows, int fields, int bytes) {
    int part = 16 / bytes < fields ? 16 / bytes : fields;
    for (int stage = 1; stage < part; stage *= 2)
        for (int group = 0; group < fields; group += part) {
            LLVMValueRef next[MOST_FIELDS];
            for (int i = 0; i < part; i++)
                next[i] = zip(e, rows[group + i / 2], rows[group + i / 2 + part / 2], count_of(part), i % 2);
            for (int i = 0; i < part; i++) rows[group + i] = next[i];
        }
    for (int half = part; half < fields; half *= 2)
        for (int i = 0; i < fields; i++) {
            if (i & half) continue;
            LLVMValueRef lower = halves(e, rows[i], rows[i + half], count_of(half), false);
            rows[i + half] = halves(e, rows[i], rows[i + half], count_of(half), true);
            rows[i] = lower;
        }
}

/* Neighbours in a record, as many as a row has. */
typedef struct Fields {
    const Access *first;
    LLVMTypeRef row;
    int count, bytes; /* of one */
} Fields;

static LLVMValueRef at_lane(Emitter *e, const Fields *fields, int lane) {
    return emit_lane_at(e, fields->first, lane);
}

static LLVMValueRef load_row(Emitter *e, const Fields *fields, int lane) {
    LLVMValueRef row = LLVMBuildLoad2(e->builder, fields->row, at_lane(e, fields, lane), "");
    LLVMSetAlignment(row, fields->first->align);
    emit_tag_at(e, row, &fields->first->address);
    return row;
}

static void load_rows(Emitter *e, const Fields *fields, LLVMValueRef *values) {
    int blocks = fields->first->lanes / fields->count;
    for (int i = 0; i < fields->count; i++) {
        LLVMValueRef parts[64];
        for (int b = 0; b < blocks; b++) parts[b] = load_row(e, fields, b * fields->count + i);
        values[i] = emit_joined(e, parts, count_of(blocks));
    }
    turn(e, values, fields->count, fields->bytes);
}

static LLVMValueRef block_of(Emitter *e, LLVMValueRef vector, int block, int size) {
    LLVMValueRef from[64];
    for (int i = 0; i < size; i++) from[i] = emit_i32(e, block * size + i);
    return LLVMBuildShuffleVector(e->builder, vector, LLVMGetPoison(LLVMTypeOf(vector)),
                                  LLVMConstVector(from, count_of(size)), "");
}

/* Lane by lane: where two have the same place, the last gets it. */
static void store_rows(Emitter *e, const Fields *fields, LLVMValueRef *values) {
    turn(e, values, fields->count, fields->bytes);
    for (int lane = 0; lane < fields->first->lanes; lane++) {
        LLVMValueRef row = block_of(e, values[lane % fields->count], lane / fields->count, fields->count);
        LLVMValueRef store = LLVMBuildStore(e->builder, row, at_lane(e, fields, lane));
        LLVMSetAlignment(store, fields->first->align);
        emit_tag_at(e, store, &fields->first->address);
    }
}

/* ---- a record */

typedef struct Part {
    Access access;
    int64_t offset;
    LLVMValueRef value; /* to be stored, or what was loaded */
    int index;          /* among the members */
} Part;

typedef struct Parts {
    Part *at;
    int count;
    bool stores;
} Parts;

static int64_t offset_of(const Val *address, RecordPlace place) {
    int64_t offset = 0, index;
    if (place.index) {
        ir_index_beside(address->inst, &index);
        return index * type_layout(ir_target(address->type), LAYOUT_scalar).stride;
    }
    for (; address != place.root; address = ir_resolve(address->inst->args[0])) {
        const Inst *step = address->inst;
        const Type *whole = ir_target(step->args[0]->type);
        if (step->op == OP_field) offset += type_field_offset(whole, step->index, LAYOUT_scalar);
        else if (val_is_int(ir_resolve(step->args[1]), &index))
            offset += index * type_element_stride(whole, LAYOUT_scalar);
    }
    return offset;
}

static Part part_of(Emitter *e, const RecordAccess *record, Value place, int index) {
    const Inst *inst = record->members[index];
    int64_t offset = offset_of(ir_resolve(inst->args[0]), record->place);
    Value at = record->place.index ? emit_operand(e, inst, 0) : emit_further(e, place, offset);
    LLVMValueRef mask = emit_value(e, record->mask).value;
    Part part = {.access = emit_access(e, inst, at, mask), .offset = offset, .index = index};
    if (inst->op == OP_scatter)
        part.value = emit_to_memory(e, part.access.scalar, emit_use(e, inst, 1), part.access.memory);
    return part;
}

/* By their offsets; those with the same one in their order. */
static Parts parts_of(Emitter *e, const RecordAccess *record) {
    Parts parts = {arena_array(&e->arena, Part, record->count), record->count,
                   record->members[0]->op == OP_scatter};
    Value place = {0};
    if (!record->place.index) place = emit_value(e, record->place.root);
    for (int i = 0; i < record->count; i++) {
        Part part = part_of(e, record, place, i);
        int at = i;
        for (; at > 0 && parts.at[at - 1].offset > part.offset; at--) parts.at[at] = parts.at[at - 1];
        parts.at[at] = part;
    }
    return parts;
}

static int bytes_of(const Part *part) { return (int)type_layout(part->access.scalar, LAYOUT_scalar).size; }

static bool is_next(const Part *a, const Part *b) {
    return a->access.memory == b->access.memory && b->offset == a->offset + bytes_of(a);
}

/* Those from `first` on that make a row. */
static void access_row(Emitter *e, const Parts *parts, int first, int count) {
    LLVMValueRef values[MOST_FIELDS];
    Part *at = parts->at + first;
    Fields fields = {.first = &at->access, .count = count, .bytes = bytes_of(at)};
    fields.row = LLVMVectorType(LLVMGetElementType(at->access.memory), count_of(count));
    for (int i = 0; i < count; i++) values[i] = at[i].value;
    if (parts->stores) {
        store_rows(e, &fields, values);
        return;
    }
    load_rows(e, &fields, values);
    for (int i = 0; i < count; i++) at[i].value = values[i];
}

static void access_one(Emitter *e, const Parts *parts, int index) {
    Part *part = &parts->at[index];
    if (parts->stores) emit_store_all(e, &part->access, part->value);
    else part->value = emit_load_all(e, &part->access);
}

/* The last row may have some that the one before it has, too. */
static void access_neighbours(Emitter *e, const Parts *parts, int first, int count) {
    const Part *part = &parts->at[first];
    int most = (e->habits.row < 32 ? 16 : 32) / bytes_of(part);
    if (most > part->access.lanes) most = part->access.lanes;
    if (most > MOST_FIELDS) most = MOST_FIELDS;
    for (int done = 0; done < count;) {
        int row = most;
        while (row > 2 && row >= 2 * (count - done)) row /= 2;
        while (row > count) row /= 2;
        int at = done + row > count ? count - row : done;
        if (row < 2) access_one(e, parts, first + at);
        else access_row(e, parts, first + at, row);
        done = at + row;
    }
}

static void access_all(Emitter *e, const Parts *parts) {
    for (int first = 0, next; first < parts->count; first = next) {
        for (next = first + 1; next < parts->count && is_next(&parts->at[next - 1], &parts->at[next]); next++)
            ;
        access_neighbours(e, parts, first, next - first);
    }
}

static void access_some(Emitter *e, const Parts *parts) {
    for (int i = 0; i < parts->count; i++) {
        Part *part = &parts->at[i];
        LLVMValueRef loaded = emit_access_masked(e, &part->access, part->value);
        if (!parts->stores) part->value = loaded;
    }
}

static void merge(Emitter *e, const Parts *parts, LLVMValueRef *fast, LLVMBasicBlockRef *ways) {
    for (int i = 0; i < parts->count; i++) {
        LLVMValueRef values[] = {fast[i], parts->at[i].value};
        LLVMValueRef phi = LLVMBuildPhi(e->builder, parts->at[i].access.memory, "");
        LLVMAddIncoming(phi, values, ways, 2);
        parts->at[i].value = phi;
    }
}

/* All fast, or all the other way. */
static void access_asked(Emitter *e, const Parts *parts, LLVMValueRef all) {
    LLVMBasicBlockRef fast = emit_block(e, "all"), slow = emit_block(e, "some"),
                      after = emit_block(e, "done");
    LLVMValueRef *loaded = arena_array(&e->arena, LLVMValueRef, parts->count);
    LLVMBuildCondBr(e->builder, all, fast, slow);
    LLVMPositionBuilderAtEnd(e->builder, fast);
    access_all(e, parts);
    for (int i = 0; i < parts->count && !parts->stores; i++) {
        loaded[i] = parts->at[i].value;
        parts->at[i].value = NULL;
    }
    LLVMBuildBr(e->builder, after);
    LLVMPositionBuilderAtEnd(e->builder, slow);
    access_some(e, parts);
    LLVMBuildBr(e->builder, after);
    LLVMPositionBuilderAtEnd(e->builder, after);
    if (!parts->stores) merge(e, parts, loaded, (LLVMBasicBlockRef[]){fast, slow});
}

/* Of elements, the first and the last are asked about, and with them all that are between. */
static LLVMValueRef ask_for_all(Emitter *e, const RecordAccess *record, const Parts *parts) {
    Access *first = &parts->at[0].access, *last = &parts->at[parts->count - 1].access;
    emit_access_ask(e, first);
    if (!record->place.index || parts->at[0].offset == parts->at[parts->count - 1].offset) return first->all;
    emit_access_ask(e, last);
    return first->all && last->all ? LLVMBuildAnd(e->builder, first->all, last->all, "")
           : first->all            ? first->all
                                   : last->all;
}

static void access_record(Emitter *e, const RecordAccess *record) {
    Parts parts = parts_of(e, record);
    LLVMValueRef all = ask_for_all(e, record, &parts);
    if (all) access_asked(e, &parts, all);
    else access_all(e, &parts);
    for (int i = 0; i < parts.count && !parts.stores; i++) {
        const Part *part = &parts.at[i];
        const Inst *inst = record->members[part->index];
        emit_result(e, inst, emit_from_memory(e, part->access.scalar, part->value));
    }
}

bool emit_record(Emitter *e, const Inst *inst) {
    const RecordAccess *record = map_get(&e->at->records, PTR_KEY(inst));
    if (!record || record->count < 2) return false;
    const Inst *when = record->members[inst->op == OP_scatter ? record->count - 1 : 0];
    if (inst == when) access_record(e, record);
    return true;
}
