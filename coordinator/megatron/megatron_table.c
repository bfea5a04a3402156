/*
 * Megatron-LM's flags, as megatron/training/arguments.py and its refit
 * benchmark define them. See megatron_table.h.
 */
#include "coordinator/megatron/megatron_table.h"

#include <stddef.h>

#define COUNT(name, fallback)                                                  \
    {                                                                          \
        name, RF_MEGATRON_COUNT, NULL, fallback                                \
    }
#define SIZE(name, fallback)                                                   \
    {                                                                          \
        name, RF_MEGATRON_SIZE, NULL, fallback                                 \
    }
#define SWITCH(name)                                                           \
    {                                                                          \
        name, RF_MEGATRON_SWITCH, NULL, NULL                                   \
    }
#define WORD(name, words, fallback)                                            \
    {                                                                          \
        name, RF_MEGATRON_WORD, words, fallback                                \
    }
#define REQUIRED rf_megatron_required
#define REFUSED(name, why)                                                     \
    {                                                                          \
        name, RF_MEGATRON_REFUSED, why, NULL                                   \
    }
#define REFUSED_UNLESS(name, value, why)                                       \
    {                                                                          \
        name, RF_MEGATRON_REFUSED, why, value                                  \
    }

#define NOT_GPT "models other than GPT are not supported"
#define NOT_COUNTED "the weights it adds are not supported"
#define SHARDED "describe such a side in a cluster file, with layout fsdp"
#define QUANTIZED "weights of that type are not supported"

const char rf_megatron_required[] = "required";

const struct rf_megatron_flag rf_megatron_flags[] = {
    /* the benchmark's own */
    WORD("refit-mode", "collocated non-collocated", REQUIRED),
    WORD("refit-method", "nccl gloo nvshmem", "nvshmem"),
    COUNT("num-benchmark-warmup", "2"),
    SIZE("num-benchmark-iterations", "10"),

    /* meshes */
    SIZE("tensor-model-parallel-size", "1"),
    SIZE("pipeline-model-parallel-size", "1"),
    SIZE("expert-model-parallel-size", "1"),
    SIZE("expert-tensor-parallel-size", "tensor parallel size"),
    SIZE("context-parallel-size", "1"),
    SIZE("num-virtual-stages-per-pipeline-rank", "1"),
    SIZE("num-layers-per-virtual-pipeline-stage", "all of the stage"),
    SIZE("decoder-first-pipeline-num-layers", "same as others"),
    SIZE("decoder-last-pipeline-num-layers", "same as others"),
    SWITCH("account-for-embedding-in-pipeline-split"),
    SWITCH("account-for-loss-in-pipeline-split"),
    {"pipeline-model-parallel-layout", RF_MEGATRON_TEXT, NULL, "even stages"},
    SIZE("rl-inference-tensor-model-parallel-size", "1"),
    SIZE("rl-inference-pipeline-model-parallel-size", "1"),
    SIZE("rl-inference-expert-model-parallel-size", "1"),
    SIZE("rl-inference-expert-tensor-model-parallel-size",
         "tensor parallel size"),

    /* the model */
    SIZE("num-layers", REQUIRED),
    SIZE("hidden-size", REQUIRED),
    SIZE("ffn-hidden-size", "4 x hidden size; swiglu: 8/3 x, multiple of 64"),
    SIZE("num-attention-heads", REQUIRED),
    SIZE("kv-channels", "hidden size / heads"),
    SWITCH("group-query-attention"),
    SIZE("num-query-groups", "1"),
    SIZE("seq-length", REQUIRED),
    SIZE("max-position-embeddings", REQUIRED),
    WORD("position-embedding-type", "learned_absolute rope mrope yarn none",
         "learned_absolute"),
    SWITCH("use-rotary-position-embeddings"),
    SWITCH("no-position-embedding"),
    SIZE("vocab-size", "50257"),
    SIZE("make-vocab-size-divisible-by", "128"),
    WORD("normalization", "LayerNorm RMSNorm", "LayerNorm"),
    SWITCH("swiglu"),
    SWITCH("quick-geglu"),
    SWITCH("disable-bias-linear"),
    SWITCH("add-qkv-bias"),
    SWITCH("untie-embeddings-and-output-weights"),
    SWITCH("qk-layernorm"),
    SWITCH("post-self-attn-layernorm"),
    SWITCH("post-mlp-layernorm"),
    SWITCH("attention-output-gate"),
    COUNT("mtp-num-layers", "0"),
    {"spec", RF_MEGATRON_TEXT, NULL, "GPT"},
    COUNT("linear-num-key-heads", "from the spec"),
    COUNT("linear-num-value-heads", "from the spec"),
    COUNT("linear-key-head-dim", "from the spec"),
    COUNT("linear-value-head-dim", "from the spec"),
    COUNT("linear-conv-kernel-dim", "from the spec"),
    SWITCH("multi-latent-attention"),
    COUNT("q-lora-rank", "none"),
    SIZE("kv-lora-rank", "32"),
    SIZE("qk-head-dim", "128"),
    COUNT("qk-pos-emb-head-dim", "64"),
    SIZE("v-head-dim", "128"),
    COUNT("num-experts", "none"),
    SIZE("moe-ffn-hidden-size", "ffn-hidden-size"),
    COUNT("moe-shared-expert-intermediate-size", "none"),
    SWITCH("moe-shared-expert-gate"),
    SWITCH("moe-router-enable-expert-bias"),
    {"moe-layer-freq", RF_MEGATRON_PATTERN, NULL, "1"},
    SWITCH("bf16"),
    SWITCH("fp16"),
    WORD("transformer-impl", "transformer_engine local inference_optimized",
         "transformer_engine"),

    /* flags that would change a refit in ways not described here */
    REFUSED("yaml-cfg", "give its settings as flags"),
    REFUSED("use-checkpoint-args", "give the model's sizes as flags"),
    REFUSED("use-mp-args-from-checkpoint-args", "give the sizes as flags"),
    REFUSED("use-legacy-models", NOT_GPT),
    REFUSED("is-hybrid-model", NOT_GPT),
    REFUSED("hybrid-attention-ratio", NOT_GPT),
    REFUSED("hybrid-mlp-ratio", NOT_GPT),
    REFUSED("hybrid-override-pattern", NOT_GPT),
    REFUSED("retro-add-retriever", NOT_GPT),
    REFUSED("experimental-attention-variant", NOT_GPT),
    REFUSED("heterogeneous-layers-config-path", NOT_GPT),
    REFUSED("heterogeneous-layers-config-encoded-json", NOT_GPT),
    REFUSED("encoder-num-layers", "give --num-layers"),
    REFUSED("decoder-num-layers", "give --num-layers"),
    REFUSED("model-parallel-size", "give --tensor-model-parallel-size"),
    REFUSED("moe-extended-tp", "give --expert-tensor-parallel-size"),
    REFUSED("moe-use-legacy-grouped-gemm",
            "transposed experts are not supported"),
    REFUSED("moe-latent-size", NOT_COUNTED),
    REFUSED_UNLESS("softmax-type", "vanilla", NOT_COUNTED),
    REFUSED_UNLESS("vocab-extra-ids", "0", "add them to --vocab-size"),
    REFUSED("padded-vocab-size", "give --vocab-size, before padding"),
    REFUSED_UNLESS("tokenizer-type", "NullTokenizer",
                   "remove it and give --vocab-size, its number of tokens"),
    REFUSED("use-tp-pp-dp-mapping",
            "ranks are numbered in the order tp-cp-ep-dp-pp"),
    REFUSED("use-megatron-fsdp", SHARDED),
    REFUSED("use-torch-fsdp2", SHARDED),
    REFUSED("fp8-param-gather", QUANTIZED),
    REFUSED("fp4-param-gather", QUANTIZED),
    {NULL, RF_MEGATRON_SWITCH, NULL, NULL},
};

const char *const rf_megatron_idle[] = {
    /* batches, steps, data */
    "micro-batch-size", "batch-size", "global-batch-size", "rampup-batch-size",
    "decrease-batch-size-if-needed", "train-iters", "train-samples",
    "train-sync-interval", "data-path", "train-data-path", "valid-data-path",
    "test-data-path", "data-args-path", "per-split-data-args-path",
    "data-cache-path", "split", "mock-data", "num-workers", "dataloader-type",
    "num-dataset-builder-threads", "reset-position-ids", "reset-attention-mask",
    "eod-mask-loss", "no-mmap-bin-files",
    "no-create-attention-mask-in-dataloader", "sft",
    "sft-tokenizer-prompt-format", "tokenizer-model", "tokenizer-metadata",
    "legacy-tokenizer", "tokenizer-hf-include-special-tokens",
    "no-use-tokenizer-model-from-checkpoint-args", "trust-remote-code",
    "tiktoken-pattern", "tiktoken-num-special-tokens",
    "tiktoken-special-tokens", "vocab-file", "merge-file", "eval-iters",
    "eval-interval", "full-validation", "multiple-validation-sets",
    "skip-train", "test-mode", "exit-interval", "exit-duration-in-mins",
    "exit-signal-handler", "iterations-to-skip",

    /* optimizer and numbers of training */
    "optimizer", "optimizer-cpu-offload", "optimizer-offload-fraction",
    "overlap-cpu-optimizer-d2h-h2d", "use-torch-optimizer-for-cpu-offload",
    "no-pin-cpu-grads", "no-pin-cpu-params", "use-distributed-optimizer",
    "num-distributed-optimizer-instances", "use-precision-aware-optimizer",
    "main-grads-dtype", "main-params-dtype", "exp-avg-dtype",
    "exp-avg-sq-dtype", "lr", "min-lr", "lr-decay-style", "lr-decay-iters",
    "lr-decay-samples", "lr-wsd-decay-style", "lr-wsd-decay-iters",
    "lr-wsd-decay-samples", "lr-warmup-fraction", "lr-warmup-iters",
    "lr-warmup-samples", "lr-warmup-init", "decoupled-lr", "decoupled-min-lr",
    "override-opt_param-scheduler", "override-opt-param-scheduler",
    "use-checkpoint-opt_param-scheduler", "use-checkpoint-opt-param-scheduler",
    "weight-decay", "start-weight-decay", "end-weight-decay",
    "weight-decay-incr-style", "clip-grad", "adam-beta1", "adam-beta2",
    "adam-eps", "sgd-momentum", "attention-dropout", "hidden-dropout", "seed",
    "data-parallel-random-init", "init-method-std", "embedding-init-method-std",
    "init-method-xavier-uniform", "no-initialization", "use-cpu-initialization",
    "init-model-with-meta-device", "loss-scale", "initial-loss-scale",
    "min-loss-scale", "loss-scale-window", "hysteresis",
    "accumulate-allreduce-grads-in-fp32", "grad-reduce-in-bf16",
    "attention-softmax-in-fp32", "fp32-residual-connection",
    "apply-query-key-layer-scaling", "fp16-lm-cross-entropy",
    "disable-bf16-reduced-precision-matmul", "fp8-format", "fp8-recipe",
    "fp8-margin", "fp8-amax-history-len", "fp8-amax-compute-algo",
    "no-fp8-wgrad", "first-last-layers-bf16", "num-layers-at-start-in-bf16",
    "num-layers-at-end-in-bf16", "fp4-format", "fp4-recipe",
    "calculate-per-token-loss", "no-check-for-nan-in-loss-and-grad",
    "check-for-spiky-loss", "check-for-large-grads", "deterministic-mode",

    /* how a step computes */
    "attention-backend", "use-flash-attn", "no-masked-softmax-fusion",
    "no-bias-gelu-fusion", "no-bias-swiglu-fusion", "no-bias-dropout-fusion",
    "no-rope-fusion", "no-persist-layer-norm",
    "no-gradient-accumulation-fusion", "use-fused-weighted-squared-relu",
    "use-te-activation-func", "use-mcore-models", "cross-entropy-loss-fusion",
    "cross-entropy-fusion-impl", "openai-gelu", "squared-relu",
    "activation-func-clamp-value", "glu-linear-offset", "onnx-safe",
    "norm-epsilon", "apply-layernorm-1p",
    "apply-residual-connection-post-layernorm", "qk-l2-norm", "window-size",
    "window-attn-skip-freq", "rope-type", "rotary-base", "rotary-percent",
    "rotary-interleaved", "rotary-scaling-factor",
    "rotary-seq-len-interpolation-factor", "use-rope-scaling",
    "rope-scaling-factor", "no-rope-freq", "mrope-section", "mscale",
    "mscale-all-dim", "cache-mla-latents", "mtp-loss-scaling-factor",
    "recompute-activations", "recompute-granularity", "recompute-method",
    "recompute-num-layers", "recompute-modules", "checkpoint-activations",
    "distribute-saved-activations", "cpu-offloading-num-layers",
    "no-clone-scatter-output-in-embedding", "te-rng-tracker",
    "inference-rng-tracker", "enable-cuda-graph", "external-cuda-graph",
    "cuda-graph-impl", "cuda-graph-scope", "cuda-graph-warmup-steps",
    "enable-experimental", "manual-gc", "manual-gc-interval",
    "no-manual-gc-eval", "empty-unused-memory-level",

    /* mixtures of experts */
    "moe-router-topk", "moe-router-dtype", "moe-router-fusion",
    "moe-router-load-balancing-type", "moe-router-score-function",
    "moe-router-pre-softmax", "moe-router-num-groups", "moe-router-group-topk",
    "moe-router-topk-scaling-factor", "moe-router-bias-update-rate",
    "moe-router-force-load-balancing", "moe-router-padding-for-fp8",
    "moe-aux-loss-coeff", "moe-z-loss-coeff", "moe-input-jitter-eps",
    "moe-per-layer-logging", "moe-token-dispatcher-type", "moe-enable-deepep",
    "moe-deepep-num-sms", "moe-permute-fusion", "moe-expert-capacity-factor",
    "moe-pad-expert-input-to-capacity", "moe-token-drop-policy",
    "moe-apply-probs-on-input", "moe-grouped-gemm", "moe-shared-expert-overlap",
    "moe-layer-recompute", "moe-pad-experts-for-cuda-graph-inference",
    "overlap-moe-expert-parallel-comm", "delay-wgrad-compute",

    /* communication */
    "sequence-parallel", "cp-comm-type", "hierarchical-context-parallel-sizes",
    "distributed-backend", "distributed-timeout-minutes",
    "distributed-timeout-seconds-after-init", "disable-gloo-process-groups",
    "nccl-communicator-config-path", "high-priority-stream-groups",
    "local-rank", "initialize-socket-comms", "lazy-mpu-init",
    "overlap-grad-reduce", "overlap-param-gather",
    "overlap-param-gather-with-optimizer-step", "no-align-grad-reduce",
    "no-align-param-gather", "ddp-num-buckets", "ddp-bucket-size",
    "ddp-average-in-collective", "ddp-pad-buckets-for-high-nccl-busbw",
    "defer-embedding-wgrad-compute", "wgrad-deferral-limit",
    "no-overlap-p2p-communication", "overlap-p2p-communication-warmup-flush",
    "microbatch-group-size-per-virtual-pipeline-stage",
    "no-scatter-gather-tensors-in-pipeline",
    "pipeline-model-parallel-comm-backend", "use-ring-exchange-p2p",
    "use-nccl-ub", "use-sharp", "tp-comm-overlap", "tp-comm-overlap-cfg",
    "tp-comm-overlap-rs-dgrad", "disable-tp-comm-overlap-ag",
    "disable-tp-comm-overlap-rs", "disable-tp-comm-bulk-dgrad",
    "disable-tp-comm-bulk-wgrad", "disable-tp-comm-split-ag",
    "disable-tp-comm-split-rs", "tp-comm-bootstrap-backend",
    "no-async-tensor-model-parallel-allreduce", "nvshmem-scheduling-algorithm",

    /* checkpoints: a refit's weights are made from a formula */
    "save", "save-interval", "persistent-save-interval", "save-retain-interval",
    "load", "ckpt-step", "ckpt-format", "dist-ckpt-format", "use-dist-ckpt",
    "dist-ckpt-strictness", "ckpt-fully-parallel-save",
    "ckpt-fully-parallel-load", "auto-detect-ckpt-format", "async-save",
    "finetune", "pretrained-checkpoint", "exit-on-missing-checkpoint",
    "no-save-optim", "no-save-rng", "no-load-optim", "no-load-rng",
    "no-load-checkpoint",

    /* logs and tools */
    "log-interval", "log-params-norm", "log-num-zeros-in-grad",
    "log-throughput", "log-progress", "log-energy", "log-straggler",
    "disable-straggler-on-startup", "straggler-minmax-count",
    "log-timers-to-tensorboard", "log-memory-to-tensorboard",
    "log-validation-ppl-to-tensorboard", "log-world-size-to-tensorboard",
    "no-log-loss-scale-to-tensorboard", "timing-log-level", "timing-log-option",
    "no-barrier-with-level-1-timing", "tensorboard-dir",
    "tensorboard-log-interval", "tensorboard-queue-size", "wandb-project",
    "wandb-entity", "wandb-exp-name", "wandb-save-dir", "logging-level",
    "config-logger-dir", "profile", "profile-step-start", "profile-step-end",
    "profile-ranks", "use-pytorch-profiler", "record-memory-history",
    "memory-snapshot-path", "no-one-logger", "rerun-mode", "disable-msc",

    /* rollouts */
    "perform-rl-step", "rl-prompts-per-eval", "rl-partial-rollouts",
    "rl-use-sequence-packing", "rl-sequence-packing-bin-size",
    "rl-sequence-packing-algo", "rl-offload-optimizer-during-inference",
    "rl-verify-model-weights-swap", "rl-inference-logprobs-is-correction",
    "rl-importance-sampling-truncation-coef", "grpo-prompts-per-step",
    "grpo-group-size", "grpo-iterations", "grpo-clamp-eps-lower",
    "grpo-clamp-eps-upper", "grpo-kl-beta", "grpo-entropy-term-weight",
    "grpo-default-temperature", "grpo-default-top-p",
    "langrl-inference-server-type",
    "langrl-inference-server-conversation-template", "langrl-env-config",
    "env-config", "flash-decode", "inference-max-requests",
    "inference-max-seq-length", "inference-max-batch-size",
    "inference-num-cuda-graphs", "inference-buffer-size-gb",
    "inference-dynamic-batching", "inference-dynamic-batching-buffer-size-gb",
    "inference-dynamic-batching-num-cuda-graphs",
    "inference-dynamic-batching-unified-memory-level",
    "decode-only-cuda-graphs", "disable-chunked-prefill",

    /* also given by Megatron Bridge, verl and slime */
    "moe-flex-dispatcher-backend", "moe-flex-dispatcher-num-sms",
    "moe-hybridep-num-sms", "moe-a2a-overlap",
    "moe-router-padding-for-quantization", "moe-expert-rank-capacity-factor",
    "moe-permute-fusion-into-hybridep", "offload-modules",
    "fine-grained-activation-offloading", "cpu-offloading",
    "cpu-offloading-weights", "disable-parameter-transpose-cache",
    "use-transformer-engine-op-fuser", "apply-rope-fusion",
    "fused-single-qkv-rope", "bias-activation-fusion", "bias-dropout-fusion",
    "masked-softmax-fusion", "gradient-accumulation-fusion",
    "persist-layer-norm", "deallocate-pipeline-outputs", "variable-seq-lengths",
    "pipeline-dtype", "params-dtype", "qk-clip",
    "yarn-original-max-position-embeddings", "yarn-rotary-scaling-factor",
    "yarn-mscale", "yarn-mscale-all-dim", "yarn-beta-fast", "yarn-beta-slow",
    "cuda-graph-modules", "high-priority-a2a-comm-stream",
    "microbatch-group-size-per-vp-stage", "overlap-p2p-comm", "batch-p2p-comm",
    "allgather-cp", "use-gated-attention", NULL};
