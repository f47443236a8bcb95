/* slope run: bind, set, dispatch, print, save.
 *
 * Several entry points run one after the other, on the same data, each with its own number of groups or all
 * with the same. A parameter that several of them have, by name and type, is bound and set for all of them.
 *
 * All that the command line says is checked before anything runs, so that a wrong name after an hour of
 * computing cannot happen; files are written only after a run without errors. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct Binding {
    char *name;
    const SlopeType *type;
    SlopeBuffer *buffer;
    Texture texture;
} Binding;

typedef struct Step {
    SlopeKernel *kernel;
    int groups[3];
} Step;

typedef struct Run {
    const Options *options;
    SlopeSession *session;
    SlopeProgram *program;
    Step *steps;
    int nsteps;
    Binding *bindings;
    int nbindings;
} Run;

/* "NAME=DATA": a copy of NAME, or NULL after a message. */
static char *split(const char *text, const char *option, const char *form, const char **data) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        cli_misuse("the option '--%s' takes %s, not '%s'", option, form, text);
        return NULL;
    }
    *data = equals + 1;
    return strndup(text, (size_t)(equals - text));
}

/* ---- before the run */

static Binding *find_binding(const Run *run, const char *name) {
    for (int i = 0; i < run->nbindings; i++)
        if (strcmp(run->bindings[i].name, name) == 0) return &run->bindings[i];
    return NULL;
}

/* Is `uniform` called like `name`, which may go on with a path into it: behind `entry` and a point, or alone
 * where there is no entry? */
static bool match(const char *uniform, const char *entry, const char *name) {
    size_t head = strlen(entry), length = strcspn(name, ".[");
    if (strncmp(uniform, entry, head) != 0 || (head && uniform[head] != '.')) return false;
    uniform += head + (head > 0);
    return strncmp(uniform, name, length) == 0 && !uniform[length];
}

static bool find_parameter(const Run *run, const char *entry, const char *name, SlopeUniform *out) {
    for (int i = 0; slope_uniform(run->program, i, out); i++)
        if (match(out->name, entry, name)) return true;
    return false;
}

/* The parameter of that name that the entry point has and no earlier one of the run. */
static bool find_parameter_at(const Run *run, int step, const char *name, SlopeUniform *out) {
    for (int i = 0; i < step; i++)
        if (run->steps[i].kernel == run->steps[step].kernel) return false;
    return find_parameter(run, slope_kernel_name(run->steps[step].kernel), name, out);
}

/* How many entry points of the run have a parameter of that name, all of one type; 0: that is not so. */
static int count_parameters(const Run *run, const char *name) {
    SlopeUniform first, next;
    int count = 0;
    if (find_parameter(run, "", name, &first)) return 0; /* it is a global's */
    for (int i = 0; i < run->nsteps; i++) {
        if (!find_parameter_at(run, i, name, &next)) continue;
        if (count++ == 0) first = next;
        if (strcmp(slope_type_name(first.type), slope_type_name(next.type)) != 0) return 0;
    }
    return count;
}

typedef ExitStatus Give(Run *run, Binding *binding, const char *name, const char *values);

/* To what the name means: one parameter, or all those that entry points of the run have under that name. */
static ExitStatus give(Run *run, Binding *binding, const char *name, const char *values, Give *act) {
    SlopeUniform uniform;
    ExitStatus status = EXIT_fine;
    if (count_parameters(run, name) < 2) return act(run, binding, name, values);
    for (int i = 0; i < run->nsteps && status == EXIT_fine; i++) {
        if (!find_parameter_at(run, i, name, &uniform)) continue;
        const char *path = name + strcspn(name, ".[");
        size_t size = strlen(uniform.name) + strlen(path) + 1;
        char *full = malloc(size);
        if (!full) return EXIT_fault;
        snprintf(full, size, "%s%s", uniform.name, path);
        status = act(run, binding, full, values);
        free(full);
    }
    return status;
}

static bool holds_data_elsewhere(const SlopeType *type) {
    SlopeTypeKind kind = slope_type_kind(type);
    return kind == SLOPE_TYPE_buffer || kind == SLOPE_TYPE_pointer;
}

/* --bind of what is no data: a value, or a struct that has data among its parts. */
static ExitStatus refuse_value(const char *name, const SlopeType *type, const char *values) {
    SlopeField part;
    for (int i = 0; slope_type_kind(type) == SLOPE_TYPE_struct && slope_type_field(type, i, &part); i++)
        if (holds_data_elsewhere(part.type) || texture_is(part.type))
            return cli_misuse("'%s' is %s, whose parts are bound by their names: write --bind %s.%s=...",
                              name, slope_type_name(type), name, part.name);
    return cli_misuse("'%s' is %s, not a buffer or pointer: write --set %s=%s", name, slope_type_name(type),
                      name, values);
}

/* All elements that are bound are there to be consumed. */
static void set_counter(const Binding *binding, size_t size) {
    const SlopeType *type = binding->type;
    if (slope_type_kind(type) != SLOPE_TYPE_buffer || slope_type_buffer_kind(type) != SLOPE_BUFFER_consume)
        return;
    *slope_buffer_counter(binding->buffer) = (uint32_t)(size / slope_type_element_stride(type));
}

/* Memory of the session: it has a counter, if the program wants one. */
static ExitStatus make_buffer(Run *run, Binding *binding, const Data *data) {
    SlopeStatus status = slope_buffer_new(run->session, data->size, &binding->buffer);
    if (status != SLOPE_STATUS_ok) return cli_misuse("there is not so much memory");
    memcpy(slope_buffer_data(binding->buffer), data->bytes, data->size);
    set_counter(binding, data->size);
    return EXIT_fine;
}

/* All parameters that are meant have the same buffer. */
static ExitStatus bind_buffer(Run *run, Binding *binding, const char *place, const Data *data) {
    ExitStatus status = binding->buffer ? EXIT_fine : make_buffer(run, binding, data);
    if (status != EXIT_fine) return status;
    return cli_exit_status(slope_bind_buffer(run->program, place, binding->buffer));
}

static ExitStatus set_named(Run *run, Binding *unused, const char *name, const char *values) {
    (void)unused;
    SlopeUniform uniform;
    SlopeStatus status = slope_find_uniform(run->program, name, &uniform);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    if (texture_is_sampler(uniform.type) && strspn(values, "0123456789") == 0)
        return texture_set_sampler(run->program, name, values);
    if (holds_data_elsewhere(uniform.type) || texture_is(uniform.type))
        return cli_misuse("'%s' is %s: write --bind %s=%s", name, slope_type_name(uniform.type), name,
                          values);
    Data data;
    ExitStatus result = data_for_value(uniform.type, name, values, &data);
    if (result == EXIT_fine)
        result = cli_exit_status(slope_set_uniform(run->program, name, data.bytes, data.size));
    free(data.bytes);
    return result;
}

static ExitStatus bind_tensor(Run *run, Binding *binding, Tensor *tensor, const char *values) {
    Data data = {0};
    binding->type = tensor->data_type;
    ExitStatus result = tensor_read(tensor, values);
    if (result == EXIT_fine) result = data_for_buffer(binding->type, binding->name, tensor->values, &data);
    if (result == EXIT_fine) result = bind_buffer(run, binding, tensor->data, &data);
    if (result == EXIT_fine)
        result = tensor_set_shape(run->program, tensor, data.size / slope_type_element_stride(binding->type));
    free(data.bytes);
    return result;
}

/* All parameters that are meant have the same texels. */
static ExitStatus bind_texture(Run *run, Binding *binding, const char *name, const char *values) {
    SlopeBuffer *shared = binding->texture.texels;
    ExitStatus status = texture_bind(run->program, binding->type, name, values, &binding->texture);
    if (status != EXIT_fine || !shared) return status;
    size_t size = strlen(name) + sizeof ".image.texels";
    char *texels = malloc(size);
    if (!texels) return EXIT_fault;
    snprintf(texels, size, "%s.image.texels", name);
    status = cli_exit_status(slope_bind_buffer(run->program, texels, shared));
    slope_buffer_free(binding->texture.texels);
    binding->texture.texels = shared;
    free(texels);
    return status;
}

static ExitStatus bind_named(Run *run, Binding *binding, const char *name, const char *values) {
    SlopeUniform uniform;
    SlopeStatus status = slope_find_uniform(run->program, name, &uniform);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    binding->type = uniform.type;
    if (texture_is(uniform.type)) return bind_texture(run, binding, name, values);
    if (texture_is_sampler(uniform.type)) return set_named(run, binding, name, values);
    Tensor tensor;
    if (tensor_find(uniform.type, name, &tensor)) {
        ExitStatus bound = bind_tensor(run, binding, &tensor, values);
        tensor_free(&tensor);
        return bound;
    }
    if (uniform.is_block && !holds_data_elsewhere(uniform.type)) return set_named(run, binding, name, values);
    if (!holds_data_elsewhere(uniform.type)) return refuse_value(name, uniform.type, values);
    Data data;
    ExitStatus result = data_for_buffer(uniform.type, name, values, &data);
    if (result == EXIT_fine) result = bind_buffer(run, binding, name, &data);
    free(data.bytes);
    return result;
}

static ExitStatus bind(Run *run, const char *text) {
    const char *values;
    Binding *binding = &run->bindings[run->nbindings];
    binding->name = split(text, "bind", "NAME=DATA", &values);
    if (!binding->name) return EXIT_misuse;
    bool again = find_binding(run, binding->name) != NULL;
    run->nbindings++;
    if (again) return cli_misuse("'%s' is bound twice", binding->name);
    return give(run, binding, binding->name, values, bind_named);
}

static ExitStatus set(Run *run, const char *text) {
    const char *values;
    char *name = split(text, "set", "NAME=VALUES", &values);
    ExitStatus status = name ? give(run, NULL, name, values, set_named) : EXIT_misuse;
    free(name);
    return status;
}

static ExitStatus check_bound(Run *run, const char *name) {
    const Binding *binding = find_binding(run, name);
    if (binding && (binding->buffer || binding->texture.texels)) return EXIT_fine;
    if (binding)
        return cli_misuse("'%s' is %s, which the program only reads: there is nothing to show", name,
                          slope_type_name(binding->type));
    SlopeUniform uniform;
    SlopeStatus status = slope_find_uniform(run->program, name, &uniform);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    return cli_misuse("nothing is bound to '%s': write --bind %s=zeros:16, or its data", name, name);
}

static ExitStatus check_print(Run *run, const char *name) {
    ExitStatus status = check_bound(run, name);
    if (status != EXIT_fine || find_binding(run, name)->texture.texels) return status;
    return data_can_print(find_binding(run, name)->type, name);
}

/* To a file of that name. */
static ExitStatus check_form(Run *run, const char *name, const char *path) {
    if (cli_ends_with(path, ".csv")) return check_print(run, name);
    ExitStatus status = check_bound(run, name);
    const Binding *binding = find_binding(run, name);
    if (status == EXIT_fine && !binding->texture.texels && picture_is_only_that(path))
        return data_no_picture(name, path);
    return status;
}

static ExitStatus check_save(Run *run, const char *text) {
    const char *path;
    char *name = split(text, "save", "NAME=@FILE", &path);
    ExitStatus status = !name ? EXIT_misuse
                        : *path != '@' || !path[1]
                            ? cli_misuse("the option '--save' takes NAME=@FILE, not '%s'", text)
                            : check_form(run, name, path + 1);
    free(name);
    return status;
}

/* ---- after the run */

static ExitStatus print(Run *run, const char *name) {
    const Binding *binding = find_binding(run, name);
    if (binding->texture.texels) texture_print(&binding->texture);
    else if (binding->buffer)
        data_print(binding->type, slope_buffer_data(binding->buffer), slope_buffer_size(binding->buffer));
    return EXIT_fine;
}

static ExitStatus show(Run *run, const char *name) {
    const Binding *binding = find_binding(run, name);
    if (binding->texture.texels) texture_show(&binding->texture, name);
    else if (binding->buffer)
        show_data(binding->type, name, slope_buffer_data(binding->buffer),
                  slope_buffer_size(binding->buffer));
    return EXIT_fine;
}

static ExitStatus save(Run *run, const char *text) {
    const char *path;
    char *name = split(text, "save", "NAME=@FILE", &path);
    if (!name) return EXIT_fault;
    const Binding *binding = find_binding(run, name);
    free(name);
    if (binding->texture.texels) return texture_save(&binding->texture, path + 1);
    const char *bytes = slope_buffer_data(binding->buffer);
    size_t size = slope_buffer_size(binding->buffer);
    if (cli_ends_with(path + 1, ".npy"))
        return data_save_array(binding->type, binding->name, path + 1, bytes, size);
    if (cli_ends_with(path + 1, ".csv")) return data_save_table(binding->type, path + 1, bytes, size);
    return data_save(path + 1, bytes, size);
}

/* ---- all of it */

static ExitStatus for_each(Run *run, OptionId id, ExitStatus (*act)(Run *run, const char *text)) {
    const Texts *texts = &run->options->values[id];
    ExitStatus status = EXIT_fine;
    for (int i = 0; i < texts->count && status == EXIT_fine; i++) status = act(run, texts->at[i]);
    return status;
}

/* What one of them does not do keeps none of the others from being done. */
static ExitStatus try_each(Run *run, OptionId id, ExitStatus (*act)(Run *run, const char *text)) {
    const Texts *texts = &run->options->values[id];
    ExitStatus status = EXIT_fine;
    for (int i = 0; i < texts->count; i++) status = cli_worse(status, act(run, texts->at[i]));
    return status;
}

static const char *last_word(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool is_bound(const Run *run, const char *name) {
    for (int i = 0; i < run->nbindings; i++) {
        const char *bound = run->bindings[i].name;
        size_t length = strcspn(bound, ".[");
        bool whole = strcmp(bound, name) == 0 || strcmp(bound, last_word(name)) == 0 ||
                     strcmp(last_word(bound), name) == 0;
        if (whole || (length == strlen(name) && strncmp(bound, name, length) == 0)) return true;
    }
    return false;
}

static bool is_used(const Run *run, int uniform) {
    for (int i = 0; i < run->nsteps; i++)
        if (slope_kernel_uses(run->steps[i].kernel, uniform)) return true;
    return false;
}

/* The word alone, if that tells which one is meant. */
static const char *shown_name(const Run *run, const char *name) {
    SlopeUniform other;
    for (int i = 0; slope_uniform(run->program, i, &other); i++)
        if (other.name != name && strcmp(last_word(other.name), last_word(name)) == 0) return name;
    return last_word(name);
}

/* A buffer without elements is legal, and hardly ever meant. */
static void warn_unbound(const Run *run) {
    SlopeUniform uniform;
    bool quiet = option_given(run->options, OPTION_no_warnings) || option_given(run->options, OPTION_json);
    for (int i = 0; !quiet && slope_uniform(run->program, i, &uniform); i++) {
        if (!holds_data_elsewhere(uniform.type) || is_bound(run, uniform.name)) continue;
        if (!is_used(run, i)) continue;
        const char *name = shown_name(run, uniform.name);
        fprintf(stderr,
                "slope: warning: nothing is bound to '%s': it has no elements; write --bind %s=zeros:16, or "
                "its data\n",
                name, name);
    }
}

static ExitStatus prepare(Run *run) {
    ExitStatus status = for_each(run, OPTION_bind, bind);
    if (status == EXIT_fine) status = for_each(run, OPTION_set, set);
    if (status == EXIT_fine) status = for_each(run, OPTION_print, check_print);
    if (status == EXIT_fine) status = for_each(run, OPTION_show, check_print);
    if (status == EXIT_fine) status = for_each(run, OPTION_save, check_save);
    return status;
}

/* The entry points that are named, or the only one. */
static SlopeStatus find_kernels(Run *run) {
    const Texts *names = &run->options->values[OPTION_entry];
    SlopeStatus status = SLOPE_STATUS_ok;
    for (int i = 0; i < run->nsteps && status == SLOPE_STATUS_ok; i++)
        status = slope_find_kernel(run->program, names->count ? names->at[i] : NULL, &run->steps[i].kernel);
    return status;
}

static SlopeStatus prepare_kernels(Run *run) {
    SlopeStatus status = SLOPE_STATUS_ok;
    for (int i = 0; i < run->nsteps && status == SLOPE_STATUS_ok; i++)
        status = slope_kernel_prepare(run->steps[i].kernel);
    return status;
}

static SlopeStatus dispatch_all(Run *run) {
    SlopeStatus status = SLOPE_STATUS_ok;
    for (int i = 0; i < run->nsteps && status == SLOPE_STATUS_ok; i++) {
        const Step *step = &run->steps[i];
        status = slope_dispatch(step->kernel, step->groups[0], step->groups[1], step->groups[2]);
    }
    return status;
}

static ExitStatus execute(Run *run, const char *file) {
    SlopeStatus status = cli_load(run->session, file, &run->program);
    if (status == SLOPE_STATUS_ok) status = find_kernels(run);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    ExitStatus result = prepare(run);
    if (result != EXIT_fine) return result;
    status = prepare_kernels(run);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    warn_unbound(run);
    status = dispatch_all(run);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    result = for_each(run, OPTION_print, print);
    result = cli_worse(result, for_each(run, OPTION_show, show));
    return cli_worse(result, try_each(run, OPTION_save, save));
}

static void free_bindings(Run *run) {
    for (int i = 0; i < run->nbindings; i++) free(run->bindings[i].name);
    free(run->bindings);
    free(run->steps);
}

ExitStatus cli_bind(const Options *options, SlopeSession *session, SlopeProgram *program) {
    Run run = {.options = options, .session = session, .program = program};
    run.bindings = calloc((size_t)options->values[OPTION_bind].count + 1, sizeof *run.bindings);
    if (!run.bindings) return EXIT_fault;
    ExitStatus status = for_each(&run, OPTION_bind, bind);
    if (status == EXIT_fine) status = for_each(&run, OPTION_set, set);
    free_bindings(&run);
    return status;
}

/* How often and over how many groups: as many --dispatch as --entry, or one for all. */
static ExitStatus plan(Run *run) {
    int entries = run->options->values[OPTION_entry].count,
        given = run->options->values[OPTION_dispatch].count;
    run->nsteps = entries ? entries : 1;
    run->steps = calloc((size_t)run->nsteps, sizeof *run->steps);
    run->bindings = calloc((size_t)run->options->values[OPTION_bind].count + 1, sizeof *run->bindings);
    if (!run->steps || !run->bindings) return EXIT_fault;
    if (given > 1 && given != run->nsteps)
        return cli_misuse("%d times --dispatch for %d times --entry: give as many, or one for all", given,
                          entries);
    for (int i = 0; i < run->nsteps; i++)
        if (!option_counts_at(run->options, OPTION_dispatch, i, 0x7fffffff, run->steps[i].groups))
            return EXIT_misuse;
    return EXIT_fine;
}

ExitStatus command_run(const Options *options) {
    Run run = {.options = options};
    const char *file = option_file(options);
    ExitStatus status = file ? plan(&run) : EXIT_misuse;
    if (status == EXIT_fine) status = cli_open(options, &run.session);
    if (run.session) status = execute(&run, file);
    free_bindings(&run);
    return cli_close(options, run.session, status);
}
