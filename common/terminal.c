/* The terminal's width. See terminal.h. */
#include "common/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define USUAL_COLUMNS 80
#define MOST_COLUMNS 100000 /* no terminal has more */

/* 0 when unset or invalid. */
static size_t columns_variable(void)
{
    const char *text = getenv("COLUMNS");
    char *end;
    long value;
    if (text == NULL) {
        return 0;
    }
    value = strtol(text, &end, 10);
    return end != text && *end == '\0' && value > 0 && value <= MOST_COLUMNS
               ? (size_t)value
               : 0;
}

size_t rf_terminal_columns(int fd)
{
    struct winsize size = {0};
    size_t columns;
    if (!isatty(fd)) {
        return 0;
    }
    columns = columns_variable();
    if (columns == 0 && ioctl(fd, TIOCGWINSZ, &size) == 0) {
        columns = size.ws_col;
    }
    return columns > 0 ? columns : USUAL_COLUMNS;
}
