/* Waves: where there are as many lanes as a wave has, the lanes are the wave.
 *
 * The threads of a wave meet at a place of the program, and get a table: who met, as bits, and what each has
 * brought (OP_wave). Lanes that do a step together have met, so that the table is a variable that is filled
 * on the spot, the same for all of them, and what is computed from it, a sum say, is computed once.
 *
 * One by one, threads that come to the same place meet, in whatever round of a loop each is. Lanes are in the
 * same round. So they are the same ones if no lane can be a round ahead: if what lets lanes go different ways
 * is not inside of a loop again. */
#include "opt/lanes.h"

enum { TABLE_WORDS = 2 + 128 }; /* any number of a lane may be asked for */

static const Type *long_type(const Lanes *lanes) { return type_basic(lanes->module->types, TYPE_uint64); }

/* The lanes that are on, as bits. */
static Val *bits_of_mask(Lanes *lanes) {
    const Type *type = long_type(lanes);
    Val *flags[MOST_LANES], *all = ir_const_int(lanes->module, type, 0);
    for (int i = 0; i < lanes->width; i++) flags[i] = ir_const_int(lanes->module, type, (int64_t)(1ull << i));
    Val *row = build_vec(&lanes->b, lanes_row(lanes, type), flags);
    row = lanes_where_on(lanes, row, ir_const_zero(lanes->module, row->type));
    for (int i = 0; i < lanes->width; i++)
        all = build_binary(&lanes->b, OP_or, all, build_extract_lane(&lanes->b, row, i));
    return all;
}

/* Of those that are on, those that are named, if any are. */
static Val *those_who_meet(Lanes *lanes, const Inst *inst) {
    Val *on = bits_of_mask(lanes), *low = lanes_same(lanes, inst->args[1]),
        *high = lanes_same(lanes, inst->args[2]);
    Val *zero = ir_const_int(lanes->module, long_type(lanes), 0);
    Val *named = build_binary(&lanes->b, OP_ne, build_binary(&lanes->b, OP_or, low, high), zero);
    return build_select(&lanes->b, named, build_binary(&lanes->b, OP_and, on, low), on);
}

static Val *word_at(Lanes *lanes, Val *table, int index) {
    const Type *type = type_basic(lanes->module->types, TYPE_int);
    return build_elem(&lanes->b, table, ir_const_int(lanes->module, type, index), true);
}

static void fill_table(Lanes *lanes, Inst *inst) {
    const Type *type = type_array(lanes->module->types, long_type(lanes), TABLE_WORDS);
    Val *table = build_var(&lanes->b, type, inst->results[0]->name, false);
    Val *first = word_at(lanes, table, 0);
    build_store(&lanes->b, first, those_who_meet(lanes, inst));
    for (int i = 0; i < lanes->width; i++) {
        Val *value = build_extract_lane(&lanes->b, lanes_spread(lanes, inst->args[0], 0), i);
        build_store(&lanes->b, word_at(lanes, table, i + 2), value);
    }
    clone_map_val(&lanes->map, inst->results[0], word_at(lanes, table, 0));
}

void lanes_wave(Lanes *lanes, Inst *inst) {
    bool names = varies(lanes, ir_resolve(inst->args[1])) || varies(lanes, ir_resolve(inst->args[2]));
    if (names) lanes_decline(lanes, inst, "which threads of a wave meet differs between items");
    else if (lanes->drifts)
        lanes_decline(lanes, inst, "threads of a wave may meet in different rounds of a loop");
    else fill_table(lanes, inst);
}

/* A part of a row of the group. */
int lanes_of_wave(const Lanes *lanes, const Func *kernel) {
    int64_t threads = (int64_t)kernel->group_size[0] * kernel->group_size[1] * kernel->group_size[2];
    int64_t wave = threads < lanes->options->wave ? threads : lanes->options->wave;
    bool fits = wave <= MOST_LANES && (wave & (wave - 1)) == 0 && kernel->group_size[0] % wave == 0;
    return fits ? (int)wave : 1;
}
