/* slope: finds the command and runs it. With none, a file means `build`. */
#include "cli.h"

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
        status = EXIT_fine;
    } else if (parsed) {
        status = functions[command](&options);
    }
    options_free(&options);
    return status;
}

static bool is_option(const char *word, const char *name) {
    return word[0] == '-' && strcmp(word + 1 + (word[1] == '-'), name) == 0;
}

static ExitStatus run_help(char **args, int count) {
    if (count == 0) {
        help_general(stdout);
        return EXIT_fine;
    }
    Command command = options_find_command(args[0]);
    if (command == COMMAND_COUNT) return cli_misuse("there is no command '%s'; see: slope help", args[0]);
    help_command(command);
    return EXIT_fine;
}

/* Could it be meant as a file, rather than as a command? */
static bool looks_like_file(const char *word) {
    return word[0] == '-' || strpbrk(word, "./") || access(word, F_OK) == 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        help_general(stderr);
        return EXIT_misuse;
    }
    const char *first = argv[1];
    if (is_option(first, "version") || is_option(first, "v")) {
        printf("slope %s\n", slope_version());
        return EXIT_fine;
    }
    if (strcmp(first, "help") == 0) return (int)run_help(argv + 2, argc - 2);
    if (argc == 2 && (is_option(first, "help") || is_option(first, "h"))) return (int)run_help(NULL, 0);
    Command command = options_find_command(first);
    if (command != COMMAND_COUNT) return (int)run_command(command, argv + 2, argc - 2);
    if (looks_like_file(first)) return (int)run_command(COMMAND_build, argv + 1, argc - 1);
    return (int)cli_misuse("there is no command '%s'; see: slope help", first);
}
