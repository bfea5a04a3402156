/* How wide the output may be. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/terminal.h"
#include "tests/unit/unit.h"

/* The descriptor of a terminal of so many columns; *master is to be closed. */
static int open_terminal(unsigned short columns, int *master)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    int fd;
    *master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_int_ge(*master, 0);
    ck_assert_int_eq(grantpt(*master), 0);
    ck_assert_int_eq(unlockpt(*master), 0);
    fd = open(ptsname(*master), O_RDWR | O_NOCTTY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ioctl(fd, TIOCSWINSZ, &size), 0);
    return fd;
}

TEST(test_terminal_columns_are_of_the_variable_or_the_terminal)
{
    static const struct {
        const char *variable;
        unsigned short terminal;
        size_t columns;
    } cases[] = {
        {NULL, 132, 132}, {NULL, 0, 80},    {"60", 132, 60}, {"", 132, 132},
        {"0", 132, 132},  {"-5", 132, 132}, {"9x", 0, 80},   {"60", 0, 60},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        int master, fd = open_terminal(cases[i].terminal, &master);
        if (cases[i].variable != NULL) {
            setenv("COLUMNS", cases[i].variable, 1);
        } else {
            unsetenv("COLUMNS");
        }
        ck_assert_uint_eq(rf_terminal_columns(fd), cases[i].columns);
        close(fd);
        close(master);
    }
}

TEST(test_terminal_columns_are_none_without_a_terminal)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    setenv("COLUMNS", "60", 1);
    ck_assert_uint_eq(rf_terminal_columns(ends[1]), 0);
    ck_assert_uint_eq(rf_terminal_columns(-1), 0);
    close(ends[0]);
    close(ends[1]);
}
