/* Says how many tests have passed (tests/arm64/unit.h), and with which
 * instructions, which have to be those of arm64. */
#include <stdio.h>
#include <string.h>

#include "tests/arm64/unit.h"
#include "transport/delta/delta_scan.h"

int tests_passed;

int main(void)
{
    printf("%d tests passed with %s\n", tests_passed, rf_delta_instructions());
    return tests_passed == 0 || strcmp(rf_delta_instructions(), "neon") != 0;
}
