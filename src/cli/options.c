/* Reading the command line, by the rows of options.def.
 *
 * An option is written with one dash or two; its argument follows after `=`, or as the next word, or, for an
 * option of one letter, right after it. `--` ends the options. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Row {
    const char *spelling;
    int commands;
    const char *argument;
} Row;

static const Row rows[] = {
#define OPTION(id, spelling, commands, argument, help) {spelling, commands, argument},
#include "cli/options.def"
#undef OPTION
};

static const char *const commands[] = {
#define COMMAND(name, capitals, arguments, help) #name,
#include "cli/commands.def"
#undef COMMAND
};

Command options_find_command(const char *name) {
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(name, commands[i]) == 0) return (Command)i;
    return COMMAND_COUNT;
}

/* ---- one option */

typedef struct Spelled {
    OptionId id;          /* OPTION_COUNT: unknown */
    const char *argument; /* attached; NULL: none */
} Spelled;

static bool takes_attached(const Row *row) { return row->spelling[1] == 0 && row->argument; }

static Spelled read_spelling(const char *word) {
    size_t length = strcspn(word, "=");
    const char *after = word[length] ? word + length + 1 : NULL;
    if (strcmp(word, "h") == 0) return (Spelled){OPTION_help, NULL};
    for (int i = 0; i < OPTION_COUNT; i++)
        if (strlen(rows[i].spelling) == length && strncmp(rows[i].spelling, word, length) == 0)
            return (Spelled){(OptionId)i, after};
    for (int i = 0; i < OPTION_COUNT; i++)
        if (takes_attached(&rows[i]) && rows[i].spelling[0] == word[0] && strchr("DIO", word[0]))
            return (Spelled){(OptionId)i, word + 1};
    return (Spelled){OPTION_COUNT, NULL};
}

/* To guess what was meant: letters in common at the start, or few that differ. */
static bool is_like(const char *spelling, const char *word) {
    size_t common = 0, length = strlen(word);
    while (spelling[common] && spelling[common] == word[common]) common++;
    return common >= 2 || (length > 2 && cli_distance(spelling, word) <= 1 + (int)length / 5);
}

/* A letter that is left out is likelier than one that is replaced. */
static int distance_of(const Row *row, const char *word) {
    return 2 * cli_distance(row->spelling, word) - (strlen(row->spelling) > strlen(word));
}

static const char *dashes(const Row *row) { return row->spelling[1] ? "--" : "-"; }

static void report_unknown(const Options *options, const char *written, const char *word) {
    const Row *meant = NULL;
    for (int i = 0; i < OPTION_COUNT; i++) {
        bool fits = (rows[i].commands & 1 << options->command) && is_like(rows[i].spelling, word);
        if (fits && (!meant || distance_of(&rows[i], word) < distance_of(meant, word))) meant = &rows[i];
    }
    if (meant)
        cli_misuse("there is no option '%s'; did you mean '%s%s'?", written, dashes(meant), meant->spelling);
    else cli_misuse("there is no option '%s'; see: slope help %s", written, commands[options->command]);
}

static void add(Texts *texts, const char *text) { texts->at[texts->count++] = text; }

/* Reads the option args[at]; returns the number of words it took, 0 after a message. */
static int read_option(Options *options, char **args, int at, int count) {
    const char *word = args[at] + 1 + (args[at][1] == '-');
    Spelled spelled = read_spelling(word);
    if (spelled.id == OPTION_COUNT) {
        report_unknown(options, args[at], word);
        return 0;
    }
    const Row *row = &rows[spelled.id];
    if (!(row->commands & 1 << options->command)) {
        cli_misuse("'slope %s' takes no option '%s%s'", commands[options->command], dashes(row),
                   row->spelling);
        return 0;
    }
    if (!row->argument && spelled.argument) {
        cli_misuse("the option '%s%s' takes no value", dashes(row), row->spelling);
        return 0;
    }
    if (!row->argument || spelled.argument) {
        add(&options->values[spelled.id], spelled.argument ? spelled.argument : "");
        return 1;
    }
    bool is_there = at + 1 < count && !(args[at + 1][0] == '-' && args[at + 1][1]);
    if (!is_there) {
        cli_misuse("the option '%s%s' needs a value: %s", dashes(row), row->spelling, row->argument);
        return 0;
    }
    add(&options->values[spelled.id], args[at + 1]);
    return 2;
}

/* ---- the whole line */

static bool make_room(Options *options, int count) {
    size_t size = (size_t)(count ? count : 1) * sizeof(const char *);
    options->files.at = malloc(size);
    bool done = options->files.at != NULL;
    for (int i = 0; i < OPTION_COUNT; i++) {
        options->values[i].at = malloc(size);
        done = done && options->values[i].at;
    }
    if (!done) cli_misuse("out of memory");
    return done;
}

bool options_parse(Options *options, Command command, char **args, int count) {
    *options = (Options){.command = command};
    if (!make_room(options, count)) return false;
    bool only_files = false;
    for (int i = 0, taken; i < count; i += taken) {
        taken = 1;
        if (!only_files && strcmp(args[i], "--") == 0) only_files = true;
        else if (only_files || args[i][0] != '-' || args[i][1] == 0) add(&options->files, args[i]);
        else if (!(taken = read_option(options, args, i, count))) return false;
    }
    return true;
}

void options_free(Options *options) {
    free(options->files.at);
    for (int i = 0; i < OPTION_COUNT; i++) free(options->values[i].at);
}

/* ---- asking */

bool option_given(const Options *options, OptionId id) { return options->values[id].count > 0; }

const char *option_text(const Options *options, OptionId id) {
    const Texts *texts = &options->values[id];
    return texts->count ? texts->at[texts->count - 1] : NULL;
}

bool option_number(const Options *options, OptionId id, int least, int most, int *number) {
    const char *text = option_text(options, id);
    if (!text) return true;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < least || value > most) {
        const Row *row = &rows[id];
        cli_misuse("the option '%s%s' takes a number from %d to %d, not '%s'", dashes(row), row->spelling,
                   least, most, text);
        return false;
    }
    *number = (int)value;
    return true;
}

/* X,Y,Z; what is not given is 1. */
static bool read_counts(const Row *row, const char *text, int most, int counts[3]) {
    const char *at = text;
    for (int i = 0; i < 3; i++) counts[i] = 1;
    for (int i = 0; at && i < 3; i++) {
        char *end;
        long count = strtol(at, &end, 10);
        if (*at < '0' || *at > '9' || count < 1 || count > most || (*end && *end != ',')) break;
        counts[i] = (int)count;
        at = *end ? end + 1 : NULL;
    }
    if (at)
        cli_misuse("the option '--%s' takes one to three counts, X,Y,Z, each from 1 to %d, not '%s'",
                   row->spelling, most, text);
    return !at;
}

bool option_counts(const Options *options, OptionId id, int most, int counts[3]) {
    return read_counts(&rows[id], option_text(options, id), most, counts);
}

bool option_counts_at(const Options *options, OptionId id, int index, int most, int counts[3]) {
    const Texts *texts = &options->values[id];
    const char *text = texts->count == 0 ? NULL : texts->at[texts->count == 1 ? 0 : index];
    return read_counts(&rows[id], text, most, counts);
}

const char *option_file(const Options *options) {
    const char *command = commands[options->command];
    if (options->files.count == 1) return options->files.at[0];
    if (options->files.count == 0) cli_misuse("which file? see: slope help %s", command);
    else cli_misuse("'slope %s' takes one file, not also '%s'", command, options->files.at[1]);
    return NULL;
}
