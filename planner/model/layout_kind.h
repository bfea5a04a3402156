/* Kinds of layouts, by name. */
#ifndef RF_PLANNER_MODEL_LAYOUT_KIND_H
#define RF_PLANNER_MODEL_LAYOUT_KIND_H

enum rf_layout_kind {
    RF_LAYOUT_MEGATRON,
    RF_LAYOUT_HF,
    RF_LAYOUT_VLLM,
    RF_LAYOUT_SGLANG,
    RF_LAYOUT_FSDP,  /* FSDP2: dim-0 chunks */
    RF_LAYOUT_FSDP1, /* flat shards of whole units */
    RF_LAYOUT_ZERO3, /* DeepSpeed ZeRO-3: flat shards of each tensor */
    RF_LAYOUT_SPEC,  /* Alpa's mesh axes */
};

const char *rf_layout_kind_name(enum rf_layout_kind layout);
/* Names of the layouts in enum order, NULL-terminated. */
extern const char *const rf_layout_kind_names[];

#endif
