/* What --help and --version print. See cli.h. */
#include <jansson.h>
#include <libssh/libssh.h>
#include <openssl/crypto.h>
#include <uv.h>

#include "common/version.h"
#include "coordinator/commands/cli.h"

void rf_cli_help(FILE *to)
{
    fputs(
        "refit-coord measures how long weights take from a training mesh to "
        "an\ninference mesh, on your nodes, and checks every byte.\n\n"
        "refit-coord [run] CLUSTER.json [-o DIR] [-s GLOB]... [--resume DIR]\n"
        "            [--timeout S] [--strict] [-n [--json | --full]]\n"
        "refit-coord plan CLUSTER.json [-s GLOB]... [-v | --json | --full]\n"
        "refit-coord check CLUSTER.json [--json] [--timeout S] [--strict]\n"
        "refit-coord predict CLUSTER.json [RESULT_DIR]... [-s GLOB]... "
        "[--json]\n"
        "refit-coord report DIR... [--csv|--latex|--markdown|--html FILE]\n"
        "refit-coord compare REFERENCE_DIR NEW_DIR [--threshold R] [--json]\n"
        "\n"
        "  -o, --output DIR    put results in DIR/<UTC time>-<name> (results)\n"
        "  -s, --scenario GLOB only scenarios whose name matches\n"
        "  -n, --dry-run       plan only: no launch, no network\n"
        "      --resume DIR    go on with an unfinished run in that folder\n"
        "      --timeout S     end the whole run after S seconds\n"
        "      --strict        refuse workers of another build\n"
        "      --json          print JSON\n"
        "      --full          JSON with every rank's boxes and transfers\n"
        "      --csv, --latex, --markdown\n"
        "                      print the report in that form\n"
        "      --html FILE     write the report as one page to FILE (-: "
        "standard "
        "output)\n"
        "      --threshold R   compare: relative change that counts (0.10)\n"
        "  -v, --verbose       say more; twice: every message\n"
        "  -q, --quiet         only warnings and errors\n"
        "  -h, --help          this text\n"
        "  -V, --version       versions of the program and its libraries\n"
        "\n"
        "Exit codes: 0 ok; 1 a scenario failed or became slower; 2 usage or\n"
        "configuration; 3 verification mismatch; 4 launch or preflight;\n"
        "130 interrupted (129 hung up, 143 terminated).\n"
        "More: man refit-coord, man refit-cluster.\n",
        to);
}

void rf_cli_version(FILE *to)
{
    fprintf(to, "refit-coord %s (%s)\nlibuv %s\nlibssh %s\njansson %s\n%s\n",
            rf_version(), rf_build(), uv_version_string(), ssh_version(0),
            jansson_version_str(), OpenSSL_version(OPENSSL_VERSION));
}
