/* The probe of a run: the best of all its scenarios' probes. */

#include "coordinator/store/result_probe.h"

#include "tests/unit/unit.h"

static json_t *links(double copy, double rate, double latency)
{
    return json_pack("{s:[{s:s, s:f, s:f}], s:[{s:s, s:s, s:f, s:f}]}", "nodes",
                     "host", "a", "copy_gbytes_per_s", copy,
                     "single_copy_gbytes_per_s", 1.0, "pairs", "from", "a",
                     "to", "b", "gbytes_per_s", rate, "latency_us", latency);
}

static json_t *record(json_t *before, json_t *after)
{
    return json_pack("{s:{s:{s:o, s:o, s:n}}}", "bound", "probe", "before",
                     before, "after", after, "copy_bytes");
}

static void add(json_t *document, json_t *result)
{
    rf_result_probe_add(document, result);
    json_decref(result);
}

static double figure(const json_t *document, const char *list, size_t i,
                     const char *key)
{
    return json_number_value(json_object_get(
        json_array_get(
            json_object_get(json_object_get(document, "probe"), list), i),
        key));
}

TEST(test_result_probe_keeps_the_best_of_each_figure)
{
    json_auto_t *document = json_object();
    add(document, record(links(4, 0.5, 30), links(3, 0.75, 40)));
    add(document, record(links(5, 0.25, 20), links(1, 0.1, 90)));
    ck_assert_double_eq(figure(document, "nodes", 0, "copy_gbytes_per_s"), 5);
    ck_assert_double_eq(figure(document, "pairs", 0, "gbytes_per_s"), 0.75);
    ck_assert_double_eq(figure(document, "pairs", 0, "latency_us"), 20);
    ck_assert_uint_eq(json_array_size(json_at(document, "probe.pairs")), 1);
}

TEST(test_result_probe_tells_nodes_and_directions_apart)
{
    json_t *document = json_object(), *other = links(9, 0.1, 10);
    json_object_set_new(json_at(other, "nodes[0]"), "host", json_string("b"));
    json_object_set_new(json_at(other, "pairs[0]"), "from", json_string("c"));
    add(document, record(links(4, 0.5, 30), other));
    ck_assert_double_eq(figure(document, "nodes", 0, "copy_gbytes_per_s"), 4);
    ck_assert_double_eq(figure(document, "nodes", 1, "copy_gbytes_per_s"), 9);
    ck_assert_double_eq(figure(document, "pairs", 1, "latency_us"), 10);
    json_decref(document);
}

/* Small buffers stay in a cache, and a GPU's memory is another. */
TEST(test_result_probe_tells_sizes_of_buffers_apart)
{
    json_auto_t *document = json_object();
    json_t *small = record(links(40, 0.5, 30), links(3, 0.75, 40));
    json_object_set_new(json_at(small, "bound.probe"), "copy_bytes",
                        json_integer(1 << 20));
    add(document, small);
    add(document, record(links(5, 0.25, 20), links(1, 0.1, 90)));
    ck_assert_double_eq(figure(document, "nodes", 0, "copy_gbytes_per_s"), 40);
    ck_assert_double_eq(figure(document, "nodes", 0, "copy_bytes"), 1 << 20);
    ck_assert_double_eq(figure(document, "nodes", 1, "copy_gbytes_per_s"), 5);
}

TEST(test_result_probe_of_a_scenario_without_one_changes_nothing)
{
    json_auto_t *document = json_pack("{s:n}", "probe");
    add(document, json_pack("{s:{s:n}}", "bound", "probe"));
    add(document, record(json_pack("{s:[], s:[]}", "nodes", "pairs"),
                         json_pack("{s:[], s:[]}", "nodes", "pairs")));
    ck_assert(json_is_null(json_object_get(document, "probe")));
}
