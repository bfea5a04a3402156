/*
 * Texts that count up, as the names and addresses of a cluster's nodes mostly
 * do: gpu-007, gpu-008, …
 */
#ifndef RF_TRANSPORT_CONTROL_COUNTED_H
#define RF_TRANSPORT_CONTROL_COUNTED_H

#include <stdbool.h>
#include <stdint.h>

/* `text` with the last number in it greater by so many, with zeros in front
 * where it had them; free() it. NULL where there is no number, or one of more
 * than 18 digits. */
char *rf_counted(const char *text, uint32_t by);

/* Whether `text` is that of `first`. */
bool rf_is_counted(const char *text, const char *first, uint32_t by);

#endif
