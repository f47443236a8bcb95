/* slope: finds the command and runs it. With none, a file means `build`. */
#include "cli.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef ExitStatus (*CommandFunction)(const Options *options);

static const CommandFunction functions[] = {
#define COMMAND(name, capitals, arguments, help) command_##name,
#include "cli/commands.def"
#undef COMMAND
};

static ExitStatus run_command(Command command, char **args, int count) {
    Options options;
    ExitStatus status = EXIT_misuse;
    bool parsed = options_parse(&options, command, args, count);
    if (parsed && option_given(&options, OPTION_help)) {
        help_command(command);
        status = cli_flush(EXIT_fine);
    } else if (parsed) {
        bool watches = option_given(&options, OPTION_watch);
        uint64_t seen = watches ? watch_look(&options) : 0;
        status = functions[command](&options);
        while (watches && watch_wait(&options, &seen)) status = functions[command](&options);
    }
    options_free(&options);
    return status;
}

static bool is_option(const char *word, const char *name) {
    return word[0] == '-' && strcmp(word + 1 + (word[1] == '-'), name) == 0;
}

static ExitStatus unknown_command(const char *word) {
    static const char *const names[] = {
#define COMMAND(name, capitals, arguments, help) #name,
#include "cli/commands.def"
#undef COMMAND
        "help",
        "version",
    };
    const char *meant = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (cli_distance(word, names[i]) <= (strlen(word) > 4 ? 2 : 1)) meant = names[i];
    if (meant) return cli_misuse("there is no command '%s'; did you mean '%s'?", word, meant);
    return cli_misuse("there is no command '%s'; see: slope help", word);
}

static ExitStatus run_help(char **args, int count) {
    bool plain = count && (strcmp(args[0], "help") == 0 || strcmp(args[0], "version") == 0); /* no options */
    if (count == 0 || plain) {
        help_general(stdout);
        return cli_flush(EXIT_fine);
    }
    Command command = options_find_command(args[0]);
    if (command == COMMAND_COUNT) return unknown_command(args[0]);
    help_command(command);
    return cli_flush(EXIT_fine);
}

/* Could it be meant as a file, rather than as a command? */
static bool looks_like_file(const char *word) {
    return word[0] == '-' || strpbrk(word, "./") || access(word, F_OK) == 0;
}

int main(int argc, char **argv) {
    signal(SIGPIPE,
           SIG_IGN); /* a pipe that nobody reads is an error of writing, with a message and a status */
    if (argc < 2) {
        help_general(stderr);
        return EXIT_misuse;
    }
    const char *first = argv[1];
    if (is_option(first, "version") || is_option(first, "v") || strcmp(first, "version") == 0) {
        printf("slope %s\n", slope_version());
        return (int)cli_flush(EXIT_fine);
    }
    if (strcmp(first, "help") == 0) return (int)run_help(argv + 2, argc - 2);
    if (argc == 2 && (is_option(first, "help") || is_option(first, "h"))) return (int)run_help(NULL, 0);
    Command command = options_find_command(first);
    if (command != COMMAND_COUNT) return (int)run_command(command, argv + 2, argc - 2);
    if (looks_like_file(first)) return (int)run_command(COMMAND_build, argv + 1, argc - 1);
    return (int)unknown_command(first);
}
