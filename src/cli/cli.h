/* cli: the command line. It knows the compiler through slope.h alone.
 *
 * Exit status: 0 fine, 1 the program has errors, 2 wrong use of the command, 3 a fault of Slope's own.
 * Messages about the program come from the library; those about the use of the command are one line: `slope:
 * what is wrong`. */
#ifndef SLOPE_CLI_H
#define SLOPE_CLI_H

#include "slope.h"

#include <stdio.h>

typedef enum ExitStatus { EXIT_fine, EXIT_errors, EXIT_misuse, EXIT_fault } ExitStatus;

typedef enum Command {
#define COMMAND(name, capitals, arguments, help) COMMAND_##name,
#include "cli/commands.def"
#undef COMMAND
    COMMAND_COUNT
} Command;

/* Sets of commands: RUN | BUILD. */
enum {
#define COMMAND(name, capitals, arguments, help) capitals = 1 << COMMAND_##name,
#include "cli/commands.def"
#undef COMMAND
    ANY = (1 << COMMAND_COUNT) - 1
};

typedef enum OptionId {
#define OPTION(id, spelling, commands, argument, help) OPTION_##id,
#include "cli/options.def"
#undef OPTION
    OPTION_COUNT
} OptionId;

/* Texts of the command line, in order. */
typedef struct Texts {
    const char **at;
    int count;
} Texts;

typedef struct Options {
    Command command;
    Texts files;
    Texts values[OPTION_COUNT]; /* of each option; of one without an argument: "" each time it was given */
} Options;

/* ---- options.c */
Command options_find_command(const char *name); /* COMMAND_COUNT: no such command */
/* Reads what follows the command. False: after a message. */
bool options_parse(Options *options, Command command, char **args, int count);
void options_free(Options *options);
bool option_given(const Options *options, OptionId id);
const char *option_text(const Options *options, OptionId id); /* the last one given, or NULL */
/* A whole number of at least `least`, or the default. False: after a message. */
bool option_number(const Options *options, OptionId id, int least, int most, int *number);
bool option_counts(const Options *options, OptionId id, int most, int counts[3]); /* X,Y,Z */
/* Of one of several: the one that was given that many options before; the only one stands for all. */
bool option_counts_at(const Options *options, OptionId id, int index, int most, int counts[3]);
const char *option_file(const Options *options); /* the only file; NULL: after a message */

/* ---- help.c */
void help_general(FILE *out);
void help_command(Command command);

/* ---- watch.c */
uint64_t watch_look(const Options *options); /* what the sources are like, as a number */
/* Until the sources are not as they were seen; false: there is nothing to watch. */
bool watch_wait(const Options *options, uint64_t *seen);

/* ---- nearest.c */
int cli_distance(const char *a, const char *b); /* how many letters differ; large: no relation */

/* ---- session.c */
bool cli_ends_with(const char *text, const char *ending);
ExitStatus cli_exit_status(SlopeStatus status);
ExitStatus cli_flush(ExitStatus status); /* worse if standard output could not be written */
ExitStatus cli_worse(ExitStatus a, ExitStatus b);
/* One line on stderr: `slope: ...`; returns EXIT_misuse. */
ExitStatus cli_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
ExitStatus cli_open(const Options *options, SlopeSession **session);
/* The program in a file; `-` is standard input. */
SlopeStatus cli_load(SlopeSession *session, const char *file, SlopeProgram **program);
/* Shows the times and what is stored if asked for, frees the session, makes sure that the output was
 * written. */
ExitStatus cli_close(const Options *options, SlopeSession *session, ExitStatus status);
void cli_json_text(FILE *out, const char *name,
                   const char *text);        /* a member after others, text NULL: null */
ExitStatus cli_write(const SlopeBlob *blob); /* to standard output */

/* ---- run.c */
/* What --bind and --set say. The buffers are the session's. */
ExitStatus cli_bind(const Options *options, SlopeSession *session, SlopeProgram *program);
ExitStatus command_run(const Options *options);

/* ---- save.c: files that are all there or as they were */
typedef struct Saving {
    FILE *file;
    const char *path;
    char *beside; /* where it is written first; NULL: in its place */
} Saving;
ExitStatus save_begin(Saving *saving,
                      const char *path);           /* not fine: after a message, and nothing is to be ended */
ExitStatus save_end(Saving *saving, bool written); /* errno says why it is not written */

/* ---- stored.c */
void stored_show(const Options *options, const SlopeSession *session); /* to stderr: a table, or JSON */

/* ---- remarks.c */
void remarks_show(const SlopeSession *session); /* to stderr, a line each */

/* ---- data.c: memory from and to text and files, by type */
typedef struct Data {
    char *bytes; /* freed by the user of this */
    size_t size;
} Data;
/* All that a stream gives, within reason. */
ExitStatus data_read_stream(FILE *file, const char *path, Data *out);
/* Values for a buffer or pointer of that type: "1,2,3", "zeros:N", "@file"; `name` is for messages. */
ExitStatus data_no_picture(const char *name, const char *path);
ExitStatus data_for_buffer(const SlopeType *type, const char *name, const char *text, Data *out);
ExitStatus data_for_value(const SlopeType *type, const char *name, const char *text, Data *out);
size_t data_fill_word(const char *text); /* the length of "zeros:" or another word for a fill; 0: none */
bool data_fill_numbers(const char *text, SlopeTypeKind kind, size_t count, void *out); /* of four bytes */
ExitStatus data_read_numbers(const char *name, const char *text, SlopeTypeKind kind, size_t count, void *out);
/* Does a struct end in an array of any length? And how many elements has it in so many bytes? */
bool data_open_elements(const SlopeType *type, size_t size, size_t *open);
ExitStatus data_can_print(const SlopeType *type, const char *name);
void data_print(const SlopeType *type, const char *bytes, size_t size);
ExitStatus data_save(const char *path, const char *bytes, size_t size);

/* The same of a buffer to a table, a row for each element, or to an array of NumPy, if all its numbers have
 * one type. */
ExitStatus data_save_table(const SlopeType *type, const char *path, const char *bytes, size_t size);
ExitStatus data_save_array(const SlopeType *type, const char *name, const char *path, const char *bytes,
                           size_t size);

/* ---- image.c: pictures in files, by their ending: .png, .pfm, .npy */
typedef struct Picture {
    void *data; /* freed by the user of this */
    int width, height, depth, channels;
    SlopeImageFormat format;
} Picture;
bool picture_is_file(const char *path);
bool picture_is_only_that(const char *path); /* and no array */
ExitStatus picture_read(const char *path, Picture *out);
ExitStatus picture_write(const char *path, const Picture *picture); /* of 32 bits per channel */

/* ---- show.c */
void show_data(const SlopeType *type, const char *name, const char *bytes, size_t size);
void show_texels(const Picture *shape, SlopeTypeKind kind, const char *name, const char *at);

/* ---- array.c: arrays of NumPy */
typedef struct ArrayWanted {
    const char *name, *type_name; /* of what takes it, and of its elements */
    SlopeTypeKind kind;           /* of all numbers in an element, and its name ... */
    const char *kind_name;
    size_t numbers; /* ... and how many there are */
} ArrayWanted;
ExitStatus array_read(const char *path, const ArrayWanted *wanted, Data *out);
ExitStatus array_read_picture(const char *path, Picture *out);
const char *array_type(SlopeTypeKind kind); /* as NumPy writes it: "f4"; "": no number */
/* `type` and `shape` as NumPy writes them: "f4", "3, 4". */
ExitStatus array_write(const char *path, const char *type, const char *shape, const char *bytes, size_t size);
ExitStatus array_write_picture(const char *path, const Picture *picture);

/* ---- table.c: tables of text */
/* All values, commas between them, and how many a row has. The caller frees *text, also after a failure. */
ExitStatus table_read(const char *path, char **text, size_t *columns);

/* ---- texture.c */
typedef struct Texture {
    Picture shape; /* without data */
    SlopeBuffer *texels;
} Texture;
bool texture_is(const SlopeType *type);
bool texture_is_sampler(const SlopeType *type);
ExitStatus texture_bind(SlopeProgram *program, const SlopeType *type, const char *name, const char *text,
                        Texture *out);
ExitStatus texture_set_sampler(SlopeProgram *program, const char *name, const char *text);
void texture_print(const Texture *texture);
void texture_show(const Texture *texture, const char *name);
ExitStatus texture_save(const Texture *texture, const char *path);

/* ---- tensor.c: structs that say how the elements of a buffer lie */
enum { TENSOR_RANK = 8 };
typedef struct Tensor {
    const SlopeType *type, *data_type;
    char *name, *data; /* of the struct, and of the buffer in it */
    char *values;      /* what is left of the text after the shape */
    int rank;          /* 0: not given */
    uint32_t shape[TENSOR_RANK];
} Tensor;
bool tensor_find(const SlopeType *type, const char *name, Tensor *out); /* false: it is none */
void tensor_free(Tensor *tensor);
ExitStatus tensor_read(Tensor *tensor, const char *text); /* "2x3:1,2,...", "zeros:2x3", or no shape */
ExitStatus tensor_set_shape(SlopeProgram *program, Tensor *tensor, size_t count);

/* ---- check.c */
ExitStatus command_check(const Options *options);

/* ---- build.c */
ExitStatus command_build(const Options *options);

/* ---- gradcheck.c */
ExitStatus command_gradcheck(const Options *options);

/* ---- dump.c */
ExitStatus command_dump(const Options *options);

/* ---- explain.c */
ExitStatus command_explain(const Options *options);

#endif
