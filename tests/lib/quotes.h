/* JSON in the source of a test, without a backslash before each quote. */
#ifndef RF_TESTS_LIB_QUOTES_H
#define RF_TESTS_LIB_QUOTES_H

/* `text` with a double quote for each single one: Q("{'tp': 2}"). Kept until
 * the process ends. */
const char *Q(const char *text);

#endif
