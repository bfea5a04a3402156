/* The modules that are opened at run time. */
#ifndef RF_TRANSPORT_INFO_MODULE_FILES_H
#define RF_TRANSPORT_INFO_MODULE_FILES_H

#define RF_MODULE_FILE "refit-cuda.so"
#define RF_UCX_MODULE_FILE "refit-ucx.so"

#endif
