/* Scalar replacement of aggregates: a variable of record or small array type becomes one variable for each
 * part.
 *
 * A variable is looked at as a tree: a record has a node per field, an array one per element. A node is split
 * if its type allows and its address is used only to reach into it, with constant indices, and in whole
 * copies: a node whose address goes anywhere else (a call, a store of the address, an index known at run time
 * only) stays one variable, but the nodes above it can still be split. An exception are arrays: from the
 * address of one element a pointer can go to the others, so an array stays whole if such an address leaves.
 * The leaves become variables; what worked on a split node as a whole (copy, zero, acc) is done part by part,
 * whatever the other side is.
 *
 * Policies, for who differentiates: in flat code, which is to have no vectors as values, vectors are taken
 * apart like arrays; records whose Differential is opaque stay whole. And parameters that come by address can
 * be taken apart: their arrays stay where they are, everything else becomes a variable, which is filled when
 * the function begins and written back when it returns. Nothing else is done with such a parameter then. */
#include "opt.h"

#define MAX_ELEMENTS 16  /* of an array that is split */
#define MAX_LEAVES   256 /* of one variable, and of an array that is only copied */
#define MAX_ROUNDS   8   /* a part that only copies need split is found in the next round */

typedef struct Node Node;
struct Node {
    const Type *type;
    Name name;
    bool stays, raw;
    bool is_split;
    bool is_given; /* in a parameter: its arrays have their place */
    Node *parent;
    Node **children; /* NULL: not reached into so far */
    Val *address;    /* of the variable, for a leaf */
};

/* A variable that stands for a part of a parameter. */
typedef struct Home {
    const Param *param;
    Val *variable, *part; /* the addresses of both */
} Home;

typedef struct Sroa {
    Func *func;
    Arena *scratch;
    SroaOptions options;
    Node **node_of; /* by id of the address */
    uint32_t nids;
    VEC(Home) homes;
    bool changed;
} Sroa;

/* One side of a copy: a node, or an address. */
typedef struct Place {
    Node *node; /* NULL: `address` */
    Val *address;
} Place;

static Node *node_at(const Sroa *s, const Val *v) {
    return v->kind != VAL_const && v->id < s->nids ? s->node_of[v->id] : NULL;
}

/* ---- types */

static int child_count(const Type *type) {
    if (type->kind == TYPE_record) return type_record(type)->nfields;
    if (type->kind == TYPE_vector) return type_count(type);
    return type->kind == TYPE_array ? (int)type_length(type) : 0;
}

static const Type *child_type(const Type *type, int index) {
    return type->kind == TYPE_record ? type_record(type)->fields[index].type : type_element(type);
}

static bool can_be_split(const Sroa *s, const Type *type) {
    if (type->kind == TYPE_vector) return s->options.flat;
    if (type->kind == TYPE_array) return type_length(type) > 0 && type_length(type) <= MAX_ELEMENTS;
    if (type->kind != TYPE_record || type_record(type)->nfields == 0) return false;
    return !(s->options.keep_opaque && ir_record_diff(s->func->module, type)->opaque);
}

/* ---- the trees */

static Name child_name(const Sroa *s, const Node *node, int index) {
    Module *module = s->func->module;
    if (!node->name) return NULL;
    const char *base = node->name->text;
    if (node->type->kind != TYPE_record)
        return name_from(module->names, format_text(s->scratch, "%s_%d", base, index));
    Name field = type_record(node->type)->fields[index].name;
    return field ? name_from(module->names, format_text(s->scratch, "%s.%s", base, field->text)) : node->name;
}

static Node *node_new(const Sroa *s, const Type *type, Name name, bool raw, bool is_given) {
    Node *node = arena_new(s->scratch, Node);
    node->type = type;
    node->name = name;
    node->raw = raw;
    node->is_given = is_given;
    node->stays = (is_given && type->kind == TYPE_array) || !can_be_split(s, type);
    return node;
}

static Node *child_of(const Sroa *s, Node *node, int index) {
    int count = child_count(node->type);
    if (!node->children) node->children = arena_array(s->scratch, Node *, count);
    if (!node->children[index]) {
        node->children[index] =
            node_new(s, child_type(node->type, index), child_name(s, node, index), node->raw, node->is_given);
        node->children[index]->parent = node;
    }
    return node->children[index];
}

/* Which child a field or elem reaches; -1: known at run time only. */
static int child_index(const Inst *inst, const Type *type) {
    int64_t index;
    if (inst->op == OP_field) return inst->index;
    if (type->kind == TYPE_record || !val_is_int(ir_resolve(inst->args[1]), &index)) return -1;
    int64_t last = child_count(type) - 1;
    return (int)(index < 0 || index > last ? last : index);
}

/* The address goes elsewhere as a pointer, which may be moved within an array. */
static void leave(Node *node) {
    node->stays = true;
    for (Node *above = node->parent; above && above->type->kind != TYPE_record; above = above->parent)
        above->stays = true;
}

static void note_part(Sroa *s, Inst *inst, Node *node) {
    if (node->stays) return; /* by its type, or by an earlier use: reached into as it is */
    int index = child_index(inst, node->type);
    if (index < 0) node->stays = true;
    else s->node_of[inst->results[0]->id] = child_of(s, node, index);
}

static void note_use(Sroa *s, Inst *inst, int operand) {
    Node *node = node_at(s, inst->args[operand]);
    if (!node) return;
    bool as_value = !op_has(inst->op, OP_OBJECTS) && node->type->kind == TYPE_vector;
    switch (ir_role(inst, operand)) {
    case ROLE_part: note_part(s, inst, node); return;
    case ROLE_read:
    case ROLE_write:
    case ROLE_share:
        if (op_has(inst->op, OP_PLAIN)) node->stays |= as_value;
        else if (op_has(inst->op, OP_CALLS)) node->stays = true;
        else leave(node);
        return;
    case ROLE_value:
    case ROLE_move:
    case ROLE_escape: leave(node); return;
    }
}

static void note_inst(void *user, Inst *inst) {
    Sroa *s = user;
    inst_resolve(inst);
    for (int i = 0; i < inst->nargs; i++) note_use(s, inst, i);
    if (inst->op != OP_var || !can_be_split(s, inst->type)) return;
    s->node_of[inst->results[0]->id] =
        node_new(s, inst->type, inst->results[0]->name, inst_has(inst, INST_RAW), false);
}

/* Leaves, if everything is split that can be, in this round or a later one; stops counting when there are too
 * many. */
static int count_of_type(const Sroa *s, const Type *type) {
    if (!can_be_split(s, type)) return 1;
    int leaves = 0, count = child_count(type);
    for (int i = 0; i < count && leaves <= MAX_LEAVES; i++) leaves += count_of_type(s, child_type(type, i));
    return leaves;
}

static int count_leaves(const Sroa *s, const Node *node) {
    if (node->stays) return 1;
    int leaves = 0, count = child_count(node->type);
    for (int i = 0; i < count && leaves <= MAX_LEAVES; i++) {
        const Node *child = node->children ? node->children[i] : NULL;
        leaves += child ? count_leaves(s, child) : count_of_type(s, child_type(node->type, i));
    }
    return leaves;
}

/* Who differentiates needs records in parts, however many; an array that is copied and nothing else may stay
 * one. */
static bool has_too_many_leaves(const Sroa *s, const Node *node) {
    bool is_only_copied = node->type->kind == TYPE_array && !node->children;
    return (!s->options.any_size || is_only_copied) && count_leaves(s, node) > MAX_LEAVES;
}

/* Children that nobody reached into are leaves. Where a copy has a split part on its other side, they are
 * reached into by that copy, and the next round splits them too. */
static void make_leaves(Sroa *s, Builder *b, Node *node) {
    if (node->stays) {
        node->address = build_var(b, node->type, node->name, node->raw);
        return;
    }
    node->is_split = true;
    for (int i = 0; i < child_count(node->type); i++) {
        Node *child = child_of(s, node, i);
        if (!child->children) child->stays = true;
        make_leaves(s, b, child);
    }
}

/* ---- whole objects, part by part */

static bool is_whole(Place place) { return !place.node || !place.node->is_split; }
static Val *address_of(Place place) { return place.node ? place.node->address : place.address; }

static Place part_of(Sroa *s, Builder *b, Place place, const Type *type, int index) {
    if (!is_whole(place)) return (Place){.node = child_of(s, place.node, index)};
    Val *address = address_of(place);
    if (type->kind == TYPE_record) return (Place){.address = build_field(b, address, index)};
    Val *at = ir_const_int(s->func->module, type_basic(s->func->module->types, TYPE_int), index);
    return (Place){.address = build_elem(b, address, at, true)};
}

/* In flat code vectors go lane by lane. */
static bool is_value_type(const Sroa *s, const Type *type) {
    if (type->kind == TYPE_vector) return !s->options.flat;
    return type->kind != TYPE_record && type->kind != TYPE_array;
}

static bool goes_whole(const Sroa *s, const Type *type) {
    return type->kind != TYPE_vector || is_value_type(s, type);
}

static void zero_place(Sroa *s, Builder *b, Place place, const Type *type) {
    if (is_whole(place) && is_value_type(s, type)) {
        build_store(b, address_of(place), ir_const_zero(s->func->module, type));
    } else if (is_whole(place) && goes_whole(s, type)) build_zero(b, address_of(place));
    else
        for (int i = 0; i < child_count(type); i++)
            zero_place(s, b, part_of(s, b, place, type, i), child_type(type, i));
}

static void add_into(const Sroa *s, Builder *b, Val *to, Val *from, const Type *type) {
    bool adds = is_value_type(s, type) && type_is_float(type_element(type));
    Val *args[] = {to, from};
    if (!adds) {
        build_inst(b, OP_acc, args, 2, 0, 0);
        return;
    }
    Val *old = build_load(b, to), *more = build_load(b, from);
    build_store(b, to, build_sum(b, old, more));
}

/* `like`: the copy or acc of the whole. No derivative goes through a copy with the flag, nor through its
 * parts. */
static void copy_part(const Sroa *s, Builder *b, const Inst *like, Val *to, Val *from, const Type *type) {
    Val *args[] = {to, from};
    if (like->op == OP_acc) add_into(s, b, to, from, type);
    else if (is_value_type(s, type)) {
        Val *value = build_load(b, from);
        bool detaches = inst_has(like, INST_NO_DIFF) && type_is_float(type_element(type));
        build_store(b, to, detaches ? build_unary(b, OP_detach, value) : value);
    } else build_inst(b, OP_copy, args, 2, 0, 0)->flags = like->flags;
}

static void copy_places(Sroa *s, Builder *b, const Inst *like, Place to, Place from) {
    const Type *type = to.node ? to.node->type : to.address->type->args[0];
    if (is_whole(to) && is_whole(from) && goes_whole(s, type)) {
        copy_part(s, b, like, address_of(to), address_of(from), type);
        return;
    }
    for (int i = 0; i < child_count(type); i++) {
        Place part = part_of(s, b, to, type, i), source = part_of(s, b, from, type, i);
        copy_places(s, b, like, part, source);
    }
}

/* ---- parameters */

/* Arrays, and what stays whole by its type, are not taken apart: the parameter is their address. */
static bool has_its_place(const Sroa *s, const Type *type) {
    if (type->kind == TYPE_array) return true;
    return type->kind == TYPE_record && type_record(type)->nfields > 0 && !can_be_split(s, type);
}

static bool comes_in_parts(const Sroa *s, const Param *param) {
    return (param->flags & PARAM_BY_ADDRESS) && !(param->flags & PARAM_PLACE) &&
           !has_its_place(s, param->type);
}

static void note_params(Sroa *s) {
    for (int i = 0; i < s->func->nparams; i++) {
        const Param *param = &s->func->params[i];
        if (comes_in_parts(s, param))
            s->node_of[s->func->body->params[i]->id] =
                node_new(s, param->type, param->name, param->dir != DIR_out, true);
    }
}

static void make_home(Sroa *s, Builder *b, const Param *param, Node *node, Val *part) {
    bool whole = node->stays || node->type->kind == TYPE_vector;
    if (whole && has_its_place(s, node->type)) node->address = part;
    else if (whole) {
        node->stays = true;
        node->address = build_var(b, node->type, node->name, node->raw);
        Home home = {param, node->address, part};
        vec_push(s->scratch, &s->homes, home);
    } else {
        node->is_split = true;
        for (int i = 0; i < child_count(node->type); i++)
            make_home(s, b, param, child_of(s, node, i), build_field(b, part, i));
    }
}

static void split_params(Sroa *s) {
    const Func *func = s->func;
    Builder b = func->body->first ? build_before(func->body->first) : build_at_end(func->body);
    for (int i = 0; i < func->nparams; i++) {
        Node *node = node_at(s, func->body->params[i]);
        if (node) make_home(s, &b, &func->params[i], node, func->body->params[i]);
    }
    s->changed |= s->homes.count > 0;
}

/* A parameter that is a variable as a whole. */
static void use_homes(const Sroa *s, Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) {
        const Node *node = inst->args[i]->kind == VAL_param ? node_at(s, inst->args[i]) : NULL;
        if (node && !node->is_split) inst->args[i] = node->address;
    }
    ir_follow_space(inst);
}

static void copy_home(const Sroa *s, Builder *b, Val *to, Val *from) {
    const Type *type = ir_target(to->type);
    bool is_value = type->kind == TYPE_vector || is_value_type(s, type);
    if (is_value) build_store(b, to, build_load(b, from));
    else build_copy(b, to, from);
}

static void fill_homes(Sroa *s) {
    for (int i = 0; i < s->homes.count; i++) {
        const Home *home = &s->homes.at[i];
        Builder b = build_after(home->variable->inst);
        if (home->param->dir != DIR_out) copy_home(s, &b, home->variable, home->part);
    }
}

static void write_back(void *user, Inst *inst) {
    Sroa *s = user;
    Builder b = build_before(inst);
    for (int i = 0; i < s->homes.count && inst->op == OP_return; i++) {
        const Home *home = &s->homes.at[i];
        if (home->param->dir != DIR_in) copy_home(s, &b, home->part, home->variable);
    }
}

/* ---- rewriting */

/* Only what is split is a node: the address of a leaf has been replaced by that of its variable. */
static Place place_at(const Sroa *s, Val *v) {
    Node *node = node_at(s, v);
    return node && node->is_split ? (Place){.node = node} : (Place){.address = v};
}

static bool touches_split(const Sroa *s, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (node_at(s, inst->args[i]) && node_at(s, inst->args[i])->is_split) return true;
    return false;
}

static void split_var(Sroa *s, Inst *inst) {
    Node *node = node_at(s, inst->results[0]);
    if (!node || node->stays || has_too_many_leaves(s, node)) return;
    Builder b = build_before(inst);
    make_leaves(s, &b, node);
    inst_remove(inst);
    s->changed = true;
}

/* What this pass makes has new values, and is right as it is. */
static bool is_new(const Sroa *s, const Inst *inst) {
    return inst->nresults > 0 && inst->results[0]->id >= s->nids;
}

static void rewrite_inst(void *user, Inst *inst) {
    Sroa *s = user;
    if (is_new(s, inst)) return;
    inst_resolve(inst);
    if (inst->op == OP_var) {
        split_var(s, inst);
        return;
    }
    use_homes(s, inst);
    if (!touches_split(s, inst)) return;
    Builder b = build_before(inst);
    switch ((Op)inst->op) {
    case OP_field:
    case OP_elem: inst->results[0]->forward = node_at(s, inst->results[0])->address; break;
    case OP_zero: zero_place(s, &b, place_at(s, inst->args[0]), inst->args[0]->type->args[0]); break;
    case OP_copy:
    case OP_acc: copy_places(s, &b, inst, place_at(s, inst->args[0]), place_at(s, inst->args[1])); break;
    default: assert(false && "a split variable is used as a whole");
    }
    inst_remove(inst);
}

static bool split_once(Func *func, SroaOptions options) {
    Sroa s = {.func = func, .scratch = arena_scratch(func->module->arena), .options = options};
    s.nids = func->nvals;
    s.node_of = arena_array(s.scratch, Node *, s.nids);
    if (options.params) note_params(&s);
    region_walk(func->body, note_inst, &s);
    if (options.params) split_params(&s);
    region_walk(func->body, rewrite_inst, &s);
    if (options.params) fill_homes(&s);
    if (options.params) region_walk(func->body, write_back, &s);
    arena_free(s.scratch);
    return s.changed;
}

bool opt_sroa_func(Func *func, SroaOptions options) {
    bool changed = false;
    for (int round = 0; func->body && round < MAX_ROUNDS; round++) {
        if (!split_once(func, options)) break;
        options.params = false;
        changed = true;
    }
    return changed;
}

bool opt_sroa(Func *func) { return opt_sroa_func(func, (SroaOptions){0}); }

/* ---- what calls are given */

typedef struct Reach {
    const Val *object;
    bool is_constant; /* all that is reached into is, by constant indices */
} Reach;

static bool is_small_object(const Type *type) {
    if (type->kind == TYPE_array && !(type_length(type) > 0 && type_length(type) <= MAX_ELEMENTS))
        return false;
    if (type->kind != TYPE_record && type->kind != TYPE_array) return type->kind != TYPE_pointer;
    bool is_small = child_count(type) > 0;
    for (int i = 0; i < child_count(type) && is_small; i++) is_small = is_small_object(child_type(type, i));
    return is_small;
}

static void look_at_reach(void *user, Inst *inst) {
    Reach *reach = user;
    for (int i = 0; i < inst->nargs; i++) {
        Val *address = inst_operand(inst, i);
        if (address->type->kind != TYPE_pointer || ir_root(address) != reach->object) continue;
        bool is_part = ir_role(inst, i) == ROLE_part;
        if (is_part) reach->is_constant &= inst->op == OP_field || val_is_const(inst_operand(inst, 1));
        else reach->is_constant &= op_has(inst->op, OP_PLAIN) && ir_is_private_use(inst, i);
    }
}

bool opt_is_split_in_caller(const Inst *call, int operand) {
    Val *root = ir_root(inst_operand(call, operand));
    bool is_variable = root->kind == VAL_inst && root->inst->op == OP_var;
    Reach reach = {.object = call->callee->body->params[operand], .is_constant = true};
    if (!is_variable || !is_small_object(root->inst->type)) return false;
    region_walk(call->callee->body, look_at_reach, &reach);
    return reach.is_constant;
}
