/* Cleaning of text from outside. See text.h. */
#include "common/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static bool is_control(uint32_t code)
{
    return (code < ' ' && code != '\t' && code != '\n') ||
           (code >= 0x7f && code < 0xa0);
}

/* Bytes of the character at `text`, 0 when it may not be shown. A NUL is no
 * continuation byte, so nothing behind the end is read. */
static size_t good_bytes(const uint8_t *text)
{
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = text[0] < 0x80             ? 1
               : (text[0] & 0xe0) == 0xc0 ? 2
               : (text[0] & 0xf0) == 0xe0 ? 3
               : (text[0] & 0xf8) == 0xf0 ? 4
                                          : 0;
    uint32_t code = n == 1 ? text[0] : text[0] & (0x7fU >> n);
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3f);
    }
    return n == 0 || code < lowest[n] || code > 0x10ffff ||
                   (code >= 0xd800 && code < 0xe000) || is_control(code)
               ? 0
               : n;
}

void rf_text_clean(char *text)
{
    while (*text != '\0') {
        size_t n = good_bytes((const uint8_t *)text);
        if (n == 0) {
            *text = '?';
            n = 1;
        }
        text += n;
    }
}
