/* Copies of instructions, regions and functions. A copy refers to the copies of what was copied with it, and
 * to the originals of everything else; operands that were replaced are resolved on the way. */
#include "ir.h"

Val *clone_val(CloneMap *map, Val *v) {
    v = ir_resolve(v);
    Val *copy = v->kind == VAL_const ? NULL : map_get(&map->vals, PTR_KEY(v));
    return copy ? copy : v;
}

void clone_map_val(CloneMap *map, Val *old, Val *new_val) {
    map_put(map->module->arena, &map->vals, PTR_KEY(old), new_val);
}

static const Type *clone_type(CloneMap *map, const Type *type) {
    return type && map->map_type ? map->map_type(map->user, type) : type;
}

void inst_copy_cases(const Inst *from, Inst *to) {
    if (from->op == OP_switch) to->cases = from->cases, to->ncases = from->ncases;
}

static void copy_attributes(const Inst *from, Inst *to) {
    to->flags = from->flags;
    to->type = from->type;
    to->index = from->index;
    switch ((Op)from->op) {
    case OP_call: to->callee = from->callee; break;
    case OP_global: to->global = from->global; break;
    case OP_printf:
    case OP_abort: to->text = from->text; break;
    case OP_shuffle: memcpy(to->lanes, from->lanes, sizeof to->lanes); break;
    case OP_switch: inst_copy_cases(from, to); break;
    case OP_loop: to->hints = from->hints; break;
    case OP_break:
    case OP_continue: to->target = from->target; break;
    default: break;
    }
}

static void clone_attributes(CloneMap *map, const Inst *from, Inst *to) {
    copy_attributes(from, to);
    to->tag = from->tag;
    to->loc = map->relocates || !from->loc ? map->loc : from->loc;
    to->type = clone_type(map, from->type);
    Inst *target =
        from->op == OP_break || from->op == OP_continue ? map_get(&map->insts, PTR_KEY(from->target)) : NULL;
    if (target) to->target = target;
}

static void clone_details(CloneMap *map, const Val *from, Val *to) {
    to->type = clone_type(map, from->type);
    to->name = from->name;
    to->flags = from->flags;
}

Region *clone_region(CloneMap *map, const Region *region, Inst *owner) {
    Region *copy = region_new(map->func, owner);
    for (int i = 0; i < region->nparams; i++) {
        Val *param = region_add_param(copy, NULL, NULL);
        clone_details(map, region->params[i], param);
        clone_map_val(map, region->params[i], param);
    }
    clone_region_into(map, region, copy);
    return copy;
}

Inst *clone_inst(CloneMap *map, Inst *inst) {
    Inst *copy = inst_new(map->func, (Op)inst->op, inst->nargs, inst->nresults, 0);
    clone_attributes(map, inst, copy);
    for (int i = 0; i < inst->nargs; i++) copy->args[i] = clone_val(map, inst->args[i]);
    if (inst->nregions) map_put(map->module->arena, &map->insts, PTR_KEY(inst), copy);
    copy->nregions = inst->nregions;
    if (inst->nregions) copy->regions = arena_array(map->module->arena, Region *, inst->nregions);
    for (int i = 0; i < inst->nregions; i++) copy->regions[i] = clone_region(map, inst->regions[i], copy);
    for (int i = 0; i < inst->nresults; i++) {
        clone_details(map, inst->results[i], copy->results[i]);
        clone_map_val(map, inst->results[i], copy->results[i]);
    }
    ir_follow_space(copy);
    return copy;
}

Inst *clone_with(Builder *b, const Inst *inst, Val *const *args) {
    Inst *copy = build_inst(b, (Op)inst->op, args, inst->nargs, 0, 0);
    copy_attributes(inst, copy);
    for (int i = 0; i < inst->nresults; i++)
        inst_add_result(copy, inst->results[i]->type, inst->results[i]->name);
    ir_follow_space(copy);
    return copy;
}

void clone_region_into(CloneMap *map, const Region *from, Region *into) {
    for (Inst *inst = from->first; inst; inst = inst->next) inst_append(into, clone_inst(map, inst));
}

Func *clone_func(Func *func, const char *name) {
    Func *copy = func_new(func->module, name);
    func_set_params(copy, func->params, func->nparams);
    func_set_results(copy, func->results, func->nresults);
    copy->counterparts = func->counterparts;
    copy->flags = func->flags;
    copy->loc = func->loc;
    copy->is_library = func->is_library;
    copy->custom = func->custom;
    copy->source = func->source;
    memcpy(copy->group_size, func->group_size, sizeof copy->group_size);
    if (func->body) {
        CloneMap map = {.module = func->module, .func = copy};
        copy->body = clone_region(&map, func->body, NULL);
    }
    return copy;
}
