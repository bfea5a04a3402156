/* The table of flags as help text. See megatron_help.h. */
#include "coordinator/megatron/megatron_help.h"

#include <string.h>

#include "common/mem.h"
#include "coordinator/megatron/megatron_table.h"

#define COLUMNS 80u

/* The first flag of each group. */
static const struct {
    const char *flag, *title;
} groups[] = {
    {"refit-mode", "The benchmark"},
    {"tensor-model-parallel-size", "Training mesh"},
    {"rl-inference-tensor-model-parallel-size", "Inference mesh"},
    {"num-layers", "Model"},
    {"multi-latent-attention", "Latent attention"},
    {"num-experts", "Experts"},
    {"bf16", "Weights (default: float32)"},
};

static void print_title(const char *flag, FILE *to)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(groups); i++) {
        if (strcmp(groups[i].flag, flag) == 0) {
            fprintf(to, "%s%s:\n", i > 0 ? "\n" : "", groups[i].title);
        }
    }
}

/* "collocated|non-collocated", "N" and so on. */
static void value_of(const struct rf_megatron_flag *flag, char *out,
                     size_t size)
{
    static const char *const kinds[] = {[RF_MEGATRON_COUNT] = "N",
                                        [RF_MEGATRON_SIZE] = "N",
                                        [RF_MEGATRON_PATTERN] = "N|LIST",
                                        [RF_MEGATRON_TEXT] = "TEXT"};
    snprintf(out, size, "%s",
             flag->kind == RF_MEGATRON_WORD ? flag->words : kinds[flag->kind]);
    for (char *at = out; *at != '\0'; at++) {
        *at = *at == ' ' ? '|' : *at;
    }
}

/* A long default gets its own line. */
static void print_flag(const struct rf_megatron_flag *flag, FILE *to)
{
    int column = fprintf(to, "  --%s", flag->name);
    char value[80], otherwise[80];
    if (flag->kind != RF_MEGATRON_SWITCH) {
        value_of(flag, value, sizeof(value));
        column += fprintf(to, " %s", value);
        snprintf(otherwise, sizeof(otherwise),
                 flag->fallback == rf_megatron_required ? "(%s)"
                                                        : "(default: %s)",
                 flag->fallback);
        fprintf(to, "%s%s",
                (size_t)column + strlen(otherwise) < COLUMNS ? " "
                                                             : "\n        ",
                otherwise);
    }
    fputc('\n', to);
}

void rf_megatron_help(FILE *to)
{
    size_t idle = 0;
    for (const struct rf_megatron_flag *flag = rf_megatron_flags;
         flag->name != NULL; flag++) {
        if (flag->kind != RF_MEGATRON_REFUSED) {
            print_title(flag->name, to);
            print_flag(flag, to);
        }
    }
    while (rf_megatron_idle[idle] != NULL) {
        idle++;
    }
    fprintf(to,
            "\n%zu more Megatron-LM flags, which do not affect the bytes of a "
            "refit, are\naccepted with any value. The words \"python "
            "benchmark_refit.py\" before the flags\nare ignored.\n",
            idle);
}
