/* Debug info: one subprogram per function, a line and column per instruction. Without -g all of this does
 * nothing.
 *
 * Ways in (kernels, thunks) have no lines, but they are subprograms too: LLVM inlines functions into them,
 * and keeps the places of what it inlines only if there is a place that it is inlined at. */
#include "emit/llvm/llvm.h"

static Position position_of(Emitter *e, Loc loc) {
    Position none = {0};
    Sources *sources = e->module->diags ? e->module->diags->sources : NULL;
    return sources && loc ? source_position(sources, loc) : none;
}

static LLVMMetadataRef file_of(Emitter *e, Name path) {
    const char *text = path ? path->text : "unknown";
    uint64_t key = path ? PTR_KEY(path) : 1;
    LLVMMetadataRef file = map_get(&e->debug_files, key);
    if (file) return file;
    const char *slash = strrchr(text, '/');
    const char *name = slash ? slash + 1 : text;
    size_t folder = slash ? (size_t)(slash - text) : 0;
    file = LLVMDIBuilderCreateFile(e->debug, name, strlen(name), folder ? text : ".", folder ? folder : 1);
    map_put(&e->arena, &e->debug_files, key, file);
    return file;
}

static Name first_path(Emitter *e) {
    for (int i = 0; i < e->module->funcs.count; i++) {
        Name path = position_of(e, e->module->funcs.at[i]->loc).path;
        if (path) return path;
    }
    return NULL;
}

static void module_flag(Emitter *e, const char *name, unsigned value) {
    LLVMAddModuleFlag(e->llvm, LLVMModuleFlagBehaviorWarning, name, strlen(name),
                      LLVMValueAsMetadata(emit_i32(e, value)));
}

void emit_debug_init(Emitter *e) {
    e->debug = LLVMCreateDIBuilder(e->llvm);
    module_flag(e, "Debug Info Version", LLVMDebugMetadataVersion());
    module_flag(e, "Dwarf Version", 4);
    e->unit = LLVMDIBuilderCreateCompileUnit(e->debug, LLVMDWARFSourceLanguageC11, file_of(e, first_path(e)),
                                             "slope", 5, e->options->level > 0, "", 0, 0, "", 0,
                                             LLVMDWARFEmissionFull, 0, true, false, "", 0, "", 0);
}

static LLVMMetadataRef add_subprogram(Emitter *e, LLVMValueRef function, const char *name, Name path,
                                      unsigned line, LLVMDIFlags flags) {
    LLVMMetadataRef file = file_of(e, path);
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(e->debug, file, NULL, 0, LLVMDIFlagZero);
    LLVMMetadataRef scope =
        LLVMDIBuilderCreateFunction(e->debug, file, name, strlen(name), name, strlen(name), file, line, type,
                                    true, true, line, flags, e->options->level > 0);
    LLVMSetSubprogram(function, scope);
    return scope;
}

void emit_debug_func(Emitter *e, FuncInfo *info) {
    if (!e->debug) return;
    Position at = position_of(e, info->func->loc);
    info->scope =
        add_subprogram(e, info->function, info->func->name->text, at.path, (unsigned)at.line, LLVMDIFlagZero);
}

void emit_debug_begin(Emitter *e, LLVMValueRef function) {
    if (!e->debug || LLVMGetSubprogram(function)) return;
    size_t length;
    const char *name = LLVMGetValueName2(function, &length);
    LLVMMetadataRef scope = add_subprogram(e, function, name, first_path(e), 0, LLVMDIFlagArtificial);
    LLVMSetCurrentDebugLocation2(e->builder, LLVMDIBuilderCreateDebugLocation(e->context, 0, 0, scope, NULL));
}

/* An instruction without a place counts as line 0 of its function: calls must have some place. */
void emit_debug_at(Emitter *e, Loc loc) {
    Position at = position_of(e, loc);
    LLVMMetadataRef place = LLVMDIBuilderCreateDebugLocation(e->context, (unsigned)at.line,
                                                             (unsigned)at.column, e->at->info->scope, NULL);
    LLVMSetCurrentDebugLocation2(e->builder, place);
}

void emit_debug_none(Emitter *e) {
    if (e->debug) LLVMSetCurrentDebugLocation2(e->builder, NULL);
}

void emit_debug_finish(Emitter *e) {
    if (e->debug) LLVMDIBuilderFinalize(e->debug);
}
