/*
 * Plans as text: the model, then for each scenario what changes, the groups,
 * the load, the meshes, the bytes by distance, the busiest ranks and nodes
 * beside the least possible, the number of destinations that share a source
 * box, the message sizes and the memory; with `families`, also every family of
 * tensors.
 */
#include "coordinator/commands/plan_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "coordinator/commands/plan_families.h"
#include "coordinator/records/report_table.h"
#include "coordinator/table/table.h"
#include "planner/layout/unknown_tensors.h"
#include "planner/plan/tensor_groups.h"
#include "planner/plan/update_rules.h"

#define TOP_ROWS 5

/* "8,030,261,248" */
static const char *with_commas(uint64_t value, char out[32])
{
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%" PRIu64, value), used = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            out[used++] = ',';
        }
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

/* "8.03 B", the unit of model names. */
static const char *rounded(uint64_t value, char out[32])
{
    static const char *const units[] = {"", " k", " M", " B", " T"};
    double scaled = (double)value;
    size_t unit = 0;
    while (scaled >= 999.995 && unit + 1 < RF_ARRAY_SIZE(units)) {
        scaled /= 1000;
        unit++;
    }
    snprintf(out, 32, "%.*f%s", unit == 0 ? 0 : 2, scaled, units[unit]);
    return out;
}

void rf_plan_print_model(const struct rf_model *model)
{
    char commas[32], size[32];
    printf("model %s (%s)\n", model->name, model->model_type);
    printf("  parameters  %s (%s)\n", rounded(model->parameters, size),
           with_commas(model->parameters, commas));
    printf("  bytes       %s (%s), %s\n",
           rf_format_bytes(model->bytes, size, sizeof(size)),
           with_commas(model->bytes, commas), rf_dtype_name(model->dtype));
    printf("  tensors     %" PRIu64 ", layers %u", model->n_tensors,
           model->n_layers);
    if (model->n_experts > 0) {
        printf(", experts %u", model->n_experts);
    }
    printf("%s\n", model->tied_embeddings ? ", tied embeddings" : "");
    if (model->spelling != NULL) {
        printf("  names       %s\n", model->spelling);
    }
    for (uint32_t i = 0; i < model->n_not_counted; i++) {
        printf("  uncounted   %s\n", model->not_counted[i]);
    }
}

static void print_size(const char *name, uint32_t size, bool show)
{
    if (show) {
        printf(" %s %u", name, size);
    }
}

/* Whether a side's dtype makes the refit convert. */
static bool casts(const struct rf_scenario *scenario)
{
    const struct rf_side_spec *train = &scenario->spec->train;
    const struct rf_side_spec *infer = &scenario->spec->infer;
    enum rf_dtype model = scenario->plan->model->dtype;
    return rf_side_dtype(train, model) != rf_side_dtype(infer, model);
}

/* A side's dtype if it is not the model's, and where the refit casts or
 * quantizes. */
static void print_dtype(const struct rf_scenario *scenario, enum rf_side side)
{
    const struct rf_spec *spec = scenario->spec;
    const struct rf_side_spec *own = &spec->side[side];
    if (own->dtype_given && own->dtype != scenario->plan->model->dtype) {
        printf(", dtype %s", rf_dtype_name(own->dtype));
    }
    if (side != RF_TRAIN && casts(scenario)) {
        printf(", cast at the %s",
               spec->cast_at_source ? "source" : "destination");
    }
    if (own->quantize.format != NULL) {
        printf(rf_plan_is_converted(scenario->plan)
                   ? ", quantized to %s by its senders"
                   : ", then quantized to %s",
               own->quantize.format->name);
    }
}

/* The bytes that a pool's ranks receive from others. */
static uint64_t received_by(const struct rf_scenario *scenario,
                            const struct rf_world_mesh *pool)
{
    const uint32_t *ranks = scenario->world->rank_of[RF_INFER] + pool->first;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < pool->size; i++) {
        bytes += scenario->schedule->rank_recv[ranks[i]];
    }
    return bytes;
}

static void print_side(const struct rf_scenario *scenario, enum rf_side side)
{
    const struct rf_world_mesh *mesh = &scenario->world->mesh[side];
    const struct rf_side_spec *spec = &scenario->spec->side[side];
    printf("  %-10s  %s", rf_spec_side_title(scenario->spec, side),
           rf_layout_kind_name(spec->layout));
    if (spec->layout == RF_LAYOUT_SPEC) {
        printf(" mesh %u x %u, spec", spec->mesh[0], spec->mesh[1]);
        for (uint32_t i = 0; i < spec->n_spec; i++) {
            printf(" %s", spec->spec[i]);
        }
    } else {
        print_size("tp", spec->tp, true);
        print_size("attention_dp", spec->attention_dp, spec->attention_dp > 1);
        print_size("cp", spec->cp, spec->cp > 1);
        print_size("pp", spec->pp, spec->pp > 1);
        print_size("vpp", spec->vpp, spec->vpp > 1);
        print_size("ep", spec->ep, spec->ep > 1);
        print_size("etp", spec->etp, spec->ep > 1 || spec->etp != spec->tp);
        print_size("dp", spec->dp, true);
    }
    print_dtype(scenario, side);
    printf(": %u rank%s", mesh->size, mesh->size == 1 ? "" : "s");
    if (side != RF_TRAIN && scenario->spec->n_sides > RF_SIDES) {
        char a[32];
        printf(", receive%s %s", mesh->size == 1 ? "s" : "",
               rf_format_bytes(received_by(scenario, mesh), a, sizeof(a)));
    }
    putchar('\n');
}

static void print_totals(const struct rf_scenario *scenario)
{
    const struct rf_plan_totals *t = &scenario->plan->totals;
    char a[32], b[32], c[32], d[32];
    printf("  transfers   %" PRIu64 ", %s: %s local, %s inside nodes, %s "
           "between nodes\n",
           t->transfers, rf_format_bytes(t->bytes_total, a, sizeof(a)),
           rf_format_bytes(t->bytes_local, b, sizeof(b)),
           rf_format_bytes(t->bytes_intra_node, c, sizeof(c)),
           rf_format_bytes(t->bytes_inter_node, d, sizeof(d)));
    printf("  busiest     sends %s (at least %s), receives %s (at least %s)\n",
           rf_format_bytes(t->max_send_bytes, a, sizeof(a)),
           rf_format_bytes(t->bound_send_bytes, b, sizeof(b)),
           rf_format_bytes(t->max_recv_bytes, c, sizeof(c)),
           rf_format_bytes(t->bound_recv_bytes, d, sizeof(d)));
    printf("  schedule    %" PRIu64 " operations in %u round%s, %s between "
           "ranks, %s between nodes\n",
           scenario->schedule->n_world_ops, scenario->schedule->n_rounds,
           scenario->schedule->n_rounds == 1 ? "" : "s",
           rf_format_bytes(scenario->schedule->wire_bytes, a, sizeof(a)),
           rf_format_bytes(scenario->schedule->inter_node_bytes, b, sizeof(b)));
}

/* Tensors that no rule knows, whole on every rank of a side that would split
 * them; prints nothing if there are none. */
static void print_unknown(const struct rf_scenario *scenario)
{
    struct rf_unknown unknown =
        rf_unknown_tensors_count(scenario->plan->model, scenario->spec);
    char bytes[32];
    if (unknown.families > 0) {
        printf(
            "  unknown     %" PRIu64 " tensor%s (%s) of %u famil%s that no "
            "rule knows: whole on every rank of a side that would split them\n",
            unknown.tensors, unknown.tensors == 1 ? "" : "s",
            rf_format_bytes(unknown.bytes, bytes, sizeof(bytes)),
            unknown.families, unknown.families == 1 ? "y" : "ies");
    }
}

static uint64_t load_of(const uint64_t *send, const uint64_t *recv, uint32_t i)
{
    return send[i] + (recv != NULL ? recv[i] : 0);
}

/* Picks the rows with the largest load, largest first; with `recv` NULL the
 * load is `send` alone. */
static size_t pick_busiest(const uint64_t *send, const uint64_t *recv,
                           uint32_t n, uint32_t out[TOP_ROWS])
{
    size_t picked = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t at = picked;
        uint64_t load = load_of(send, recv, i);
        while (at > 0 && load_of(send, recv, out[at - 1]) < load) {
            at--;
        }
        if (at >= TOP_ROWS) {
            continue;
        }
        picked = RF_MIN(picked + 1, (size_t)TOP_ROWS);
        for (size_t j = picked - 1; j > at; j--) {
            out[j] = out[j - 1];
        }
        out[at] = i;
    }
    return picked;
}

/* "rank 3 on host", or without the host if the file has no nodes. */
static void rank_cell(struct rf_table *table,
                      const struct rf_scenario *scenario, uint32_t rank)
{
    if (scenario->config->n_nodes > 0) {
        rf_table_cell(
            table, "rank %u on %s", rank,
            scenario->config->node_names[scenario->world->ranks[rank].node]);
    } else {
        rf_table_cell(table, "rank %u", rank);
    }
}

static void print_loads(const struct rf_scenario *scenario)
{
    static const char *const heads[] = {"busiest ranks", ">sends", ">receives",
                                        NULL};
    const struct rf_schedule *s = scenario->schedule;
    struct rf_table *table = rf_table_create(heads);
    uint32_t top[TOP_ROWS];
    size_t n =
        pick_busiest(s->rank_send, s->rank_recv, scenario->world->n_ranks, top);
    char a[32];
    for (size_t i = 0; i < n; i++) {
        rank_cell(table, scenario, top[i]);
        rf_table_cell(table, "%s",
                      rf_format_bytes(s->rank_send[top[i]], a, sizeof(a)));
        rf_table_cell(table, "%s",
                      rf_format_bytes(s->rank_recv[top[i]], a, sizeof(a)));
    }
    if (scenario->config->n_nodes > 1) {
        n = pick_busiest(s->node_send, s->node_recv, scenario->world->n_nodes,
                         top);
        for (size_t i = 0; i < n; i++) {
            rf_table_cell(table, "node %s",
                          scenario->config->node_names[top[i]]);
            rf_table_cell(table, "%s",
                          rf_format_bytes(s->node_send[top[i]], a, sizeof(a)));
            rf_table_cell(table, "%s",
                          rf_format_bytes(s->node_recv[top[i]], a, sizeof(a)));
        }
    }
    rf_table_print(table, stdout, RF_REPORT_TABLE, 2);
    rf_table_destroy(table);
}

/* Operations of one size, and of all sizes. */
struct size {
    uint64_t bytes, n_ops;
};

struct sizes {
    struct size *of;
    size_t n, capacity;
    uint64_t n_ops;
};

static int by_bytes(const void *a, const void *b)
{
    const struct size *x = a, *y = b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static void note_size(uint64_t bytes, uint64_t n_ops, void *data)
{
    struct sizes *sizes = data;
    sizes->n_ops += n_ops;
    if (sizes->n > 0 && sizes->of[sizes->n - 1].bytes == bytes) {
        sizes->of[sizes->n - 1].n_ops += n_ops;
    } else {
        RF_PUSH(sizes->of, sizes->n, sizes->capacity,
                ((struct size){bytes, n_ops}));
    }
}

/* The upper median if there is no middle. */
static uint64_t median(const struct sizes *sizes)
{
    uint64_t before = 0;
    size_t i = 0;
    while (before + sizes->of[i].n_ops <= sizes->n_ops / 2) {
        before += sizes->of[i++].n_ops;
    }
    return sizes->of[i].bytes;
}

/* Sizes of the operations between different ranks. */
static void print_messages(const struct rf_scenario *scenario)
{
    struct sizes sizes = {.of = NULL};
    char a[32], b[32], c[32];
    rf_schedule_sizes(scenario->schedule, note_size, &sizes);
    if (sizes.n > 0) {
        qsort(sizes.of, sizes.n, sizeof(*sizes.of), by_bytes);
        printf("  messages    %" PRIu64
               " between ranks; smallest %s, median %s, largest %s\n",
               sizes.n_ops, rf_format_bytes(sizes.of[0].bytes, a, sizeof(a)),
               rf_format_bytes(median(&sizes), b, sizeof(b)),
               rf_format_bytes(sizes.of[sizes.n - 1].bytes, c, sizeof(c)));
    }
    free(sizes.of);
}

static uint64_t unique_source_bytes(const struct rf_scenario *scenario)
{
    uint64_t elements_bytes = 0;
    const struct rf_model *model = scenario->plan->model;
    for (uint32_t f = 0; f < model->n_families; f++) {
        elements_bytes +=
            rf_family_elements(&model->families[f]) *
            rf_form_item(rf_plan_form(scenario->plan, RF_INFER, f));
    }
    return elements_bytes;
}

/* The nodes that need the most memory. */
static void print_node_memory(const struct rf_scenario *scenario)
{
    uint32_t n_nodes = scenario->config->n_nodes, top[TOP_ROWS];
    uint64_t *need = rf_xcalloc(n_nodes + 1, sizeof(*need));
    size_t n;
    uint32_t used = 0;
    char a[32];
    for (uint32_t i = 0; i < n_nodes; i++) {
        need[i] = rf_scenario_node_bytes(scenario, i);
        used += rf_scenario_node_ranks(scenario, i) > 0;
    }
    n = pick_busiest(need, NULL, n_nodes, top);
    for (size_t i = 0; i < RF_MIN(n, (size_t)used); i++) {
        printf(", %s %s", scenario->config->node_names[top[i]],
               rf_format_bytes(need[top[i]], a, sizeof(a)));
    }
    if (used > n) {
        printf(" and %zu more nodes, none above these", used - n);
    }
    free(need);
}

static void print_memory(const struct rf_scenario *scenario)
{
    uint64_t least = UINT64_MAX, most = 0;
    char a[32], b[32];
    for (uint32_t r = 0; r < scenario->world->n_ranks; r++) {
        uint64_t bytes = rf_scenario_rank_bytes(scenario, r);
        least = RF_MIN(least, bytes);
        most = RF_MAX(most, bytes);
    }
    rf_format_bytes(least, a, sizeof(a));
    rf_format_bytes(most, b, sizeof(b));
    printf("  memory      %s%s%s per rank (%s)", a,
           strcmp(a, b) == 0 ? "" : " to ", strcmp(a, b) == 0 ? "" : b,
           rf_scenario_on_device(scenario) ? "device" : "host");
    print_node_memory(scenario);
    putchar('\n');
}

/* The candidates of strategy auto, with the one taken. */
static void print_choice(const struct rf_scenario *scenario)
{
    static const char *const heads[] = {"auto", ">predicted ms", "busiest",
                                        NULL};
    struct rf_table *table;
    if (scenario->choice == NULL) {
        return;
    }
    table = rf_table_create(heads);
    for (unsigned s = 0; s < RF_STRATEGIES; s++) {
        const struct rf_strategy_candidate *of =
            &scenario->choice->candidates[s];
        const bool taken = of->strategy == scenario->spec->strategy;
        char ms[32];
        rf_table_cell(table, "%s%s", rf_strategy_name(of->strategy),
                      taken ? " (taken)" : "");
        if (of->why_not[0] != '\0') {
            rf_table_cell(table, "-");
            rf_table_cell(table, "%s", of->why_not);
        } else {
            rf_table_cell(table, "%s", rf_amount_text(of->ms, ms));
            rf_table_cell(table, "%s", of->busiest);
        }
    }
    rf_table_print(table, stdout, RF_REPORT_TABLE, 2);
    rf_table_destroy(table);
}

#define WEIGHTS_SHOWN 8 /* nodes */

static void print_balance_choice(const struct rf_scenario *scenario)
{
    const struct rf_balance_choice *choice = scenario->balance_choice;
    const uint32_t n_links = scenario->spec->n_balance_links;
    if (choice != NULL) {
        printf("  balance     %s: %s\n", rf_balance_name(choice->taken),
               choice->why);
    }
    for (uint32_t n = 0; n < RF_MIN(n_links, WEIGHTS_SHOWN); n++) {
        const struct rf_link_weight *link = &scenario->spec->balance_links[n];
        printf("%s%s %u x %u", n == 0 ? "  NIC weights " : ", ",
               rf_scenario_node_names(scenario)[n], link->nics, link->weight);
    }
    if (n_links > WEIGHTS_SHOWN) {
        printf(" and those of %u more", n_links - WEIGHTS_SHOWN);
    }
    if (n_links > 0) {
        putchar('\n');
    }
}

/* The share that changes, and the least bytes that an encoding sends of one
 * copy of the weights, as far as they are known. */
static void print_update(const struct rf_scenario *scenario)
{
    const struct rf_plan *moved = scenario->plan, *plan = moved->weights;
    const enum rf_encoding encoding = rf_scenario_encoding(scenario, NULL);
    const uint32_t every = plan->spec->update.restart_every;
    double all = 0, changed = 0, least = 0;
    char a[32], b[32];
    if (!plan->spec->update.given) {
        return;
    }
    for (uint32_t f = 0; f < plan->model->n_families; f++) {
        const double bytes =
            (double)(rf_family_elements(&plan->model->families[f]) *
                     rf_form_item(rf_plan_wire(plan, f)));
        all += bytes;
        changed += bytes * rf_update_share(plan, f);
    }
    for (uint32_t f = 0; f < moved->model->n_families; f++) {
        least += (double)(rf_family_elements(&moved->model->families[f]) *
                          rf_form_item(rf_plan_wire(moved, f))) *
                 rf_update_least(moved, f, encoding);
    }
    rf_format_bytes((uint64_t)all, a, sizeof(a));
    rf_format_bytes((uint64_t)least, b, sizeof(b));
    if (plan->spec->update.from != NULL) {
        printf("  update      of %s, from %s to %s", a, plan->spec->update.from,
               plan->spec->update.to != NULL ? plan->spec->update.to
                                             : "the model's checkpoint");
    } else {
        printf("  update      %.3g %% of %s changes", 100 * changed / all, a);
    }
    if (encoding == RF_ENCODING_DENSE) {
        printf("; all of it moves");
    } else if (least > 0) {
        printf("; encoding %s moves at least %s", rf_encoding_name(encoding),
               b);
    } else {
        printf("; encoding %s moves what changed", rf_encoding_name(encoding));
    }
    if (encoding != RF_ENCODING_DENSE && every > 0) {
        printf(", to the last replica all, in 1 of %" PRIu32 " iterations",
               every);
    }
    putchar('\n');
}

static uint64_t most_staged(const struct rf_schedule *schedule)
{
    uint64_t most = 0;
    for (uint32_t r = 0; schedule->stage_bytes && r < schedule->n_ranks; r++) {
        most = RF_MAX(most, schedule->stage_bytes[r]);
    }
    return most;
}

/* The groups of the scenario's "group". */
static void print_groups(const struct rf_scenario *scenario)
{
    const struct rf_group_spec *spec = &scenario->spec->group;
    const uint64_t staged = most_staged(scenario->schedule);
    struct rf_tensor_groups groups;
    char a[32];
    rf_tensor_groups_make(scenario->plan, &groups);
    if (groups.n > 0) {
        printf("  groups      %u of up to ", groups.n);
        if (spec->by == RF_GROUP_LAYERS) {
            printf("%" PRIu64 " layer%s", spec->size,
                   spec->size == 1 ? "" : "s");
        } else {
            printf("%s", rf_format_bytes(spec->size, a, sizeof(a)));
        }
        printf(
            "%s; largest %s, %u in flight",
            scenario->spec->train.pp == 1 ? ""
            : spec->serial_pp             ? ", stage after stage"
                                          : " of each training stage",
            rf_format_bytes(rf_tensor_groups_largest(scenario->plan, &groups),
                            a, sizeof(a)),
            spec->in_flight);
        if (staged > 0) {
            printf(", staging up to %s per rank",
                   rf_format_bytes(staged, a, sizeof(a)));
        }
        putchar('\n');
    }
    rf_tensor_groups_free(&groups);
}

static void print_load(const struct rf_scenario *scenario)
{
    static const char *const ranks[] = {
        [RF_LOAD_ON_INFER] = "each inference rank",
        [RF_LOAD_ON_TRAIN] = "each training rank",
        [RF_LOAD_ON_ALL] = "each rank"};
    const struct rf_load_spec *load = &scenario->spec->load;
    if (!load->given) {
        return;
    }
    printf("  load        %s %s ", ranks[load->on],
           load->network ? "sends" : "reads");
    if (load->gbytes_per_s > 0) {
        printf("%g GB/s", load->gbytes_per_s);
    } else {
        printf("as much as it can");
    }
    printf(" %s, by %u core%s\n",
           load->network ? "to other nodes" : "from memory", load->cores,
           load->cores == 1 ? "" : "s");
}

void rf_plan_print_scenario(const struct rf_scenario *scenario, bool families)
{
    char digest[RF_HASH_TEXT_SIZE], order[RF_HASH_TEXT_SIZE];
    uint64_t unique = unique_source_bytes(scenario);
    printf("\nscenario %s\n", scenario->spec->name);
    printf("  %s, method %s, strategy %s%s, balance %s%s\n",
           scenario->spec->mode == RF_COLOCATED ? "colocated" : "disaggregated",
           scenario->spec->method, rf_strategy_name(scenario->spec->strategy),
           scenario->choice != NULL ? " (auto)" : "",
           rf_balance_name(scenario->spec->balance),
           scenario->balance_choice != NULL ? " (of time)" : "");
    print_choice(scenario);
    print_balance_choice(scenario);
    if (scenario->links_assumed) {
        printf("  assumed     links without figures, see \"links\" in "
               "refit-cluster(5)\n");
    }
    print_update(scenario);
    print_groups(scenario);
    print_load(scenario);
    for (uint32_t i = 0; i < scenario->spec->n_sides; i++) {
        print_side(scenario, (enum rf_side)i);
    }
    print_totals(scenario);
    print_unknown(scenario);
    printf("  replicas    each byte is needed %.2f times on average\n",
           unique > 0
               ? (double)scenario->plan->totals.bytes_total / (double)unique
               : 0.0);
    print_messages(scenario);
    print_loads(scenario);
    print_memory(scenario);
    if (families) {
        rf_plan_families_print(scenario->plan->model, scenario->plan);
    }
    rf_hash_text(&scenario->plan->digest, digest);
    rf_hash_text(&scenario->schedule->digest, order);
    printf("  digest      %s, schedule %s, planned in %.1f ms\n", digest, order,
           (double)scenario->plan->plan_ns / 1e6);
}
