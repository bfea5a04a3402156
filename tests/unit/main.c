/* Runs every suite of one folder in one runner. CK_RUN_SUITE picks one,
 * CK_TAP_LOG_FILE_NAME writes TAP for the summary of `make check`. */
#include <check.h>
#include <stdlib.h>

typedef Suite *(*suite_fn)(void);
extern const suite_fn rf_suites[];

int main(void)
{
    SRunner *runner = srunner_create(NULL);
    int failed;
    /* Check's own 4 s are not enough where many processes run. */
    setenv("CK_DEFAULT_TIMEOUT", "180", 0);
    for (const suite_fn *suite = rf_suites; *suite != NULL; suite++) {
        srunner_add_suite(runner, (*suite)());
    }
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
