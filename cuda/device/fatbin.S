/* The kernels' fat binary inside the module. */
    .section .rodata
    .global rf_cuda_fatbin
    .hidden rf_cuda_fatbin
    .balign 16
rf_cuda_fatbin:
    .incbin "kernels.fatbin"
    .section .note.GNU-stack,"",@progbits
