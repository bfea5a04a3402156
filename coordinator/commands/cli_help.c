/* What --help and --version print. See cli.h. */
#include <jansson.h>
#include <libssh/libssh.h>
#include <openssl/crypto.h>
#include <uv.h>

#include "common/version.h"
#include "coordinator/commands/cli.h"

static void print_usage(FILE *to)
{
    fputs(
        "refit-coord measures how long it takes to move a model's weights from "
        "a\n"
        "training mesh to an inference mesh on your nodes, and verifies every "
        "byte.\n"
        "\n"
        "Usage:\n"
        "  refit-coord [run] CLUSTER.json [-o DIR] [-s GLOB]... [--slow]\n"
        "              [--resume DIR] [--repeat N] [--timeout S] [--strict]\n"
        "              [--trace FILE] [--logs] [--export DIR] [-n [--json | "
        "--full]]\n"
        "  refit-coord plan CLUSTER.json|MODEL.json [-s GLOB]... [--slow]\n"
        "              [-v | --json | --full]\n"
        "  refit-coord check CLUSTER.json [--slow] [--json] [--timeout S] "
        "[--strict]\n"
        "  refit-coord predict CLUSTER.json [RESULT_DIR]... [-s GLOB]...\n"
        "              [--slow] [--json]\n"
        "  refit-coord predict --demo SIZE [--json]\n"
        "  refit-coord advise CLUSTER.json [-s GLOB]... [--slow] [--json]\n"
        "  refit-coord report DIR... [--csv | --json | --alpa | --latex | "
        "--markdown |\n"
        "              --html FILE | --figures DIR] [--pool] [--reference "
        "DIR]\n"
        "              [--threshold LIMITS] [--drop-constant]\n"
        "  refit-coord compare REFERENCE_DIR NEW_DIR [--threshold LIMITS] "
        "[--pool]\n"
        "              [--json] [--outliers FILE]\n"
        "  refit-coord rerun RESULT.json [-o DIR] [--repeat N] [--timeout S] "
        "[--strict]\n"
        "              [--trace FILE] [--logs] [--threshold LIMITS] [--json]\n"
        "  refit-coord megatron MEGATRON_FLAG... [--print | --json] [-o DIR]\n"
        "              [--repeat N] [--timeout S] [--strict] [--trace FILE] "
        "[--logs]\n"
        "Every command takes -q or -v, and those that read a CLUSTER.json or\n"
        "RESULT.json also [--set PATH=VALUE]... [--nodes LIST | --hostfile "
        "FILE].\n"
        "\n",
        to);
}

static void print_options(FILE *to)
{
    fputs(
        "Options:\n"
        "  -o, --output DIR    write results to DIR/<UTC time>-<name> "
        "(default: results)\n"
        "  -s, --scenario GLOB select scenarios by name; may be repeated\n"
        "      --slow          run scenarios that the file calls slow, too\n"
        "  -n, --dry-run       plan only: launch nothing, use no network\n"
        "      --resume DIR    continue the unfinished run in DIR\n"
        "      --repeat N      measure each scenario N times, each with new "
        "processes\n"
        "      --timeout S     end the whole run after S seconds\n"
        "      --strict        refuse workers of another build\n"
        "      --json          print JSON\n"
        "      --print         print the cluster file that the flags make, run "
        "nothing\n"
        "      --full          print JSON with every rank's boxes and "
        "transfers\n"
        "      --csv, --latex, --markdown\n"
        "                      print the report in that format\n"
        "      --drop-constant leave out columns that are the same in all "
        "rows, and say\n"
        "                      once what they are\n"
        "      --html FILE     write the report as one page to FILE (-: "
        "standard output)\n"
        "      --alpa          print results of one tensor in the format of "
        "Alpa's\n"
        "                      resharding benchmark\n"
        "      --figures DIR   draw figures for papers into DIR\n"
        "      --pool          take several runs of a scenario as one with "
        "repeats\n"
        "      --reference DIR draw the results beside these older ones\n"
        "      --threshold LIMITS\n"
        "                      changes that compare reports (default: 10%), "
        "also by\n"
        "                      metric: time=5%,memory=+10%-20%,ratio=0.1\n"
        "      --outliers FILE write what compare finds as CSV, with what else "
        "differs\n"
        "      --trace FILE    run each scenario once more and write what "
        "every rank\n"
        "                      did, for Perfetto (-: standard output)\n"
        "      --logs          keep a log of every rank, not only of those "
        "that wrote\n"
        "                      something or failed\n"
        "      --export DIR    write the refitted model to DIR on the "
        "inference "
        "nodes\n"
        "      --set PATH=VALUE\n"
        "                      set a member of the file: model.num_layers=2,\n"
        "                      'scenarios.*.method=nccl'; may be repeated\n"
        "      --nodes LIST    use these hosts: 'gpu[01-04],b7:4' (:slots)\n"
        "      --hostfile FILE use the hosts of a host file (Open MPI, MPICH, "
        "DeepSpeed)\n"
        "  -v, --verbose       print more; twice: every message\n"
        "  -q, --quiet         print only warnings and errors\n"
        "  -h, --help          print this help\n"
        "  -V, --version       print the versions of the program and its "
        "libraries\n"
        "\n"
        "Exit codes: 0 success; 1 a scenario failed or became worse; 2 usage "
        "or\n"
        "configuration error; 3 verification mismatch; 4 launch or preflight "
        "failure;\n"
        "130 interrupted (129 hung up, 143 terminated).\n"
        "See refit-coord(1) and refit-cluster(5).\n",
        to);
}

void rf_cli_help(FILE *to)
{
    print_usage(to);
    print_options(to);
}

void rf_cli_version(FILE *to)
{
    fprintf(to, "refit-coord %s (%s)\nlibuv %s\nlibssh %s\njansson %s\n%s\n",
            rf_version(), rf_build(), uv_version_string(), ssh_version(0),
            jansson_version_str(), OpenSSL_version(OPENSSL_VERSION));
}
