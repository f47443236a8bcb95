/* What --help shows, from the tables of commands and options. */
#include "cli.h"

typedef struct CommandHelp {
    const char *name, *arguments, *help;
} CommandHelp;

static const CommandHelp commands[] = {
#define COMMAND(name, capitals, arguments, help) {#name, arguments, help},
#include "cli/commands.def"
#undef COMMAND
};

typedef struct OptionHelp {
    const char *spelling;
    int commands;
    const char *argument, *help;
} OptionHelp;

static const OptionHelp options[] = {
#define OPTION(id, spelling, commands, argument, help) {spelling, commands, argument, help},
#include "cli/options.def"
#undef OPTION
};

void help_general(FILE *out) {
    fprintf(out, "usage: slope COMMAND ...\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].arguments);
        fprintf(out, "  %-36s  %s\n", left, commands[i].help);
    }
    fprintf(out, "  %-36s  %s\n", "help COMMAND", "show the options of a command");
    fprintf(out, "  %-36s  %s\n", "version", "show the version");
    fprintf(out,
            "\nslope FILE -target ... means: slope build FILE -target ...\nExit status: 0 all is well, 1 the "
            "program has errors, 2 the command was used wrongly, 3 a fault in Slope itself.\n");
}

static void show_option(const OptionHelp *option) {
    char left[64];
    const char *dashes = option->spelling[1] ? "--" : "-";
    snprintf(left, sizeof left, "%s%s%s%s", dashes, option->spelling, option->argument ? " " : "",
             option->argument ? option->argument : "");
    printf("  %-32s  %s\n", left, option->help);
}

static void show_names(const char *title, const char *(*name_at)(int)) {
    printf("\n%s:", title);
    for (int i = 0; name_at(i); i++) printf(" %s", name_at(i));
    printf("\n");
}

void help_command(Command command) {
    printf("usage: slope %s %s [OPTION...]\n%s\n\n", commands[command].name, commands[command].arguments,
           commands[command].help);
    for (int i = 0; i < OPTION_COUNT; i++)
        if (options[i].commands != ANY && (options[i].commands & 1 << command)) show_option(&options[i]);
    for (int i = 0; i < OPTION_COUNT; i++)
        if (options[i].commands == ANY) show_option(&options[i]);
    if (command == COMMAND_build) show_names("targets", slope_target_name);
    if (command == COMMAND_dump) show_names("stages", slope_stage_name);
}
