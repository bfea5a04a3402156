/* Text from outside (paths, peers, remote shells) before it is shown. */
#ifndef RF_COMMON_TEXT_H
#define RF_COMMON_TEXT_H

/*
 * Puts a '?' for every byte that is not part of valid UTF-8 (RFC 3629) and for
 * every control character but tab and newline, so that the text fits into JSON
 * and cannot move the cursor of a terminal. The length stays.
 */
void rf_text_clean(char *text);

#endif
