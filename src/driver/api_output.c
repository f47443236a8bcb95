/* Output: compiled code and dumps, as blobs in memory or as files. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- blobs */

static SlopeStatus make_blob(SlopeSession *session, Str bytes, SlopeBlob **out) {
    Allocator allocator = session->allocator;
    size_t total = sizeof(BlobNode) + (size_t)bytes.len + 1;
    BlobNode *node = allocator.resize(allocator.user, NULL, 0, total);
    if (!node) trap_spring(&session->trap, TRAP_memory, "out of memory");
    char *data = (char *)(node + 1);
    memcpy(data, bytes.at, (size_t)bytes.len);
    data[bytes.len] = 0;
    *node = (BlobNode){
        .blob = {data, (size_t)bytes.len}, .session = session, .next = session->blobs, .total = total};
    if (node->next) node->next->prev = node;
    session->blobs = node;
    *out = &node->blob;
    return SLOPE_STATUS_ok;
}

void slope_blob_free(SlopeBlob *blob) {
    if (!blob) return;
    BlobNode *node = (BlobNode *)(void *)blob; /* its first field */
    SlopeSession *session = node->session;
    if (node->prev) node->prev->next = node->next;
    else session->blobs = node->next;
    if (node->next) node->next->prev = node->prev;
    session->allocator.resize(session->allocator.user, node, node->total, 0);
}

void driver_free_blobs(SlopeSession *session) {
    while (session->blobs) slope_blob_free(&session->blobs->blob);
}

/* ---- names of targets and stages */

const char *slope_target_name(int index) { return driver_target_name(index); }

const char *slope_stage_name(int index) { return driver_stage_name(index); }

/* Is it one of the names? If not, says which there are. */
static bool check_name(SlopeProgram *program, const char *name, const char *(*name_at)(int), DiagId unknown) {
    Text all = {.arena = &program->arena};
    for (int i = 0; name_at(i); i++) {
        if (name && strcmp(name, name_at(i)) == 0) return true;
        text_printf(&all, "%s%s", i ? ", " : "", name_at(i));
    }
    diag_report(program->session->diags, unknown, 0, name ? name : "", all.at ? all.at : "none");
    return false;
}

/* ---- copies
 *
 * Output is made of a copy of the program: what passes do to functions is different for each target and for what runs at once, dumps end in
 * the middle of it, and a program may be run, built and shown in any order. */

/* What was to be said about the text was said when the program was checked. */
static SlopeStatus load_copy(const SlopeProgram *program, SlopeProgram **copy) {
    SlopeSession *session = program->session;
    bool no_warnings = session->config.no_warnings;
    session->config.no_warnings = true;
    SlopeStatus status =
        slope_load_text(session, program->path->text, program->text.at, (size_t)program->text.len, copy);
    session->config.no_warnings = no_warnings;
    return status;
}

static const char *text_for(SlopeProgram *program, const char *text) {
    return text ? format_text(&program->arena, "%s", text) : NULL;
}

/* What is known about the copy's functions is told of the program. */
static void take_rows(SlopeProgram *program, const SlopeProgram *copy) {
    SlopeSession *session = program->session;
    for (int i = 0; i < session->stored.count; i++) {
        StoredRow *stored = &session->stored.at[i];
        if (stored->program != copy) continue;
        stored->row.function = text_for(program, stored->row.function);
        stored->row.name = text_for(program, stored->row.name);
        stored->row.path = text_for(program, stored->row.path);
        stored->program = program;
    }
    for (int i = 0; i < session->remarks.count; i++) {
        RemarkRow *remark = &session->remarks.at[i];
        if (remark->program != copy) continue;
        remark->row.kernel = text_for(program, remark->row.kernel);
        remark->row.why = text_for(program, remark->row.why);
        remark->row.path = text_for(program, remark->row.path);
        remark->program = program;
    }
}

/* What is made, and of what. */
typedef struct Making {
    SlopeProgram *program, *copy;
    const SlopeBuildOptions *options;
    const char *path;             /* of a file */
    const char *function, *stage; /* of a dump */
    SlopeBlob **out;
} Making;

/* make(making), of a copy of the program. */
static SlopeStatus with_copy(Making *making, SlopeStatus (*make)(Making *making)) {
    SlopeStatus status = load_copy(making->program, &making->copy);
    if (status == SLOPE_STATUS_ok) status = make(making);
    slope_program_free(making->copy);
    return status;
}

/* ---- code and dumps */

static SlopeStatus build(DriverWork *work) { return driver_build(work->program, work->options, &work->text); }

/* Can it be asked for at all? */
static SlopeStatus check_build(const Making *making, const char *function) {
    SlopeProgram *program = making->program;
    SlopeSession *session = program->session;
    const SlopeBuildOptions *options = making->options;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    if (!options) return driver_missing(session, function, "options");
    if (!making->path && !making->out) return driver_missing(session, function, "path");
    if (!check_name(program, options->target, driver_target_name, DIAG_unknown_target))
        return driver_leave(session, SLOPE_STATUS_misuse);
    if (!driver_list_is_whole(options->entries, options->entry_count))
        return driver_missing(session, function, "options->entries");
    return driver_leave(session, SLOPE_STATUS_ok);
}

static SlopeStatus make_build(Making *making) {
    SlopeProgram *copy = making->copy;
    SlopeSession *session = copy->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(copy)) return driver_refused(session);
    DriverWork work = {.program = copy, .options = making->options, .text = {.arena = &copy->arena}};
    SlopeStatus status = driver_leave(session, driver_deep(session, build, &work));
    take_rows(making->program, copy);
    return status == SLOPE_STATUS_ok ? make_blob(session, text_str(&work.text), making->out) : status;
}

SlopeStatus slope_build(SlopeProgram *program, const SlopeBuildOptions *options, SlopeBlob **out) {
    if (out) *out = NULL;
    if (!program || !out) return SLOPE_STATUS_misuse;
    Making making = {.program = program, .options = options, .out = out};
    SlopeStatus status = check_build(&making, "slope_build");
    if (status == SLOPE_STATUS_ok) status = slope_check(program);
    return status == SLOPE_STATUS_ok ? with_copy(&making, make_build) : status;
}

static SlopeStatus dump(DriverWork *work) {
    return driver_dump(work->program, work->name, work->stage, &work->text);
}

static SlopeStatus make_dump(Making *making) {
    SlopeProgram *copy = making->copy;
    SlopeSession *session = copy->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(copy)) return driver_refused(session);
    DriverWork work = {
        .program = copy, .name = making->function, .stage = making->stage, .text = {.arena = &copy->arena}};
    SlopeStatus status = driver_leave(session, driver_deep(session, dump, &work));
    take_rows(making->program, copy);
    return status == SLOPE_STATUS_ok ? make_blob(session, text_str(&work.text), making->out) : status;
}

static SlopeStatus check_dump(SlopeProgram *program, const char *stage) {
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    bool known = !stage || check_name(program, stage, driver_stage_name, DIAG_unknown_stage);
    return driver_leave(session, known ? SLOPE_STATUS_ok : SLOPE_STATUS_misuse);
}

SlopeStatus slope_dump(SlopeProgram *program, const char *function, const char *stage, SlopeBlob **out) {
    if (out) *out = NULL;
    if (!program || !out) return SLOPE_STATUS_misuse;
    Making making = {.program = program, .function = function, .stage = stage, .out = out};
    SlopeStatus status = check_dump(program, stage);
    bool is_checked = !stage || strcmp(stage, "syntax") != 0;
    if (status == SLOPE_STATUS_ok && is_checked) status = slope_check(program);
    return status == SLOPE_STATUS_ok ? with_copy(&making, make_dump) : status;
}

/* ---- files */

static int write_all(int descriptor, Str bytes) {
    for (int done = 0; done < bytes.len;) {
        ssize_t written = write(descriptor, bytes.at + done, (size_t)(bytes.len - done));
        if (written < 0 && errno != EINTR) return errno;
        if (written > 0) done += (int)written;
    }
    return 0;
}

static int write_directly(const char *path, int flags, mode_t rights, Str bytes) {
    int descriptor = open(path, O_WRONLY | O_CLOEXEC | flags, rights);
    if (descriptor < 0) return errno;
    int error = write_all(descriptor, bytes);
    if (close(descriptor) < 0 && !error) error = errno;
    return error;
}

/* A file to be made. It is written beside its place first, so that it is replaced whole or not at all; what
 * is not a plain file is written to. */
typedef struct Output {
    const char *path, *beside;
    bool is_beside;
    Str bytes;
    mode_t rights;
} Output;

static int write_beside(Output *output) {
    struct stat about;
    bool exists = stat(output->path, &about) == 0;
    if (exists && S_ISDIR(about.st_mode)) return EISDIR;
    if (exists && !S_ISREG(about.st_mode)) return 0;
    int error = write_directly(output->beside, O_CREAT | O_EXCL, output->rights, output->bytes);
    output->is_beside = error != EEXIST; /* else it is somebody else's */
    return error;
}

static int put_in_place(Output *output) {
    if (!output->is_beside) return write_directly(output->path, 0, output->rights, output->bytes);
    if (rename(output->beside, output->path) < 0) return errno;
    output->is_beside = false;
    return 0;
}

static bool is_same_file(const char *one, const char *other) {
    struct stat about, other_about;
    if (strcmp(one, other) == 0) return true;
    return stat(one, &about) == 0 && stat(other, &other_about) == 0 && S_ISREG(about.st_mode) &&
           about.st_dev == other_about.st_dev && about.st_ino == other_about.st_ino;
}

static const char *name_in_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Would they be one file, if they were there? */
static bool is_same_place(Arena *arena, const char *one, const char *other) {
    const char *name = name_in_folder(one), *other_name = name_in_folder(other);
    struct stat about, other_about;
    if (strcmp(name, other_name) != 0) return false;
    return stat(format_text(arena, "%.*s.", (int)(name - one), one), &about) == 0 &&
           stat(format_text(arena, "%.*s.", (int)(other_name - other), other), &other_about) == 0 &&
           about.st_dev == other_about.st_dev && about.st_ino == other_about.st_ino;
}

/* What would be lost if it were written; NULL: nothing that is needed. */
static const char *what_is_there(SlopeProgram *program, const Output *outputs, int index) {
    const Sources *sources = program->session->diags->sources;
    for (int i = 0; i < sources->files.count; i++)
        if (is_same_file(outputs[index].path, sources->files.at[i]->path->text))
            return "it is a part of the program";
    for (int i = 0; i < index; i++)
        if (is_same_file(outputs[index].path, outputs[i].path) ||
            is_same_place(&program->arena, outputs[index].path, outputs[i].path))
            return "another output has that name";
    return NULL;
}

static SlopeStatus refuse_output(SlopeProgram *program, const char *path, const char *why) {
    diag_report(program->session->diags, DIAG_file_unwritable, 0, path, why);
    return driver_leave(program->session, SLOPE_STATUS_misuse);
}

/* What is not a plain file comes first: that can still fail, while others are there already and only change
 * their names. */
static int put_all(Output *outputs, int count, int *at) {
    int error = 0;
    for (int beside = 0; beside < 2; beside++)
        for (int i = 0; i < count && !error; i++)
            if (outputs[i].is_beside == (beside == 1)) error = put_in_place(&outputs[ *at = i]);
    return error;
}

static SlopeStatus write_outputs(SlopeProgram *program, Output *outputs, int count) {
    int error = 0, at = 0;
    for (int i = 0; i < count; i++) {
        const char *why = what_is_there(program, outputs, i);
        if (why) return refuse_output(program, outputs[i].path, why);
    }
    for (int i = 0; i < count && !error; i++) error = write_beside(&outputs[at = i]);
    if (!error) error = put_all(outputs, count, &at);
    if (!error) return SLOPE_STATUS_ok;
    for (int i = 0; i < count; i++)
        if (outputs[i].is_beside) unlink(outputs[i].beside);
    return refuse_output(program, outputs[at].path, strerror(error));
}

static SlopeStatus make_output(SlopeProgram *program, const SlopeBuildOptions *options, const char *path,
                               Output *out) {
    DriverWork work = {.program = program, .options = options, .text = {.arena = &program->arena}};
    SlopeStatus status = driver_leave(program->session, driver_deep(program->session, build, &work));
    bool is_linked =
        status == SLOPE_STATUS_ok && !options->header && driver_target_is_linked(options->target);
    *out = (Output){.path = path,
                    .beside = format_text(&program->arena, "%s.%d.tmp", path, (int)getpid()),
                    .bytes = text_str(&work.text),
                    .rights = is_linked ? 0777 : 0666};
    return status;
}

static SlopeStatus make_files(Making *making) {
    SlopeProgram *copy = making->copy;
    SlopeSession *session = copy->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(copy)) return driver_refused(session);
    Output outputs[3];
    int count = 0;
    const SlopeBuildOptions *options = making->options;
    SlopeBuildOptions header = *options, page = *options;
    header.header = page.side_by_side = true;
    SlopeStatus status = make_output(copy, options, making->path, &outputs[count++]);
    if (status == SLOPE_STATUS_ok && options->header_path)
        status = make_output(copy, &header, options->header_path, &outputs[count++]);
    if (status == SLOPE_STATUS_ok && options->page_path)
        status = make_output(copy, &page, options->page_path, &outputs[count++]);
    take_rows(making->program, copy);
    return status == SLOPE_STATUS_ok ? write_outputs(copy, outputs, count) : status;
}

SlopeStatus slope_build_file(SlopeProgram *program, const SlopeBuildOptions *options, const char *path) {
    if (!program) return SLOPE_STATUS_misuse;
    Making making = {.program = program, .options = options, .path = path};
    SlopeStatus status = check_build(&making, "slope_build_file");
    if (status == SLOPE_STATUS_ok) status = slope_check(program);
    return status == SLOPE_STATUS_ok ? with_copy(&making, make_files) : status;
}

/* ---- what reverse passes keep */

void driver_forget_rows(const SlopeProgram *program) {
    SlopeSession *session = program->session;
    int kept = 0;
    for (int i = 0; i < session->stored.count; i++)
        if (session->stored.at[i].program != program) session->stored.at[kept++] = session->stored.at[i];
    session->stored.count = kept;
    kept = 0;
    for (int i = 0; i < session->remarks.count; i++)
        if (session->remarks.at[i].program != program) session->remarks.at[kept++] = session->remarks.at[i];
    session->remarks.count = kept;
}

int slope_stored_count(const SlopeSession *session) { return session ? session->stored.count : 0; }

bool slope_stored(const SlopeSession *session, int index, SlopeStored *out) {
    if (!session || !out || index < 0 || index >= session->stored.count) return false;
    *out = session->stored.at[index].row;
    return true;
}

int slope_remark_count(const SlopeSession *session) { return session ? session->remarks.count : 0; }

bool slope_remark(const SlopeSession *session, int index, SlopeRemark *out) {
    if (!session || !out || index < 0 || index >= session->remarks.count) return false;
    *out = session->remarks.at[index].row;
    return true;
}
