/* How interface values lie in buffers, uniforms and behind pointers: 8 bytes of type id, 8 bytes of
 * conformance id, and the bytes of the value. Everything that holds interface values by value has a form of
 * its own there, with the same fields.
 *
 * The room for the value is what [anyValueSize] says, else what the largest type behind the interface takes.
 * It is settled when somebody asks for a size, else at the end of lowering, when all types are known. */
#include "lower/lowerer.h"

/* ---- which types have one */

static bool any_part_has_form(Lowerer *l, const Type *type) {
    for (int i = 0; i < type->nargs; i++)
        if (has_external_form(l, type->args[i])) return true;
    return false;
}

static bool any_field_has_form(Lowerer *l, const Type *type) {
    DeclVec fields = check_all_fields(l->c, type);
    for (int i = 0; i < fields.count; i++)
        if (has_external_form(l, check_field_type(l->c, type, fields.at[i]))) return true;
    return false;
}

bool has_external_form(Lowerer *l, const Type *type) {
    switch (type->kind) {
    case TYPE_interface: return true;
    case TYPE_array: return has_external_form(l, type->args[0]);
    case TYPE_tuple:
    case TYPE_optional: return any_part_has_form(l, type);
    case TYPE_struct: break;
    default: return false;
    }
    if (!map_has(&l->has_external, PTR_KEY(type))) {
        map_put(l->arena, &l->has_external, PTR_KEY(type), NULL); /* until known; only broken programs ask */
        if (any_field_has_form(l, type)) map_put(l->arena, &l->has_external, PTR_KEY(type), l);
    }
    return map_get(&l->has_external, PTR_KEY(type)) != NULL;
}

/* ---- their types */

static Record *external_record(Lowerer *l, const Type *front, int nfields) {
    const char *name = format_text(l->arena, "%s.stored", type_text(l->arena, front));
    Record *record = record_new(l->types, name_from(l->m->names, name));
    map_put(l->arena, &l->external, PTR_KEY(front), (void *)(uintptr_t)record->type);
    vec_push(l->arena, &l->m->records, record);
    record->fields = arena_array(l->arena, Field, nfields ? nfields : 1);
    record->nfields = nfields;
    return record;
}

/* The same fields as in the other form, each in its own. */
static const Type *external_struct(Lowerer *l, const Type *type) {
    const Record *like = type_record(lower_type(l, type));
    Record *record = external_record(l, type, like->nfields);
    memcpy(record->fields, like->fields, sizeof(Field) * (size_t)like->nfields);
    DeclVec fields = check_all_fields(l->c, type);
    const FieldSlot *slots = check_field_slots(l->c, type, &fields);
    for (int i = 0; i < fields.count; i++) {
        const Type *field = check_field_type(l->c, type, fields.at[i]);
        if (has_external_form(l, field)) record->fields[slots[i].member].type = lower_external_type(l, field);
    }
    return record->type;
}

static const Type *external_parts(Lowerer *l, const Type *type) {
    const Record *like = type_record(lower_type(l, type));
    Record *record = external_record(l, type, like->nfields);
    memcpy(record->fields, like->fields, sizeof(Field) * (size_t)like->nfields);
    for (int i = 0; i < type->nargs; i++) record->fields[i].type = lower_external_type(l, type->args[i]);
    return record->type;
}

const Type *lower_external_type(Lowerer *l, const Type *type) {
    if (!has_external_form(l, type)) return lower_type(l, type);
    if (type->kind == TYPE_array)
        return type_array(l->types, lower_external_type(l, type->args[0]),
                          type_length(type) < 0 ? 0 : type_length(type));
    const Type *known = map_get(&l->external, PTR_KEY(type));
    if (known) return known;
    if (type->kind == TYPE_struct) return external_struct(l, type);
    if (type->kind != TYPE_interface) return external_parts(l, type);
    vec_push(l->arena, &l->stored, type);
    return external_record(l, type, 0)->type; /* settled later */
}

/* ---- sizes */

static void settle_parts(Lowerer *l, const Type *type);

static int64_t value_size(Lowerer *l, const Type *interface) {
    int64_t size = check_any_value_size(l->c, interface), largest = 0;
    if (size) return size;
    for (int i = 0; i < check_conformers(l->c, interface)->count; i++) {
        const Type *type = check_conformers(l->c, interface)->at[i];
        if (map_has(&l->external, PTR_KEY(type))) settle_parts(l, type);
        int64_t one = external_layout(l, type).size;
        if (one > largest) largest = one;
    }
    return largest;
}

void settle_external(Lowerer *l, const Type *interface) {
    Record *record = type_record(lower_external_type(l, interface));
    if (record->nfields) return;
    const Type *id = type_basic(l->types, TYPE_uint64);
    record->fields = arena_array(l->arena, Field, 3);
    record->nfields = 3;
    record->fields[0] = (Field){.name = name_from(l->m->names, "type"), .type = id};
    record->fields[1] = (Field){.name = name_from(l->m->names, "conformance"), .type = id};
    record->fields[2] =
        (Field){.name = name_from(l->m->names, "payload"), .type = type_array(l->types, id, 0)};
    int64_t size = value_size(l, interface);
    record->fields[2].type = type_array(l->types, id, (size + 7) / 8);
    record->offsets[0] = record->offsets[1] = NULL;
}

static void settle_parts(Lowerer *l, const Type *type) {
    if (!has_external_form(l, type)) return;
    if (type->kind == TYPE_interface) settle_external(l, type);
    for (int i = 0; i < type->nargs && type->kind != TYPE_struct && type->kind != TYPE_interface; i++)
        settle_parts(l, type->args[i]);
    DeclVec fields = check_all_fields(l->c, type);
    for (int i = 0; i < fields.count; i++) settle_parts(l, check_field_type(l->c, type, fields.at[i]));
}

Layout external_layout(Lowerer *l, const Type *type) {
    const Type *ir = lower_external_type(l, type);
    settle_parts(l, type);
    return type_layout(ir, LAYOUT_scalar);
}

int64_t external_room(Lowerer *l, const Type *interface) {
    settle_external(l, interface);
    const Record *record = type_record(lower_external_type(l, interface));
    return type_layout(record->fields[2].type, LAYOUT_scalar).size;
}

/* Says so if a value of the type does not fit. */
bool fits_external(Lowerer *l, const Type *interface, const Type *type) {
    int64_t size = external_layout(l, type).size, room = check_any_value_size(l->c, interface);
    if (!room) room = external_room(l, interface);
    if (size <= room) return true;
    const Decl *decl = type->kind == TYPE_struct ? type->decl : interface->decl;
    diag_report(l->m->diags, DIAG_any_value_size, decl->loc, type_text(l->arena, type), (int)size,
                type_text(l->arena, interface), (int)room);
    return false;
}

/* ---- from one form to the other */

static void convert_fields(Fn *f, const Type *type, Val *from, Val *to, bool load) {
    DeclVec fields = check_all_fields(f->l->c, type);
    const FieldSlot *slots = check_field_slots(f->l->c, type, &fields);
    for (int i = 0; i < fields.count; i++) {
        if (!slots[i].is_first) continue;
        Val *a = build_field(&f->b, from, slots[i].member), *b = build_field(&f->b, to, slots[i].member);
        const Type *field = slots[i].word;
        if (load) from_external(f, field, a, b);
        else to_external(f, field, a, b);
    }
}

static void convert_elements(Fn *f, const Type *type, Val *from, Val *to, bool load) {
    for (int64_t i = 0; i < type_length(type); i++) {
        Val *index = const_int(f, TYPE_int, i);
        Val *a = build_elem(&f->b, from, index, true), *b = build_elem(&f->b, to, index, true);
        if (load) from_external(f, type->args[0], a, b);
        else to_external(f, type->args[0], a, b);
    }
}

/* Tuples; Optional: the value, then the flag. */
static void convert_parts(Fn *f, const Type *type, Val *from, Val *to, bool load) {
    for (int i = 0; i < type->nargs; i++) {
        Val *a = build_field(&f->b, from, i), *b = build_field(&f->b, to, i);
        if (load) from_external(f, type->args[i], a, b);
        else to_external(f, type->args[i], a, b);
    }
    if (type->kind == TYPE_optional) {
        Val *to_part = build_field(&f->b, to, 1);
        Val *term = build_load(&f->b, build_field(&f->b, from, 1));
        build_store(&f->b, to_part, term);
    }
}

static void convert(Fn *f, const Type *type, Val *from, Val *to, bool load) {
    const Type *ir = lower_type(f->l, type);
    if (is_simple(ir)) build_store(&f->b, to, build_load(&f->b, from));
    else if (!has_external_form(f->l, type)) copy_object(f, to, from, false);
    else if (type->kind == TYPE_interface) call_move(f, load ? MOVE_load : MOVE_store, type, type, from, to);
    else if (type->kind == TYPE_struct) convert_fields(f, type, from, to, load);
    else if (type->kind == TYPE_array) convert_elements(f, type, from, to, load);
    else convert_parts(f, type, from, to, load);
}

void from_external(Fn *f, const Type *type, Val *from, Val *to) { convert(f, type, from, to, true); }

void to_external(Fn *f, const Type *type, Val *from, Val *to) { convert(f, type, from, to, false); }

/* Memory that others see, or that may be out of range, is touched as a whole: the rest happens in a copy. */
void load_external(Fn *f, const Type *type, Val *from, Val *to) {
    Val *copy = build_var(&f->b, lower_external_type(f->l, type), name_from(f->l->m->names, "stored"), false);
    copy_object(f, copy, from, false);
    from_external(f, type, copy, to);
}

void store_external(Fn *f, const Type *type, Val *from, Val *to) {
    Val *copy = build_var(&f->b, lower_external_type(f->l, type), name_from(f->l->m->names, "stored"), false);
    to_external(f, type, from, copy);
    copy_object(f, to, copy, false);
}
