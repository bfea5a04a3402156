/* Runs every suite of one folder in one runner, or with an argument like 1of2
 * every second one from the first on. CK_RUN_SUITE picks one,
 * CK_TAP_LOG_FILE_NAME writes TAP for the summary of `make check`. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

typedef Suite *(*suite_fn)(void);
extern const suite_fn rf_suites[];

int main(int argc, char **argv)
{
    SRunner *runner = srunner_create(NULL);
    size_t part = 1;
    size_t parts = 1;
    int failed;
    if (argc > 1 && (sscanf(argv[1], "%zuof%zu", &part, &parts) != 2 ||
                     part < 1 || part > parts)) {
        fprintf(stderr, "%s: \"%s\" is no part like 1of2\n", argv[0], argv[1]);
        return EXIT_FAILURE;
    }
    /* Check's own 4 s are not enough where many processes run. */
    setenv("CK_DEFAULT_TIMEOUT", "180", 0);
    for (size_t i = 0; rf_suites[i] != NULL; i++) {
        if (i % parts == part - 1)
            srunner_add_suite(runner, rf_suites[i]());
    }
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
