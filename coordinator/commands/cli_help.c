/* Output of --help and --version. See cli.h. */
#include <jansson.h>
#include <libssh/libssh.h>
#include <openssl/crypto.h>
#include <string.h>
#include <uv.h>

#include "common/version.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/cli_table.h"

#define COLUMNS 79
#define COMMAND_COLUMN 12 /* column of the texts */
#define OPTION_COLUMN 26

/* A name and its text, wrapped at words. */
static void print_row(FILE *to, int indent, const char *name, const char *text)
{
    int column = fprintf(to, "%-*s", indent, name);
    const char *gap = "";
    while (*text != '\0') {
        int word = (int)strcspn(text, " ");
        if (column + 1 + word > COLUMNS) {
            column = fprintf(to, "\n%*s", indent, "") - 1;
            gap = "";
        }
        column += fprintf(to, "%s%.*s", gap, word, text);
        text += (size_t)word + strspn(text + word, " ");
        gap = " ";
    }
    fputc('\n', to);
}

static void print_option(FILE *to, const struct rf_cli_option *option)
{
    char name[64];
    char letter[8] = "    ";
    if (option->letter != 0) {
        snprintf(letter, sizeof(letter), "-%c, ", option->letter);
    }
    snprintf(name, sizeof(name), "  %s--%s%s%s", letter, option->name,
             option->value == NULL || option->value[1] == '=' ? "" : " ",
             option->value != NULL ? option->value : "");
    print_row(to, OPTION_COLUMN, name, option->help);
}

static void print_screen(FILE *to)
{
    fputs("refit-coord measures how long it takes to move a model's weights "
          "from a\n"
          "training mesh to an inference mesh on your nodes, and verifies "
          "every byte.\n"
          "\n"
          "Usage:\n"
          "  refit-coord [run] CLUSTER.json [OPTION]...\n"
          "  refit-coord COMMAND ARGUMENT... [OPTION]...\n"
          "\n"
          "Commands (refit-coord COMMAND --help prints a command's options):\n",
          to);
    for (size_t i = 0; i < RF_COMMANDS; i++) {
        char name[64];
        snprintf(name, sizeof(name), "  %s", rf_cli_commands[i].name);
        print_row(to, COMMAND_COLUMN, name, rf_cli_commands[i].help);
    }
    fputs("\nOptions of every command:\n", to);
    for (size_t i = 0; i < RF_OPTIONS; i++) {
        if (RF_OPTS_COMMON & UINT64_C(1) << i) {
            print_option(to, &rf_cli_options[i]);
        }
    }
    fputs("\n"
          "Examples:\n"
          "  refit-coord cluster.json -o results\n"
          "  refit-coord report results\n"
          "\n"
          "Exit codes: 0 success; 1 failed scenario or regression; 2 usage or\n"
          "configuration error; 3 verification mismatch; 4 launch or preflight "
          "failure;\n"
          "130 interrupted (129 hung up, 143 terminated).\n"
          "See refit-coord(1) and refit-cluster(5).\n",
          to);
}

static void print_page(enum rf_command topic, FILE *to)
{
    const struct rf_cli_command *command = &rf_cli_commands[topic];
    fprintf(to, "refit-coord %s: %s\n\nUsage:\n", command->name, command->help);
    for (size_t i = 0; i == 0 || (i < 2 && command->operands[i] != NULL); i++) {
        const char *operands = command->operands[i];
        fprintf(to, "  refit-coord %s%s%s [OPTION]...\n", command->name,
                operands != NULL ? " " : "", operands != NULL ? operands : "");
    }
    fputs("\nOptions:\n", to);
    for (size_t i = 0; i < RF_OPTIONS; i++) {
        if (command->options & UINT64_C(1) << i) {
            print_option(to, &rf_cli_options[i]);
        }
    }
    if (command->more != NULL) {
        fputc('\n', to);
        command->more(to);
    }
    fprintf(to, "\nExample:\n  refit-coord %s\n\nSee refit-coord(1).\n",
            command->example);
}

void rf_cli_help(enum rf_command topic, FILE *to)
{
    if (rf_cli_commands[topic].options == 0) {
        print_screen(to);
    } else {
        print_page(topic, to);
    }
}

int rf_help_command(struct rf_cli *cli)
{
    rf_cli_help(cli->topic, stdout);
    return RF_EXIT_OK;
}

int rf_version_command(struct rf_cli *cli)
{
    (void)cli;
    printf("refit-coord %s (%s)\nlibuv %s\nlibssh %s\njansson %s\n%s\n",
           rf_version(), rf_build(), uv_version_string(), ssh_version(0),
           jansson_version_str(), OpenSSL_version(OPENSSL_VERSION));
    return RF_EXIT_OK;
}

json_t *rf_library_versions(void)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "libuv", uv_version_string(),
                     "libssh", ssh_version(0), "openssl",
                     OpenSSL_version(OPENSSL_VERSION), "jansson",
                     jansson_version_str());
}
