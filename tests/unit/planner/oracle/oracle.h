/*
 * An oracle for plans, by brute force and without the planner's code: what each
 * rank holds is written out element by element from the definitions of
 * Megatron-LM, Hugging Face, vLLM, SGLang, FSDP and Alpa, with rank formulae of
 * its own. Then a plan is played on memory with a number for every element.
 */
#ifndef RF_TESTS_ORACLE_H
#define RF_TESTS_ORACLE_H

#include <stdio.h>

#include "planner/plan/plan.h"

/* What is being checked, printed when it fails. */
extern const char *oracle_case;

/* Like ck_assert_msg, but free when it holds: Check's writes a note to a file
 * each time, which no loop over elements can afford. */
#define oracle_assert(condition, ...)                                          \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "oracle: %s\n", oracle_case);                      \
            ck_abort_msg(__VA_ARGS__);                                         \
        }                                                                      \
    } while (0)

#define ORACLE_PAD UINT64_MAX          /* a padding row's element */
#define ORACLE_POISON (UINT64_MAX - 1) /* not written yet */

/* The elements of a parameter in memory order. */
struct oracle_param {
    uint64_t *ids;
    size_t n;
};

/* What one rank holds on one side. */
struct oracle_rank {
    struct oracle_param *params;
    size_t n, cap;
};

struct oracle {
    const struct rf_model *model;
    const struct rf_spec *spec;
    const struct rf_world *world;
    uint64_t n_elements; /* of the model; ids count up to it */
    uint64_t *base;      /* first id of each family */
};

/* Holdings of the rank with this rf_rank.index. */
void oracle_holdings(const struct oracle *oracle, enum rf_side side,
                     uint32_t index, struct oracle_rank *out);
struct oracle_param *oracle_push(struct oracle_rank *rank, size_t n);

/*
 * How ranks hold the tensors of a model: a list by name, which ends with an
 * entry without one. oracle_held points to that of the llama kin unless a test
 * has another, with the numbers of its model. Neighbours with the same `join`
 * become one parameter where the framework fuses them.
 */
enum oracle_cut {
    ORACLE_WHOLE,
    ORACLE_ROWS,
    ORACLE_COLUMNS,
    ORACLE_KV,     /* rows by key/value heads */
    ORACLE_PARTS,  /* each of some runs of rows by itself */
    ORACLE_HALVES, /* both halves of the columns by themselves */
    ORACLE_EMBEDDING,
    ORACLE_HEAD,
    ORACLE_LAST, /* whole, on the last stage */
    /* on the first stage: */
    ORACLE_FIRST,
    ORACLE_FIRST_ROWS,
    ORACLE_TABLE, /* rows with padding */
};
enum oracle_join {
    ORACLE_ALONE,
    ORACLE_QKV,     /* queries, keys, values */
    ORACLE_GATE_UP, /* gate, up */
    ORACLE_LATENT,  /* down-projections of queries and of keys and values */
};
struct oracle_part {
    uint32_t rows, units; /* units: heads; with fewer than ranks they repeat */
};
struct oracle_held {
    const char *name;
    enum oracle_cut cut;
    enum oracle_join join;
    bool experts, stacked; /* stacked: all experts in one tensor on disk */
    bool heads; /* shared out among the ranks that share out attention */
    bool plain; /* whole on every rank of SGLang, without padding */
    struct oracle_part parts[5];
};
extern const struct oracle_held *oracle_held;

/* FSDP and Alpa specs (oracle_shards.c). */
void oracle_fsdp2(const struct oracle *oracle, const struct rf_side_spec *side,
                  uint32_t index, struct oracle_rank *out);
void oracle_fsdp1(const struct oracle *oracle, const struct rf_side_spec *side,
                  uint32_t index, struct oracle_rank *out);
void oracle_zero3(const struct oracle *oracle, const struct rf_side_spec *side,
                  uint32_t index, struct oracle_rank *out);
void oracle_alpa(const struct oracle *oracle, const struct rf_side_spec *side,
                 uint32_t index, struct oracle_rank *out);

/* Fails the test unless `plan` is right in every element, byte count and
 * order of preference. */
void oracle_check(const struct rf_plan *plan);

/* Plans a scenario for slots[n_nodes] (0 nodes: none given), checks it and
 * gives the totals. Fails the test when it cannot be planned. */
struct rf_plan_totals oracle_plan(const struct rf_model *model,
                                  const uint32_t *slots, uint32_t n_nodes,
                                  const char *fmt, ...) RF_PRINTF(4, 5);

/* Plans of a model whose tensors are held as a list says, from each of the
 * sides, which are texts of members, to itself and the five that follow; with
 * RF_ORACLE_PAIRS set, to all. */
void oracle_plan_sides(const struct rf_model *model,
                       const struct oracle_held *held, const char *const *sides,
                       size_t n);

#endif
