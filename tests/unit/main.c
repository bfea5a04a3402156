/* Runs the tests of one folder, or those that a pattern as of a shell names
 * (`unit-planner 'test_box_*'`), or with an argument like 1of2 every second one
 * from the first on. CK_RUN_SUITE picks one, CK_TAP_LOG_FILE_NAME writes
 * TAP for the summary of `make check`. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "tests/unit/unit.h"

#define MARKED_EVERY_NS (10 * RF_NS_PER_MS)

/* The linker's names for both ends of the section. */
extern const struct unit_entry *const __start_unit_entries[];
extern const struct unit_entry *const __stop_unit_entries[];

struct choice {
    const char *pattern; /* of tests' names */
    size_t part, parts;
};

static int by_place(const void *a, const void *b)
{
    const struct unit_entry *const *x = a, *const *y = b;
    const int order = strcmp((*x)->test.file, (*y)->test.file);
    return order != 0 ? order : (*x)->test.line - (*y)->test.line;
}

/* Leaves out tests that are not chosen. */
static size_t keep_chosen(const struct choice *choice,
                          const struct unit_entry **all, size_t n)
{
    size_t kept = 0, named = 0;
    for (size_t i = 0; i < n; i++) {
        const TTest *test = &all[i]->test;
        if (test->fn == NULL || (fnmatch(choice->pattern, test->name, 0) == 0 &&
                                 named++ % choice->parts == choice->part - 1)) {
            all[kept++] = all[i];
        }
    }
    return kept;
}

/* "box" of "tests/unit/planner/layout/test_box.c", to be freed: Check keeps the
 * pointer. */
static char *suite_name(const char *file)
{
    const char *name = strrchr(file, '/') + 1 + strlen("test_");
    return strndup(name, strcspn(name, "."));
}

static TCase *begin_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);
    suite_add_tcase(suite, tests);
    return tests;
}

/* The suite of one file. */
static Suite *make_suite(const char *name, const struct unit_entry **at,
                         size_t n)
{
    Suite *suite = suite_create(name);
    TCase *tests = begin_case(suite, name);
    bool rest = true;
    for (size_t i = 0; i < n && rest; i++) {
        if (at[i]->add == NULL) {
            tests = begin_case(suite, at[i]->test.name);
        } else {
            rest = at[i]->add(tests, &at[i]->test);
        }
    }
    return suite;
}

/* Runs tests, which are in order: how many failed, or -1: none ran. */
static int run(const struct unit_entry **all, size_t n)
{
    SRunner *runner = srunner_create(NULL);
    char **names = calloc(n, sizeof(*names));
    size_t end, n_suites = 0;
    int failed;
    for (size_t i = 0; i < n; i = end) {
        bool any = false;
        for (end = i;
             end < n && strcmp(all[end]->test.file, all[i]->test.file) == 0;
             end++) {
            any |= all[end]->test.fn != NULL;
        }
        if (any) {
            names[n_suites] = suite_name(all[i]->test.file);
            srunner_add_suite(runner,
                              make_suite(names[n_suites++], &all[i], end - i));
        }
    }
    srunner_run_all(runner, CK_ENV);
    failed =
        srunner_ntests_run(runner) > 0 ? srunner_ntests_failed(runner) : -1;
    srunner_free(runner);
    for (size_t i = 0; i < n_suites; i++) {
        free(names[i]);
    }
    free(names);
    return failed;
}

/* At every assertion Check notes the line in a file, for tests that crash or
 * hang. Every 10 ms is enough: assertions in a loop would take their time for
 * nothing else. */
void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line)
{
    static _Atomic int64_t due_ns; /* assertions may be in threads */
    struct timespec coarse;
    int64_t now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &coarse);
    now = coarse.tv_sec * RF_NS_PER_S + coarse.tv_nsec;
    if (now >= due_ns) {
        due_ns = now + MARKED_EVERY_NS;
        __real__mark_point(file, line);
    }
}

int main(int argc, char **argv)
{
    const size_t n = (size_t)(__stop_unit_entries - __start_unit_entries);
    const struct unit_entry **all = calloc(n, sizeof(*all));
    struct choice choice = {"*", 1, 1};
    int failed;
    if (argc > 1 &&
        (sscanf(argv[1], "%zuof%zu", &choice.part, &choice.parts) != 2 ||
         choice.part < 1 || choice.part > choice.parts)) {
        choice = (struct choice){argv[1], 1, 1};
    }
    /* Check's own 4 s are not enough where many processes run. */
    setenv("CK_DEFAULT_TIMEOUT", "180", 0);
    memcpy(all, __start_unit_entries, n * sizeof(*all));
    qsort(all, n, sizeof(*all), by_place);
    failed = run(all, keep_chosen(&choice, all, n));
    free(all);
    if (failed < 0) {
        fprintf(stderr, "%s: no test ran\n", argv[0]);
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
