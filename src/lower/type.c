/* Types of the front end as types of the IR; see lower.h for the correspondence. */
#include "lower/lowerer.h"

#include <stdio.h>

const Type *concrete(Fn *f, const Type *type) {
    if (f->pack_element >= 0) return check_subst_element(f->l->c, type, f->subst, f->pack_element);
    return check_subst(f->l->c, type, f->subst);
}

const Type *ir_type(Fn *f, const Type *type) {
    if (f->b.loc && !f->func->is_library) f->l->at = f->b.loc; /* else it is where the function is */
    return lower_type(f->l, concrete(f, type));
}

bool is_simple(const Type *ir) { return ir->kind != TYPE_record && ir->kind != TYPE_array; }

/* ---- names */

static int count_of(const char *text, char wanted) {
    int count = 0;
    for (; *text; text++) count += *text == wanted;
    return count;
}

/* The namespaces, structs and functions around a declaration; the name of a differential begins with what it
 * belongs to. */
static void add_surroundings(Text *text, const Decl *decl, int known) {
    const Decl *parent = decl->parent;
    if (!parent || parent->kind == DECL_module) return;
    add_surroundings(text, parent, known ? known - 1 : 0);
    bool is_named = parent->name && parent->kind != DECL_extension;
    if (!known && is_named) text_printf(text, "%s.", parent->name->text);
}

static void add_unique(Lowerer *l, Text *text, const Type *type) {
    bool has_decl = type->kind == TYPE_struct || type->kind == TYPE_enum || type->kind == TYPE_interface;
    bool is_built_in = type->kind == TYPE_pair || type->kind == TYPE_ptr_pair ||
                       type->kind == TYPE_optional || type->kind == TYPE_tuple;
    if (has_decl) add_surroundings(text, type->decl, type->name ? count_of(type->name->text, '.') : 0);
    if (!type->nargs || !(has_decl || is_built_in)) {
        type_print(text, type);
        return;
    }
    const char *whole = type_text(l->arena, type),
               *member = has_decl && type->name ? strrchr(type->name->text, '.') : NULL;
    text_add(text, (Str){whole, (int)strcspn(whole, "<")});
    for (int i = 0; i < type->nargs; i++) {
        text_add(text, i ? STR(", ") : STR("<"));
        add_unique(l, text, type->args[i]);
    }
    text_printf(text, ">%s", member ? member : "");
}

const char *unique_name(Lowerer *l, const Type *type) {
    Text text = {.arena = l->arena};
    add_unique(l, &text, type);
    return text.at;
}

/* ---- records */

Record *record_of(Lowerer *l, const Type *front, const char *name) {
    Record *record = record_new(l->types, name_from(l->m->names, name));
    record->user = (void *)(uintptr_t)front;
    record->is_view = check_is_view(front);
    vec_push(l->arena, &l->m->records, record);
    map_put(l->arena, &l->lowered_types, PTR_KEY(front), (void *)(uintptr_t)record->type);
    return record;
}

static void set_fields(Lowerer *l, Record *record, int n) {
    record->fields = arena_array(l->arena, Field, n ? n : 1);
    record->nfields = n;
}

static Name numbered(Lowerer *l, const char *prefix, int i) {
    return name_from(l->m->names, format_text(l->arena, "%s%d", prefix, i));
}

uint16_t image_format(const Decl *decl) { return decl && decl->sema ? decl->sema->image_format : 0; }

bool has_image_format(const Type *type) {
    while (type->kind == TYPE_array) type = type->args[0];
    bool found = false;
    for (int i = 0; type->kind == TYPE_record && i < type_record(type)->nfields && !found; i++) {
        const Field *field = &type_record(type)->fields[i];
        found = field->image_format || has_image_format(field->type);
    }
    return found;
}

bool is_block(const Type *front) {
    while (front->kind == TYPE_array) front = front->args[0];
    return front->kind == TYPE_buffer && front->number == BUFFER_constant;
}

/* Parts of a value that is not kept in one piece: each is one more thing to copy, clear and differentiate. */
static int64_t parts_of(const Type *ir) {
    while (ir->kind == TYPE_array) ir = ir->args[0];
    return ir->kind == TYPE_record ? type_record(ir)->parts + 1 : 1;
}

/* Types can be exponentially larger than their source: struct B { A x, y; }, struct C { B x, y; } and so
 * on. */
static void count_parts(Lowerer *l, Record *record, const Type *front) {
    enum { MAX_PARTS = 65536 };
    record->parts = 0;
    for (int i = 0; i < record->nfields; i++) record->parts += parts_of(record->fields[i].type);
    if (record->parts <= MAX_PARTS) return;
    const Decl *decl = front->kind == TYPE_struct ? front->decl : NULL;
    diag_report(l->m->diags, DIAG_type_too_large, decl ? decl->loc : 0, record->name->text, MAX_PARTS);
    arena_give_up(l->arena);
}

/* Which bits of their member are whose, from the first of those that share it. */
static const char *shared_bits(Lowerer *l, const DeclVec *fields, const FieldSlot *slots, int first) {
    Text text = {.arena = l->arena};
    for (int i = first; i < fields->count && slots[i].member == slots[first].member; i++) {
        int low = slots[i].bit_offset, high = low + slots[i].bit_width - 1;
        if (!slots[i].bit_width || !fields->at[i]->name) continue;
        text_printf(&text, text.len ? ", %d" : "bits %d", low);
        if (high > low) text_printf(&text, " to %d", high);
        text_printf(&text, ": %s", fields->at[i]->name->text);
    }
    return text.at;
}

static const Type *lower_struct(Lowerer *l, const Type *type) {
    Record *record = record_of(l, type, unique_name(l, type));
    DeclVec fields = check_all_fields(l->c, type);
    const FieldSlot *slots = check_field_slots(l->c, type, &fields);
    set_fields(l, record, fields.count ? slots[fields.count - 1].member + 1 : 0);
    for (int i = 0; i < fields.count; i++) {
        if (!slots[i].is_first) continue; /* shares the member of the one before */
        l->at = fields.at[i]->loc;
        const Type *front = slots[i].word, *field = lower_type(l, front);
        Name name = fields.at[i]->name ? fields.at[i]->name : numbered(l, "f", i);
        record->fields[slots[i].member] =
            (Field){name, field, is_block(front), image_format(fields.at[i]),
                    slots[i].is_bits ? shared_bits(l, &fields, slots, i) : NULL};
    }
    return record->type;
}

/* Whether sizes are in order is known when generic arguments are. Nothing can be made of what has none. */
static int64_t small_size(Lowerer *l, const Type *number) {
    int64_t size = 0;
    if (type_is_number(number, &size) && size >= 1 && size <= 4) return size;
    diag_report(l->m->diags, DIAG_shape_size, l->at);
    arena_give_up(l->arena);
}

static const Type *lower_vector(Lowerer *l, const Type *type) {
    small_size(l, type->args[1]);
    return type;
}

static const Type *lower_array(Lowerer *l, const Type *type) {
    const Type *element = lower_type(l, type->args[0]);
    int64_t length = type_length(type);
    bool is_sized = type->nargs == 2;
    if (is_sized && (length < 0 || length > INT32_MAX)) {
        diag_report(l->m->diags, DIAG_array_size, l->at, type_text(l->arena, type->args[1]));
        arena_give_up(l->arena);
    }
    return type_array(l->types, element, is_sized ? length : 0);
}

static const Type *lower_tuple(Lowerer *l, const Type *type) {
    Record *record = record_of(l, type, unique_name(l, type));
    set_fields(l, record, type->nargs);
    for (int i = 0; i < type->nargs; i++)
        record->fields[i] = (Field){.name = numbered(l, "_", i), .type = lower_type(l, type->args[i])};
    return record->type;
}

static const Type *two_fields(Lowerer *l, const Type *type, const char *a, const Type *first, const char *b,
                              const Type *second) {
    Record *record = record_of(l, type, unique_name(l, type));
    set_fields(l, record, 2);
    record->fields[0] = (Field){.name = name_from(l->m->names, a), .type = first};
    record->fields[1] = (Field){.name = name_from(l->m->names, b), .type = second};
    return record->type;
}

static const Type *lower_pair(Lowerer *l, const Type *type) {
    const Type *primal = type->args[0];
    const Type *d =
        type->kind == TYPE_pair ? check_differential(l->c, primal) : check_ptr_differential(l->c, primal);
    return two_fields(l, type, "p", lower_type(l, primal), "d",
                      d ? lower_type(l, d) : type_basic(l->types, TYPE_void));
}

/* ---- interfaces */

static bool is_interface_diff(const Type *type) {
    return type->kind == TYPE_assoc && type->args[0]->kind == TYPE_interface;
}

/* The associated type `sum` of an interface, for one of the types behind it. */
const Type *part_of_variant(Lowerer *l, const Type *sum, const Type *variant) {
    if (check_differential(l->c, sum)) return check_differential(l->c, variant);
    Decl *assoc = (Decl *)(uintptr_t)sum->decl;
    const Type **args = arena_copy(l->arena, sum->args, sizeof sum->args[0] * (size_t)sum->nargs);
    args[0] = variant;
    Satisfaction found =
        check_witness(l->c, variant, assoc, subst_new(l->c, NULL, assoc->parent, args, sum->nargs));
    return found.kind == SATISFY_type ? found.type : NULL;
}

static const Type *interface_field(Lowerer *l, const Type *front, const Type *variant) {
    if (front->kind == TYPE_interface) return lower_type(l, variant);
    const Type *part = part_of_variant(l, front, variant);
    return part ? lower_type(l, part) : NULL;
}

/* Is the record a part of values of this type? */
static bool holds(const Type *ir, const Record *record) {
    if (ir->kind == TYPE_array) return holds(ir->args[0], record);
    if (ir->kind != TYPE_record) return false;
    if (type_record(ir) == record) return true;
    for (int i = 0; i < type_record(ir)->nfields; i++)
        if (type_record(ir)->fields[i].type && holds(type_record(ir)->fields[i].type, record)) return true;
    return false;
}

/* The fields are brought up to date with the types that are known to stand behind the interface. */
static void refresh_interface(Lowerer *l, const Type *front) {
    const Type *interface = front->kind == TYPE_interface ? front : front->args[0];
    Record *record = type_record(lower_type(l, front));
    const TypeVec *types = check_conformers(l->c, interface);
    int first = front->kind == TYPE_interface ? 1 : 0, n = types->count + first;
    record->is_choice = first == 1;
    if (record->nfields == n) return;
    Field *fields = arena_array(l->arena, Field, n + 1);
    if (record->nfields) memcpy(fields, record->fields, sizeof(Field) * (size_t)record->nfields);
    if (first)
        fields[0] = (Field){.name = name_from(l->m->names, "tag"), .type = type_basic(l->types, TYPE_uint)};
    int have = record->nfields > first ? record->nfields : first;
    record->fields = fields;
    record->nfields = n;
    for (int i = have; i < n; i++) {
        const Type *field = interface_field(l, front, types->at[i - first]);
        if (field && holds(field, record)) {
            const Decl *decl = types->at[i - first]->decl;
            if (decl) diag_report(l->m->diags, DIAG_recursive_struct, decl->loc, decl->name->text);
            field = NULL;
        }
        Name name = name_from(l->m->names, type_text(l->arena, types->at[i - first]));
        fields[i] = (Field){
            .name = name, .type = field ? field : type_array(l->types, type_basic(l->types, TYPE_uint8), 0)};
    }
    record->has_diff = false;
    count_parts(l, record, front);
}

static const Type *lower_interface(Lowerer *l, const Type *type) {
    Record *record = record_of(l, type, unique_name(l, type));
    vec_push(l->arena, &l->interfaces, type);
    refresh_interface(l, type);
    return record->type;
}

int variant_index(Lowerer *l, const Type *interface, const Type *type) {
    lower_type(l, interface);
    int index = check_add_conformer(l->c, interface, type);
    for (int i = 0; i < l->interfaces.count; i++) {
        const Type *front = l->interfaces.at[i];
        if (front == interface || (is_interface_diff(front) && front->args[0] == interface))
            refresh_interface(l, front);
    }
    return index + 1;
}

void complete_interfaces(Lowerer *l) {
    for (int i = 0; i < l->interfaces.count; i++) refresh_interface(l, l->interfaces.at[i]);
    for (int i = 0; i < l->stored.count; i++) settle_external(l, l->stored.at[i]);
}

/* ---- entry */

static const Type *lower_matrix(Lowerer *l, const Type *type) {
    int64_t rows = small_size(l, type->args[1]), columns = small_size(l, type->args[2]);
    if (type->flags & TYPE_COLUMN_MAJOR)
        return type_array(l->types, type_vector(l->types, type->args[0], (int)rows), columns);
    return type_array(l->types, type_vector(l->types, type->args[0], (int)columns), rows);
}

static const Type *lower_buffer(Lowerer *l, const Type *type) {
    const Type *element = lower_external_type(l, type->args[0]);
    if (type->number == BUFFER_constant) return type_pointer(l->types, element);
    return type_buffer(l->types, (BufferKind)type->number, element);
}

static const Type *lower_new_type(Lowerer *l, const Type *type) {
    switch (type->kind) {
    case TYPE_matrix: return lower_matrix(l, type);
    case TYPE_array: return lower_array(l, type);
    case TYPE_pointer: return type_pointer(l->types, lower_external_type(l, type->args[0]));
    case TYPE_buffer: return lower_buffer(l, type);
    case TYPE_tuple: return lower_tuple(l, type);
    case TYPE_optional:
        return two_fields(l, type, "value", lower_type(l, type->args[0]), "hasValue",
                          type_basic(l->types, TYPE_bool));
    case TYPE_pair:
    case TYPE_ptr_pair: return lower_pair(l, type);
    case TYPE_struct: return lower_struct(l, type);
    case TYPE_enum: return lower_enum(l, type)->type;
    case TYPE_interface: return lower_interface(l, type);
    case TYPE_assoc: return lower_interface(l, type);
    case TYPE_string: /* no pointer of a program has this type, so that printf can tell text from it */
        return type_pointer(l->types, type_unsized_array(l->types, type_basic(l->types, TYPE_int8)));
    case TYPE_function: return type_basic(l->types, TYPE_void);
    case TYPE_none:
    case TYPE_null: return type_pointer(l->types, type_basic(l->types, TYPE_void));
    default: break;
    }
    if (type_is_scalar(type) || type->kind == TYPE_void || type->kind == TYPE_record ||
        type->kind == TYPE_tape)
        return type;
    arena_fault(l->arena, format_text(l->arena, "cannot lower the type '%s'", type_text(l->arena, type)));
}

#define MAX_TYPE_DEPTH 300

const Type *lower_type(Lowerer *l, const Type *type) {
    if (type_is_scalar(type)) return type;
    if (type->kind == TYPE_vector) return lower_vector(l, type);
    const Type *known = map_get(&l->lowered_types, PTR_KEY(type));
    if (known) return known;
    if (++l->depth > MAX_TYPE_DEPTH) {
        const Decl *decl = type->kind == TYPE_struct ? type->decl : NULL;
        const char *name = type_text(l->arena, type);
        diag_report(l->m->diags, DIAG_type_too_deep, decl ? decl->loc : 0, name, MAX_TYPE_DEPTH);
        arena_give_up(l->arena);
    }
    const Type *ir = lower_new_type(l, type);
    if (ir->kind == TYPE_record && type->kind != TYPE_record) count_parts(l, type_record(ir), type);
    l->depth--;
    map_put(l->arena, &l->lowered_types, PTR_KEY(type), (void *)(uintptr_t)ir);
    return ir;
}

/* ---- how records are differentiated */

static int *new_map(Lowerer *l, int n) {
    int *map = arena_array(l->arena, int, n ? n : 1);
    for (int i = 0; i < n; i++) map[i] = -1;
    return map;
}

static int field_number(const Record *record, Name name) {
    for (int i = 0; i < record->nfields; i++)
        if (record->fields[i].name == name) return i;
    return -1;
}

/* Differentials are added by the dadd of the type that they belong to, unless they have their own. */
static void adopt(Lowerer *l, Record *differential, const RecordDiff *of) {
    complete_record_diff(l, differential);
    RecordDiff *diff = &differential->diff;
    if (!diff->zero) diff->zero = of->zero;
    if (!diff->add) diff->add = of->add;
    diff->opaque |= diff->zero || diff->add;
}

static void struct_diff(Lowerer *l, Record *record, const Type *front) {
    const Type *d = check_differential(l->c, front);
    RecordDiff *diff = &record->diff;
    if (!d) {
        d = check_ptr_differential(l->c, front);
        diff->reference = d != NULL;
    }
    if (!d) return;
    diff->differential = lower_type(l, d);
    int *map = new_map(l, record->nfields);
    bool *covered = NULL;
    int ncovered = 0;
    Record *target = diff->differential->kind == TYPE_record ? type_record(diff->differential) : NULL;
    if (target) covered = arena_array(l->arena, bool, target->nfields + 1);
    DeclVec fields = check_all_fields(l->c, front);
    const FieldSlot *slots = check_field_slots(l->c, front, &fields);
    for (int i = 0; i < fields.count && target; i++) {
        Decl *field = check_differential_field(l->c, front, fields.at[i]);
        int none = check_is_no_diff_field(fields.at[i]) ? FIELD_NO_DIFF : -1;
        int index = field ? field_number(target, field->name) : none;
        if (!slots[i].is_first) continue;
        map[slots[i].member] = index;
        if (index >= 0 && !covered[index]) covered[index] = true, ncovered++;
    }
    diff->field_map = map;
    if (diff->reference) return;
    diff->zero = own_method(l, front, "dzero");
    diff->add = own_sum(l, front);
    diff->opaque = diff->zero || diff->add || !target || ncovered < target->nfields;
    if (target && target != record) adopt(l, target, diff);
}

static void same_diff(Lowerer *l, Record *record, const Type *differential) {
    int *map = new_map(l, record->nfields);
    for (int i = 0; i < record->nfields; i++) map[i] = i;
    record->diff.differential = differential;
    record->diff.field_map = map;
}

static void tuple_diff(Lowerer *l, Record *record, const Type *front) {
    const Type *d = check_differential(l->c, front);
    if (!d) return;
    int *map = new_map(l, record->nfields);
    for (int i = 0; i < record->nfields; i++)
        if (check_differential(l->c, front->args[i])) map[i] = i;
    record->diff.differential = lower_type(l, d);
    record->diff.field_map = map;
}

static void interface_diff(Lowerer *l, Record *record, const Type *front) {
    const Type *d = check_differential(l->c, front);
    if (!d) return;
    Record *target = type_record(lower_type(l, d));
    int *map = new_map(l, record->nfields);
    const TypeVec *types = check_conformers(l->c, front);
    for (int i = 0; i < types->count && i + 1 < record->nfields; i++)
        if (check_differential(l->c, types->at[i])) map[i + 1] = i;
    record->diff.differential = target->type;
    record->diff.field_map = map;
}

static void optional_diff(Lowerer *l, Record *record, const Type *front) {
    const Type *d = check_differential(l->c, front);
    if (!d) return;
    record->diff.differential = lower_type(l, d);
    int *map = new_map(l, 2);
    map[0] = 0;
    record->diff.field_map = map;
    record->diff.optional = true;
}

void complete_record_diff(void *user, Record *record) {
    Lowerer *l = user;
    if (record->has_diff) return;
    record->has_diff = true;
    record->diff = (RecordDiff){0};
    const Type *front = record->user;
    if (!front) return;
    const Type *d;
    switch (front->kind) {
    case TYPE_struct: struct_diff(l, record, front); break;
    case TYPE_interface: interface_diff(l, record, front); break;
    case TYPE_assoc:
        if (check_differential(l->c, front)) same_diff(l, record, record->type);
        break;
    case TYPE_optional: optional_diff(l, record, front); break;
    case TYPE_tuple: tuple_diff(l, record, front); break;
    case TYPE_pair:
        d = check_differential(l->c, front);
        if (d) same_diff(l, record, lower_type(l, d));
        break;
    case TYPE_ptr_pair:
        d = check_ptr_differential(l->c, front);
        if (d) same_diff(l, record, lower_type(l, d));
        record->diff.reference = true;
        break;
    default: break;
    }
}
