/* Megatron-LM's flags and their handling here. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_TABLE_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_TABLE_H

enum rf_megatron_kind {
    RF_MEGATRON_COUNT,   /* a whole number */
    RF_MEGATRON_SIZE,    /* a whole number of at least 1 */
    RF_MEGATRON_SWITCH,  /* without a value */
    RF_MEGATRON_WORD,    /* one of `words` */
    RF_MEGATRON_PATTERN, /* a choice of layers, see megatron_pattern.h */
    RF_MEGATRON_TEXT,    /* any word; further ones are dropped */
    RF_MEGATRON_REFUSED, /* refused, see `words`; takes any values */
};

struct rf_megatron_flag {
    const char *name; /* without dashes */
    enum rf_megatron_kind kind;
    const char *words;    /* separated by blanks; refused: the reason */
    const char *fallback; /* the default, for the help; refused: the one
                             value that is accepted, or NULL */
};

/* The fallback of required flags. */
extern const char rf_megatron_required[];

/* Ends with an entry without a name. */
extern const struct rf_megatron_flag rf_megatron_flags[];
/* Flags that affect no byte of a refit, whatever their values. Ends with
 * NULL. */
extern const char *const rf_megatron_idle[];

#endif
