/*
 * The payloads of the control plane's messages
 * (transport/control/message_types.h) as structs. Each is described once, in
 * the form of transport/control/schema.h. Their use: docs/PROTOCOL.md.
 */
#ifndef RF_TRANSPORT_CONTROL_MESSAGE_FIELDS_H
#define RF_TRANSPORT_CONTROL_MESSAGE_FIELDS_H

#include "transport/control/message_types.h"
#include "transport/control/schema.h"

#define RF_MSG_NODES_MAX 4096
#define RF_MSG_RANKS_MAX (1 << 22)
#define RF_MSG_RANKS_LAST (RF_MSG_RANKS_MAX - 1)
#define RF_MSG_TEXT_MAX 4096
#define RF_MSG_BYTES_MAX INT64_MAX
#define RF_MSG_FILES_MAX 63 /* of `files` */
#define RF_MSG_TOPOLOGY_NICS_MAX 256
#define RF_MSG_INTERFACES_MAX 1024
/* Limit of a node's times. Converted to the clock of a node that booted later
 * they may be negative; the difference of two does not overflow. */
#define RF_MSG_CLOCK_MAX (INT64_MAX / 4)
#define RF_MSG_LONGEST_NS (INT64_C(30) * 24 * 3600 * 1000000000)
#define RF_MSG_TRACE_MAX 16384 /* events of a rank */
#define RF_MSG_TRACE_NUMBERS 5 /* of an event */
#define RF_MSG_RATE_MAX 1e6    /* GB/s */

/* --- Joining -------------------------------------------------------------- */

#define RF_CANDIDATE_FIELDS(F, S)                                              \
    F(S, TEXT, address, REQUIRED, 1, 255,                                      \
      "numeric address of the coordinator")                                    \
    F(S, U32, port, REQUIRED, 1, 65535, "its port")

#define RF_BOOT_LIMITS_FIELDS(F, S)                                            \
    F(S, U32, lease_period_ms, OPTIONAL, 1, 86400000, "between two leases")    \
    F(S, U32, lease_dead_ms, OPTIONAL, 1, 86400000,                            \
      "silence after which a peer is dead")                                    \
    F(S, U32, connect_back_ms, OPTIONAL, 1, 86400000,                          \
      "for a connection to a candidate")                                       \
    F(S, U32, abort_grace_ms, OPTIONAL, 1, 86400000,                           \
      "from ABORT until ranks are killed")                                     \
    F(S, U32, term_grace_ms, OPTIONAL, 1, 86400000,                            \
      "from SIGTERM until SIGKILL")

#define RF_SHARED_FIELDS(F, S)                                                 \
    F(S, TEXT, token, REQUIRED, 1, 64,                                         \
      "hexadecimal, part of the names of files")                               \
    F(S, U32, nodes, REQUIRED, 1, RF_MSG_NODES_MAX, "nodes of the run")        \
    F(S, TEXTS, folders, REQUIRED, 4096, RF_MSG_TEXT_MAX, "paths")             \
    F(S, TEXT, exported, OPTIONAL, 1, RF_MSG_TEXT_MAX,                         \
      "the one of these that `--export` names: made where it is missing")

#define RF_BIND_FIELDS(F, S)                                                   \
    F(S, TEXT, to, REQUIRED, 1, 15, "`numa` or `core`")                        \
    F(S, U32, slots, REQUIRED, 1, 1024, "of this node")

#define RF_BOOT_FIELDS(F, S)                                                   \
    F(S, U64S, protocol, REQUIRED, 2, 255, "oldest and newest version")        \
    F(S, TEXT, run_id, REQUIRED, 1, 64, "the run's, hexadecimal")              \
    F(S, U32, node, REQUIRED, 0, RF_MSG_NODES_MAX - 1,                         \
      "index of the node in `cluster.json`")                                   \
    F(S, TEXT, nonce, REQUIRED, 1, 128, "repeated by the banner")              \
    F(S, SECRET, psk, NULLABLE, 64, 64,                                        \
      "the node's key, 32 bytes in hexadecimal; null without a launcher")      \
    F(S, TEXT, identity, REQUIRED, 1, 128, "`RUN_ID/NODE`")                    \
    F(S, LIST, candidates, msg_candidate, 0, 64, "where to connect back to")   \
    F(S, TEXT, data_address, NULLABLE, 1, 255,                                 \
      "the node's address for data, if `cluster.json` gives one")              \
    F(S, U32, log_level, REQUIRED, 0, 9, "of messages that are shown")         \
    F(S, PAIRS, env, OPTIONAL, 1024, 65536, "environment of the ranks")        \
    F(S, MAYBE, limits, msg_boot_limits, 0, 0,                                 \
      "times in place of the usual ones")                                      \
    F(S, MAYBE, shared, msg_shared, 0, 0,                                      \
      "folders that nodes must share (method `disk`, `--export`)")             \
    F(S, TEXTS, untried, OPTIONAL, 4, 64,                                      \
      "methods that no scenario uses and that are slow to try")                \
    F(S, MAYBE, bind, msg_bind, 0, 0,                                          \
      "where ranks run (`launch.bind`); absent: where the agent may")          \
    F(S, SECRET, reach_key, OPTIONAL, 64, 64,                                  \
      "other nodes will try to reach this one with this key, 32 bytes in "     \
      "hexadecimal")

#define RF_NIC_FIELDS(F, S)                                                    \
    F(S, TEXT, name, REQUIRED, 1, 64, "interface")                             \
    F(S, I64, speed_mbit, NULLABLE, -1, INT64_MAX, "as the driver says")       \
    F(S, I64, mtu, NULLABLE, 0, INT64_MAX, "bytes")                            \
    F(S, TEXT, address, REQUIRED, 1, 64, "IPv4 or IPv6")                       \
    F(S, BOOL, physical, OPTIONAL, 0, 0,                                       \
      "a device, unlike bridges, tunnels and ends of veth")

#define RF_INTERFACE_FIELDS(F, S)                                              \
    F(S, TEXT, name, REQUIRED, 1, 80,                                          \
      "of the interface; of an RDMA port without one, `DEVICE/PORT`")          \
    F(S, TEXT, kind, REQUIRED, 1, 15,                                          \
      "`ethernet`, `infiniband`, `virtual`, or `rdma` without an interface")   \
    F(S, U64, speed_mbit, NULLABLE, 0, INT64_MAX, "as the driver says")        \
    F(S, TEXT, rdma, OPTIONAL, 1, 80,                                          \
      "the RDMA port of the same adapter port, `DEVICE/PORT`")

#define RF_GPU_FIELDS(F, S)                                                    \
    F(S, U32, index, REQUIRED, 0, 1023, "as CUDA counts")                      \
    F(S, TEXT, name, NULLABLE, 1, 255, "product")                              \
    F(S, TEXT, uuid, REQUIRED, 0, 255, "of the device")                        \
    F(S, TEXT, pci_bus_id, REQUIRED, 0, 63, "`DOMAIN:BUS:DEVICE.FUNCTION`")    \
    F(S, U64, memory_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX, "in all")           \
    F(S, TEXT, compute_capability, REQUIRED, 0, 15, "such as `9.0`")           \
    F(S, U32, multiprocessors, REQUIRED, 0, 65535, "SMs")                      \
    F(S, U32, processes, OPTIONAL, 0, INT32_MAX, "others that compute on it")  \
    F(S, U64, foreign_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,                    \
      "that these have in use")                                                \
    F(S, U64, ecc_errors, OPTIONAL, 0, INT64_MAX,                              \
      "that ECC could not correct since the driver was loaded")                \
    F(S, TEXT, slowed, OPTIONAL, 1, 127, "what takes clocks from it")          \
    F(S, BOOL, dmabuf, OPTIONAL, 0, 0,                                         \
      "adapters can reach its memory as a dma-buf")                            \
    F(S, TEXT, why, OPTIONAL, 1, 255, "why no method can use it")

#define RF_RDMA_FIELDS(F, S)                                                   \
    F(S, U32, adapters, REQUIRED, 0, 65535, "in /sys/class/infiniband")        \
    F(S, BOOL, verbs, REQUIRED, 0, 0,                                          \
      "a /dev/infiniband/uverbs* can be opened")                               \
    F(S, BOOL, peermem, REQUIRED, 0, 0, "nvidia-peermem is loaded")

#define RF_NUMA_FIELDS(F, S)                                                   \
    F(S, U32, number, REQUIRED, 0, 65535, "the kernel's")                      \
    F(S, TEXT, cpus, REQUIRED, 1, RF_MSG_TEXT_MAX,                             \
      "its processors that the worker may use, such as `0-55,112-167`")

/* The place of a device, as the kernel names it below /sys. */
#define RF_PCI_FIELDS(F, S)                                                    \
    F(S, TEXT, path, REQUIRED, 1, 1023,                                        \
      "addresses of bridges and device from the root, with slashes")           \
    F(S, U32, numa_node, NULLABLE, 0, 65535, "nearest to it")                  \
    F(S, REAL, gtransfers_per_s, NULLABLE, 0, 1e6,                             \
      "of each lane of its link now; idle GPUs slow it down")                  \
    F(S, U32, lanes, NULLABLE, 1, 64, "of its link")

#define RF_TOPOLOGY_NIC_FIELDS(F, S)                                           \
    F(S, TEXT, name, REQUIRED, 1, 63,                                          \
      "of the RDMA device, or else of the interface")                          \
    F(S, TEXTS, interfaces, REQUIRED, 64, 63, "network interfaces of it")      \
    F(S, I64, speed_mbit, NULLABLE, 0, INT64_MAX,                              \
      "the highest of its interfaces and active ports")                        \
    F(S, PART, pci, msg_pci, 0, 0, "where it is")

#define RF_TOPOLOGY_GPU_FIELDS(F, S)                                           \
    F(S, U32, index, REQUIRED, 0, 1023, "as in `gpus`")                        \
    F(S, PART, pci, msg_pci, 0, 0, "where it is")                              \
    F(S, TEXTS, nearest_nics, REQUIRED, RF_MSG_TOPOLOGY_NICS_MAX, 63,          \
      "names of those that share most of its path, on a tie those on its "     \
      "NUMA node")

#define RF_TOPOLOGY_FIELDS(F, S)                                               \
    F(S, LIST, numa_nodes, msg_numa, 0, 1024,                                  \
      "those with processors that the worker may use")                         \
    F(S, LIST, nics, msg_topology_nic, 0, RF_MSG_TOPOLOGY_NICS_MAX,            \
      "PCI functions with a network interface or RDMA device")                 \
    F(S, LIST, gpus, msg_topology_gpu, 0, 1024, "those of `gpus`")

#define RF_CUDA_FIELDS(F, S)                                                   \
    F(S, U32, driver, REQUIRED, 0, 1000000, "13000 is 13.0; 0: none")          \
    F(S, U32, runtime, REQUIRED, 0, 1000000, "likewise")                       \
    F(S, TEXT, driver_version, NULLABLE, 1, 255, "such as `580.95.05`")        \
    F(S, TEXT, why, NULLABLE, 1, RF_MSG_TEXT_MAX, "why no device can be used")

#define RF_NCCL_FIELDS(F, S)                                                   \
    F(S, TEXT, version, NULLABLE, 1, 63, "of the library")                     \
    F(S, TEXT, path, NULLABLE, 1, RF_MSG_TEXT_MAX, "of its file")              \
    F(S, TEXT, sha256, NULLABLE, 1, 64, "of its file")                         \
    F(S, TEXT, why, NULLABLE, 1, RF_MSG_TEXT_MAX, "why it cannot be used")

#define RF_FOLDER_FIELDS(F, S)                                                 \
    F(S, TEXT, path, REQUIRED, 1, RF_MSG_TEXT_MAX, "as in `shared`")           \
    F(S, TEXT, error, NULLABLE, 1, RF_MSG_TEXT_MAX,                            \
      "why no file could be made there")                                       \
    F(S, U64S, sees, REQUIRED, RF_MSG_NODES_MAX, RF_MSG_NODES_MAX - 1,         \
      "nodes whose files are there")

#define RF_MEMORY_LIMIT_FIELDS(F, S)                                           \
    F(S, U64, group, REQUIRED, 0, INT64_MAX,                                   \
      "the control group's inode number, whatever its name there; 0: the "     \
      "machine")                                                               \
    F(S, U64, available_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX, "that it leaves")

/* A node's description of itself; also its entry in results' "environment". */
#define RF_HELLO_FIELDS(F, S)                                                  \
    F(S, U64S, protocol, REQUIRED, 2, 255, "oldest and newest version")        \
    F(S, U32, node, REQUIRED, 0, RF_MSG_NODES_MAX - 1, "as in BOOT")           \
    F(S, TEXT, version, NULLABLE, 1, 63, "of the worker")                      \
    F(S, TEXT, build, NULLABLE, 1, 127, "likewise")                            \
    F(S, TEXT, control, REQUIRED, 1, 15, "`tcp` or `stdio`")                   \
    F(S, TEXT, candidate, NULLABLE, 0, 300, "the one that accepted")           \
    F(S, TEXT, hostname, NULLABLE, 0, 255, "`uname -n`")                       \
    F(S, TEXT, boot_id, NULLABLE, 0, 127, "of the kernel that runs")           \
    F(S, U32, pid, OPTIONAL, 1, INT32_MAX, "the agent's")                      \
    F(S, U64, start_ticks, OPTIONAL, 0, INT64_MAX,                             \
      "field 22 of `/proc/PID/stat`")                                          \
    F(S, TEXT, address, NULLABLE, 1, 255, "the node's own for data")           \
    F(S, U64, network, NULLABLE, 0, INT64_MAX,                                 \
      "number of the network namespace")                                       \
    F(S, U32, cpus, NULLABLE, 0, 1 << 20, "that it may use")                   \
    F(S, U64, memory_bytes, NULLABLE, 0, RF_MSG_BYTES_MAX, "in all")           \
    F(S, U64, memory_available_bytes, NULLABLE, 0, RF_MSG_BYTES_MAX,           \
      "without swapping")                                                      \
    F(S, LIST, memory_limits, msg_memory_limit, 0, 64,                         \
      "of the machine and of control groups that have one")                    \
    F(S, U64, shm_bytes, NULLABLE, 0, RF_MSG_BYTES_MAX,                        \
      "free in /dev/shm, or where `UCX_POSIX_DIR` says")                       \
    F(S, TEXT, kernel, NULLABLE, 0, 511, "name, release, machine")             \
    F(S, TEXT, cpu, NULLABLE, 0, 511, "model")                                 \
    F(S, LIST, nics, msg_nic, 0, RF_MSG_INTERFACES_MAX,                        \
      "interfaces that are up")                                                \
    F(S, LIST, interfaces, msg_interface, 0, RF_MSG_INTERFACES_MAX,            \
      "NICs that are up and whose bytes are counted")                          \
    F(S, PAIRS, methods, REQUIRED, 64, RF_MSG_TEXT_MAX,                        \
      "each method: null, or why the node cannot use it")                      \
    F(S, U64, memlock_bytes, NULLABLE, 0, RF_MSG_BYTES_MAX,                    \
      "RLIMIT_MEMLOCK of ranks; null without a limit")                         \
    F(S, MAYBE, rdma, msg_rdma, 0, 0, "adapters for NCCL and NVSHMEM")         \
    F(S, LIST, gpus, msg_gpu, 0, 1024, "devices")                              \
    F(S, MAYBE, topology, msg_topology, 0, 0, "places of NICs and GPUs")       \
    F(S, MAYBE, cuda, msg_cuda, 0, 0, "driver and runtime")                    \
    F(S, MAYBE, nccl, msg_nccl, 0, 0, "library")                               \
    F(S, TEXT, congestion_control, NULLABLE, 0, 63, "of TCP, the default")     \
    F(S, PAIRS, env, OPTIONAL, 4096, 65536, "variables that matter")           \
    F(S, LIST, folders, msg_folder, 0, 4096, "those of `shared`")              \
    F(S, TEXT, files, OPTIONAL, 1, RF_MSG_FILES_MAX,                           \
      "with `shared`: the part of this agent's file names after `refit-`, up " \
      "to the next dot")                                                       \
    F(S, U32, reach_port, OPTIONAL, 1, 65535,                                  \
      "with `reach_key`: where it listens at `address`")

#define RF_WELCOME_FIELDS(F, S)                                                \
    F(S, U32, protocol, REQUIRED, 1, 255, "the version that is spoken")

#define RF_INSPECT_FIELDS(F, S)                                                \
    F(S, TEXT, folder, REQUIRED, 1, RF_MSG_TEXT_MAX,                           \
      "of the checkpoint, on the node")                                        \
    F(S, BOOL, whole, OPTIONAL, 0, 0, "send `headers`, not only digests")      \
    F(S, U32, timeout_s, REQUIRED, 1, 86400, "for reading them")

#define RF_HEADERS_FIELDS(F, S)                                                \
    F(S, TEXT, error, NULLABLE, 1, RF_MSG_TEXT_MAX,                            \
      "why they cannot be used; the other members are then absent")            \
    F(S, PAIRS, digests, OPTIONAL, 65536, 32,                                  \
      "of each file's header and of `config.json`, by name")                   \
    F(S, TREE, headers, OPTIONAL, 0, 0,                                        \
      "`manifest`, `folder` and perhaps `config` of a model described in "     \
      "place")

#define RF_REACH_PEER_FIELDS(F, S)                                             \
    F(S, U32, node, REQUIRED, 0, RF_MSG_NODES_MAX - 1, "as in BOOT")           \
    F(S, TEXT, address, REQUIRED, 1, 255, "its address for data")              \
    F(S, U32, port, REQUIRED, 1, 65535, "its `reach_port`")

#define RF_REACH_FIELDS(F, S)                                                  \
    F(S, LIST, peers, msg_reach_peer, 0, 16, "nodes to connect to")

#define RF_REACHED_PEER_FIELDS(F, S)                                           \
    F(S, U32, node, REQUIRED, 0, RF_MSG_NODES_MAX - 1, "as in BOOT")           \
    F(S, TEXT, error, NULLABLE, 1, RF_MSG_TEXT_MAX,                            \
      "why long packets did not go there and back")

#define RF_REACHED_FIELDS(F, S)                                                \
    F(S, LIST, peers, msg_reached_peer, 0, 16, "those of REACH, in order")

/* --- A scenario attempt --------------------------------------------------- */

#define RF_MEMBER_FIELDS(F, S)                                                 \
    F(S, TEXT, name, REQUIRED, 1, 255, "`host` of `cluster.json`")             \
    F(S, U32, slots, REQUIRED, 1, 65535, "places for ranks")                   \
    F(S, TEXT, address, NULLABLE, 1, 255, "for data connections")

/* A deliberate fault at one rank. */
#define RF_HOOK_FIELDS(F, S)                                                   \
    F(S, U32, rank, REQUIRED, 0, RF_MSG_RANKS_LAST, "where")                   \
    F(S, U32, iteration, OPTIONAL, 0, INT32_MAX, "when; any if absent")        \
    F(S, TEXT, phase, OPTIONAL, 1, 15,                                         \
      "at the beginning of which step, or `quantize`, of a conversion; `run` " \
      "if absent")                                                             \
    F(S, TEXT, side, OPTIONAL, 1, 15, "flip: `train` or `infer`")              \
    F(S, U32, status, OPTIONAL, 0, 255, "exit: the status")                    \
    F(S, U32, signal, OPTIONAL, 1, 64, "exit: the signal that ends it")        \
    F(S, U64, bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "print: how many")

#define RF_HOOKS_FIELDS(F, S)                                                  \
    F(S, MAYBE, flip, msg_hook, 0, 0, "changes a byte between run and verify") \
    F(S, MAYBE, stall, msg_hook, 0, 0, "hangs the data thread")                \
    F(S, MAYBE, exit, msg_hook, 0, 0, "ends the process")                      \
    F(S, MAYBE, print, msg_hook, 0, 0, "writes lines")

#define RF_START_FIELDS(F, S)                                                  \
    F(S, U32, attempt, REQUIRED, 1, INT32_MAX, "number, counts up")            \
    F(S, TREE, model, REQUIRED, 0, 0,                                          \
      "described in place (planner/model/model.h)")                            \
    F(S, TREE, scenario, REQUIRED, 0, 0,                                       \
      "with all defaults (planner/scenario/spec.h)")                           \
    F(S, TEXTS, needs, OPTIONAL, 1024, 255,                                    \
      "paths of keys of `scenario` that ranks must know, such as "             \
      "`$.scenario.train.tp`; they ignore other unknown keys")                 \
    F(S, LIST, nodes, msg_member, 1, RF_MSG_NODES_MAX, "of the run, in order") \
    F(S, SECRET, data_key, REQUIRED, 64, 64,                                   \
      "of data connections, 32 bytes in hexadecimal")                          \
    F(S, MAYBE, test, msg_hooks, 0, 0, "faults made on purpose")

#define RF_TCP_FIELDS(F, S)                                                    \
    F(S, U32, from, REQUIRED, 0, RF_MSG_RANKS_LAST, "the rank that sends")     \
    F(S, U32, to, REQUIRED, 0, RF_MSG_RANKS_LAST, "the rank that receives")    \
    F(S, U64, bytes, REQUIRED, 1, RF_MSG_BYTES_MAX, "payload")

#define RF_STEP_FIELDS(F, S)                                                   \
    F(S, U32, attempt, REQUIRED, 1, INT32_MAX, "as in START")                  \
    F(S, U64, seq, REQUIRED, 0, INT64_MAX, "number, counts up")                \
    F(S, TEXT, step, REQUIRED, 1, 15, "what to do")                            \
    F(S, REAL, timeout_s, OPTIONAL, 0, 1e12,                                   \
      "how long exchanges and connections may take; until ABORT if absent")    \
    F(S, U32, index, OPTIONAL, 0, INT32_MAX,                                   \
      "fill, run, verify, yardstick: the iteration, counts warm-ups")          \
    F(S, I64, start_at_ns, OPTIONAL, -RF_MSG_CLOCK_MAX, RF_MSG_CLOCK_MAX,      \
      "run, yardstick: when, on the sender's clock")                           \
    F(S, U32, trace, OPTIONAL, 1, RF_MSG_TRACE_MAX,                            \
      "run, yardstick: record what the rank does, this many events at most")   \
    F(S, I64, load_ns, OPTIONAL, 0, RF_MSG_LONGEST_NS,                         \
      "run: under the scenario's `load`, which is alone for so long from "     \
      "`start_at_ns` on; the refit begins then")                               \
    F(S, BOOL, sources, OPTIONAL, 0, 0, "verify: the training side, too")      \
    F(S, TEXT, folder, OPTIONAL, 1, RF_MSG_TEXT_MAX,                           \
      "export: where the inference ranks write what they hold")                \
    F(S, TEXT, kind, OPTIONAL, 1, 15, "probe: `copy` or `link`")               \
    F(S, U64, bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "probe copy: size")        \
    F(S, LIST, links, msg_link, 0, RF_MSG_NODES_MAX,                           \
      "probe link: those of the node's ranks; no rank is in two of them")

#define RF_ARENA_BYTES_FIELDS(F, S)                                            \
    F(S, U64, train, REQUIRED, 0, RF_MSG_BYTES_MAX, "the training side's")     \
    F(S, U64, infer, REQUIRED, 0, RF_MSG_BYTES_MAX, "the inference side's")    \
    F(S, U64, stage, REQUIRED, 0, RF_MSG_BYTES_MAX, "of strategies that stage")

#define RF_COPY_WAYS_FIELDS(F, S)                                              \
    F(S, TEXT, rule, REQUIRED, 1, 15, "`measured`, `engine` or `kernel`")      \
    F(S, U64, engine_from_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,                \
      "shortest run that goes by copy engine; absent: none")                   \
    F(S, U64, engine_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                     \
      "of an iteration, by copy engines")                                      \
    F(S, U64, kernel_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX, "by kernels")

#define RF_YARDSTICK_FIELDS(F, S)                                              \
    F(S, U64, copied_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                     \
      "copied to this rank from ranks of its node, itself included")           \
    F(S, U64, peer_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                       \
      "to this rank from all others")                                          \
    F(S, U64, sent_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX, "to other nodes")     \
    F(S, U64, received_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                   \
      "from other nodes")                                                      \
    F(S, U64, left_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                       \
      "not moved: this rank reads them where the source has them")

#define RF_PREPARED_FIELDS(F, S)                                               \
    F(S, TEXT, plan_digest, REQUIRED, 1, 64, "hexadecimal")                    \
    F(S, TEXT, schedule_digest, REQUIRED, 1, 64, "hexadecimal")                \
    F(S, REAL, plan_ms, REQUIRED, 0, 1e10, "making the plan")                  \
    F(S, REAL, open_ms, REQUIRED, 0, 1e10, "opening the method")               \
    F(S, REAL, connect_ms, REQUIRED, 0, 1e10,                                  \
      "opening the method and its yardstick")                                  \
    F(S, TEXT, registration, OPTIONAL, 1, 1023,                                \
      "of rank 0: memory that the method registered, or why none")             \
    F(S, TEXT, over_tcp, OPTIONAL, 1, 1023,                                    \
      "of rank 0: UCX's ways between ranks that are TCP alone")                \
    F(S, TEXT, unmapped, OPTIONAL, 1, 1023,                                    \
      "of rank 0: UCX's way inside a node, for lack of room in shared memory") \
    F(S, TEXT, cpus, OPTIONAL, 1, RF_MSG_TEXT_MAX,                             \
      "processors that the rank may use, such as `0-3,8`")                     \
    F(S, U32, numa_node, OPTIONAL, 0, 65535, "that has all of these")          \
    F(S, PART, arena_bytes, msg_arena_bytes, 0, 0, "memory for weights")       \
    F(S, MAYBE, copies, msg_copy_ways, 0, 0,                                   \
      "method ipc: which way its copies go")                                   \
    F(S, MAYBE, yardstick, msg_yardstick, 0, 0,                                \
      "moved by this rank's part of the yardstick; absent without one")

#define RF_PROBED_FIELDS(F, S)                                                 \
    F(S, REAL, gbytes_per_s, OPTIONAL, 0, RF_MSG_RATE_MAX,                     \
      "copy: this rank's share while all ranks of its node copy in the same "  \
      "windows of time; link: as the receiving rank saw it")                   \
    F(S, REAL, single_gbytes_per_s, OPTIONAL, 0, RF_MSG_RATE_MAX,              \
      "copy: what the node's first rank reaches alone")                        \
    F(S, REAL, scan_gbytes_per_s, OPTIONAL, 0, RF_MSG_RATE_MAX,                \
      "copy, with an encoding: weights that this rank compares with their "    \
      "base while all ranks of its node do")                                   \
    F(S, REAL, convert_gbytes_per_s, OPTIONAL, 0, RF_MSG_RATE_MAX,             \
      "copy, with quantize in host memory: weights that this rank converts "   \
      "while all of its node that convert do; 0: it converts none")            \
    F(S, REAL, latency_us, OPTIONAL, 0, 1e9, "link: half a round trip")

#define RF_LOADED_FIELDS(F, S)                                                 \
    F(S, I64, ns, REQUIRED, 0, RF_MSG_LONGEST_NS, "until all had arrived")     \
    F(S, U64, bytes, REQUIRED, 0, RF_MSG_BYTES_MAX, "of the rank's weights")   \
    F(S, U64, read_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                       \
      "from files; with other columns of the rows that a split cuts")

#define RF_RAN_FIELDS(F, S)                                                    \
    F(S, I64, start_ns, REQUIRED, -RF_MSG_CLOCK_MAX, RF_MSG_CLOCK_MAX,         \
      "on the receiver's clock")                                               \
    F(S, I64, end_ns, REQUIRED, -RF_MSG_CLOCK_MAX, RF_MSG_CLOCK_MAX,           \
      "likewise")                                                              \
    F(S, I64, ns, REQUIRED, 0, RF_MSG_LONGEST_NS, "the refit's own time")      \
    F(S, I64, pack_ns, REQUIRED, 0, RF_MSG_LONGEST_NS, "of that, packing")     \
    F(S, I64, wire_ns, REQUIRED, 0, RF_MSG_LONGEST_NS, "sending, receiving")   \
    F(S, I64, unpack_ns, REQUIRED, 0, RF_MSG_LONGEST_NS, "unpacking")          \
    F(S, I64, sync_ns, REQUIRED, 0, RF_MSG_LONGEST_NS, "waiting for others")   \
    F(S, I64, device_ns, OPTIONAL, 0, RF_MSG_LONGEST_NS,                       \
      "the refit by the device's clock; absent in host memory")                \
    F(S, I64, quantize_ns, OPTIONAL, 0, RF_MSG_LONGEST_NS,                     \
      "of unpack_ns, quantising; absent without")                              \
    F(S, I64, amax_ns, OPTIONAL, 0, RF_MSG_LONGEST_NS,                         \
      "of sync_ns, exchanging largest magnitudes for it; absent without")      \
    F(S, U64, sent_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX, "to other ranks")     \
    F(S, U64, received_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX, "from others")    \
    F(S, U64, link_sent_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,                  \
      "with an `encoding`: of these, to other nodes")                          \
    F(S, U64, link_received_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,              \
      "likewise, from other nodes")                                            \
    F(S, I64, load_alone_ns, OPTIONAL, 0, RF_MSG_LONGEST_NS,                   \
      "how long its load was alone; absent without one")                       \
    F(S, U64, load_alone_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,                 \
      "that the load read or sent in this time")                               \
    F(S, I64, load_ns, OPTIONAL, 0, RF_MSG_LONGEST_NS,                         \
      "from the refit's start until all ranks had ended it")                   \
    F(S, U64, load_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,                       \
      "that the load read or sent in this time")                               \
    F(S, BOOL, resync, OPTIONAL, 0, 0,                                         \
      "it held no weights that changes apply to, and got whole ones")

#define RF_TRACED_FIELDS(F, S)                                                 \
    F(S, U64S, events, REQUIRED, RF_MSG_TRACE_NUMBERS *RF_MSG_TRACE_MAX,       \
      RF_MSG_BYTES_MAX,                                                        \
      "five numbers each, in order of time: nanoseconds from `start_ns`, "     \
      "nanoseconds it took, kind (transport/info/trace.h), id of the "         \
      "operation "                                                             \
      "+ 1 or 0, bytes")                                                       \
    F(S, U64, dropped, REQUIRED, 0, RF_MSG_BYTES_MAX,                          \
      "events for which there was no room")

#define RF_MISMATCH_FIELDS(F, S)                                               \
    F(S, TEXT, side, REQUIRED, 1, 15, "`train` or `infer`")                    \
    F(S, TEXT, tensor, REQUIRED, 1, 1023, "or `padding`")                      \
    F(S, U64S, index, REQUIRED, 16, INT64_MAX, "of the element")               \
    F(S, TEXT, expected, REQUIRED, 0, 64, "hexadecimal, as in memory")         \
    F(S, TEXT, found, REQUIRED, 0, 64, "likewise")

#define RF_VERIFIED_FIELDS(F, S)                                               \
    F(S, U64, checked_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX, "compared")        \
    F(S, U64, quantized_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,                  \
      "of quantised values, compared")                                         \
    F(S, U64, mismatched_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX, "different")    \
    F(S, MAYBE, first, msg_mismatch, 0, 0, "the first of them")

#define RF_EXPORTED_FIELDS(F, S)                                               \
    F(S, U64, bytes, REQUIRED, 0, RF_MSG_BYTES_MAX, "that this rank wrote")

#define RF_DEVICE_USAGE_FIELDS(F, S)                                           \
    F(S, U64, arena_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "see RESULTS.md")    \
    F(S, U64, runtime_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "likewise")        \
    F(S, U64, process_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "likewise")        \
    F(S, U64, device_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "likewise")         \
    F(S, U64, foreign_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "likewise")        \
    F(S, U64, nvlink_sent_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "likewise")    \
    F(S, U64, nvlink_received_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "likewise")

/* Use of the memory that holds the method's weights. */
#define RF_MEMORY_STAGES_FIELDS(F, S)                                          \
    F(S, U64, before_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                     \
      "before memory for weights")                                             \
    F(S, U64, opened_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,                     \
      "the refit's method open, its yardstick's not yet")                      \
    F(S, U64, prepared_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                   \
      "ready to refit, a checkpoint read")                                     \
    F(S, U64, refit_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                      \
      "most after any refit")                                                  \
    F(S, U64, after_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                      \
      "at the end, weights still there")

#define RF_CLOSED_FIELDS(F, S)                                                 \
    F(S, U64, host_peak_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                  \
      "the rank's own arenas plus the most private memory (anonymous and "     \
      "file pages) it was seen to have")                                       \
    F(S, U64, device_peak_bytes, REQUIRED, 0, RF_MSG_BYTES_MAX,                \
      "of device memory")                                                      \
    F(S, MAYBE, device, msg_device_usage, 0, 0,                                \
      "device methods: the candidates for that figure")                        \
    F(S, MAYBE, stages, msg_memory_stages, 0, 0, "use over time")

/* One rank's answer to a step. */
#define RF_ANSWER_FIELDS(F, S)                                                 \
    F(S, U32, rank, REQUIRED, 0, RF_MSG_RANKS_LAST, "the rank that sent it")   \
    F(S, BOOL, ok, OPTIONAL, 0, 0, "the step succeeded")                       \
    F(S, TEXT, status, OPTIONAL, 1, 63, "kind of failure")                     \
    F(S, TEXT, error, OPTIONAL, 0, RF_MSG_TEXT_MAX, "its text")                \
    F(S, TEXT, phase, OPTIONAL, 0, 63, "the step that failed")                 \
    F(S, MAYBE, prepared, msg_prepared, 0, 0, "of prepare")                    \
    F(S, MAYBE, probed, msg_probed, 0, 0, "of probe")                          \
    F(S, MAYBE, loaded, msg_loaded, 0, 0,                                      \
      "of the first fill with a checkpoint")                                   \
    F(S, MAYBE, ran, msg_ran, 0, 0, "of run and yardstick")                    \
    F(S, MAYBE, traced, msg_traced, 0, 0, "of run and yardstick with `trace`") \
    F(S, MAYBE, verified, msg_verified, 0, 0, "of verify")                     \
    F(S, MAYBE, exported, msg_exported, 0, 0, "of export")                     \
    F(S, MAYBE, closed, msg_closed, 0, 0, "of close")

#define RF_COUNTED_FIELDS(F, S)                                                \
    F(S, TEXT, name, REQUIRED, 1, 80, "as in `interfaces` of HELLO")           \
    F(S, U64, sent_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "by the interface")   \
    F(S, U64, received_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "likewise")       \
    F(S, U64, rdma_sent_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,                  \
      "by the RDMA port")                                                      \
    F(S, U64, rdma_received_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "likewise")  \
    F(S, U64, dropped, OPTIONAL, 0, INT64_MAX,                                 \
      "packets dropped or damaged, in both directions")

/* What a node's network counted, for all its processes. */
#define RF_NETWORK_FIELDS(F, S)                                                \
    F(S, U64, loopback_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,                   \
      "through the loopback interface")                                        \
    F(S, U64, segments, OPTIONAL, 0, INT64_MAX, "that TCP sent")               \
    F(S, U64, retransmits, OPTIONAL, 0, INT64_MAX,                             \
      "segments that TCP sent again")                                          \
    F(S, LIST, interfaces, msg_counted, 0, RF_MSG_INTERFACES_MAX,              \
      "those of HELLO")

#define RF_DONE_FIELDS(F, S)                                                   \
    F(S, U32, attempt, REQUIRED, 1, INT32_MAX, "as in START")                  \
    F(S, U64, seq, REQUIRED, 0, INT64_MAX, "as in STEP")                       \
    F(S, BOOL, ok, OPTIONAL, 0, 0,                                             \
      "from agents: all ranks of the node that are not in `ranks` succeeded "  \
      "and have no result")                                                    \
    F(S, LIST, ranks, msg_answer, 0, 65536,                                    \
      "a rank's own, or those of the node's ranks")                            \
    F(S, MAYBE, network, msg_network, 0, 0,                                    \
      "of verify, from agents: what the node's network counted since fill")

#define RF_SHARE_FIELDS(F, S)                                                  \
    F(S, U32, rank, REQUIRED, 0, RF_MSG_RANKS_LAST, "the rank that sent it")   \
    F(S, SECRET, data, REQUIRED, 0, 16 << 20, "hexadecimal")

#define RF_EXCHANGE_FIELDS(F, S)                                               \
    F(S, U32, attempt, REQUIRED, 1, INT32_MAX, "as in START")                  \
    F(S, U64, seq, REQUIRED, 0, INT64_MAX, "number of the allgather")          \
    F(S, LIST, parts, msg_share, 0, 65536,                                     \
      "a rank's own, or those of all ranks of the node")

#define RF_EXCHANGED_FIELDS(F, S)                                              \
    F(S, U32, attempt, REQUIRED, 1, INT32_MAX, "as in START")                  \
    F(S, U64, seq, REQUIRED, 0, INT64_MAX, "as in EXCHANGE")                   \
    F(S, SECRETS, data, REQUIRED, RF_MSG_RANKS_MAX, 16 << 20,                  \
      "hexadecimal, by rank; one element where all are equal")

#define RF_LEASE_FIELDS(F, S)                                                  \
    F(S, I64, t, REQUIRED, 0, RF_MSG_CLOCK_MAX,                                \
      "the sender's CLOCK_MONOTONIC, ns")                                      \
    F(S, I64, echo, OPTIONAL, 0, RF_MSG_CLOCK_MAX, "the last `t` received")    \
    F(S, I64, echo_at, OPTIONAL, 0, RF_MSG_CLOCK_MAX,                          \
      "when that was received")                                                \
    F(S, U64, done_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX,                       \
      "from ranks: weights read from a checkpoint so far; from agents: by "    \
      "all "                                                                   \
      "ranks of the node")                                                     \
    F(S, U64, of_bytes, OPTIONAL, 0, RF_MSG_BYTES_MAX, "of how many")

#define RF_RANK_EXIT_FIELDS(F, S)                                              \
    F(S, U32, attempt, REQUIRED, 1, INT32_MAX, "as in START")                  \
    F(S, U32, rank, NULLABLE, 0, RF_MSG_RANKS_LAST,                            \
      "of the rank that ended; null: none of the node's could begin")          \
    F(S, U32, pid, NULLABLE, 1, INT32_MAX, "null: it could not be started")    \
    F(S, U32, status, NULLABLE, 0, 255, "of exit")                             \
    F(S, U32, signal, NULLABLE, 1, 128, "that ended it")                       \
    F(S, TEXT, cause, NULLABLE, 0, RF_MSG_TEXT_MAX,                            \
      "why the agent ended it, or could begin none")                           \
    F(S, TEXT, phase, NULLABLE, 0, 63, "the last step that it was sent")       \
    F(S, TEXTS, stderr_lines, REQUIRED, 64, 16384,                             \
      "its last lines, or why it could not be started")

#define RF_ABORT_FIELDS(F, S)                                                  \
    F(S, U32, attempt, REQUIRED, 1, INT32_MAX, "as in START")                  \
    F(S, TEXT, reason, REQUIRED, 0, RF_MSG_TEXT_MAX, "for the log")

#define RF_ABORTED_FIELDS(F, S)                                                \
    F(S, U32, attempt, REQUIRED, 0, INT32_MAX, "as in ABORT")                  \
    F(S, U64S, unkillable, REQUIRED, 65536, INT32_MAX,                         \
      "processes that SIGKILL did not end")                                    \
    F(S, U64S, unanswered, REQUIRED, 65536, RF_MSG_RANKS_LAST,                 \
      "ranks that had not answered the last step when ABORT came")

#define RF_SHUTDOWN_FIELDS(F, S)                                               \
    F(S, TEXTS, gone, OPTIONAL, RF_MSG_NODES_MAX, RF_MSG_FILES_MAX,            \
      "`files` of agents that were lost, to be removed from the folders of "   \
      "`shared`")

#define RF_ERROR_FIELDS(F, S)                                                  \
    F(S, TEXT, text, REQUIRED, 1, RF_MSG_TEXT_MAX, "for a person")

/* --- Structs -------------------------------------------------------------- */

/* Each part precedes the schemas that contain it. X(name, FIELDS) */
#define RF_SCHEMA_PARTS(X)                                                     \
    X(msg_candidate, RF_CANDIDATE_FIELDS)                                      \
    X(msg_boot_limits, RF_BOOT_LIMITS_FIELDS)                                  \
    X(msg_shared, RF_SHARED_FIELDS)                                            \
    X(msg_bind, RF_BIND_FIELDS)                                                \
    X(msg_nic, RF_NIC_FIELDS)                                                  \
    X(msg_interface, RF_INTERFACE_FIELDS)                                      \
    X(msg_gpu, RF_GPU_FIELDS)                                                  \
    X(msg_rdma, RF_RDMA_FIELDS)                                                \
    X(msg_numa, RF_NUMA_FIELDS)                                                \
    X(msg_pci, RF_PCI_FIELDS)                                                  \
    X(msg_topology_nic, RF_TOPOLOGY_NIC_FIELDS)                                \
    X(msg_topology_gpu, RF_TOPOLOGY_GPU_FIELDS)                                \
    X(msg_topology, RF_TOPOLOGY_FIELDS)                                        \
    X(msg_cuda, RF_CUDA_FIELDS)                                                \
    X(msg_nccl, RF_NCCL_FIELDS)                                                \
    X(msg_memory_limit, RF_MEMORY_LIMIT_FIELDS)                                \
    X(msg_folder, RF_FOLDER_FIELDS)                                            \
    X(msg_reach_peer, RF_REACH_PEER_FIELDS)                                    \
    X(msg_reached_peer, RF_REACHED_PEER_FIELDS)                                \
    X(msg_member, RF_MEMBER_FIELDS)                                            \
    X(msg_hook, RF_HOOK_FIELDS)                                                \
    X(msg_hooks, RF_HOOKS_FIELDS)                                              \
    X(msg_link, RF_TCP_FIELDS)                                                 \
    X(msg_arena_bytes, RF_ARENA_BYTES_FIELDS)                                  \
    X(msg_copy_ways, RF_COPY_WAYS_FIELDS)                                      \
    X(msg_yardstick, RF_YARDSTICK_FIELDS)                                      \
    X(msg_prepared, RF_PREPARED_FIELDS)                                        \
    X(msg_probed, RF_PROBED_FIELDS)                                            \
    X(msg_loaded, RF_LOADED_FIELDS)                                            \
    X(msg_ran, RF_RAN_FIELDS)                                                  \
    X(msg_traced, RF_TRACED_FIELDS)                                            \
    X(msg_mismatch, RF_MISMATCH_FIELDS)                                        \
    X(msg_verified, RF_VERIFIED_FIELDS)                                        \
    X(msg_exported, RF_EXPORTED_FIELDS)                                        \
    X(msg_device_usage, RF_DEVICE_USAGE_FIELDS)                                \
    X(msg_memory_stages, RF_MEMORY_STAGES_FIELDS)                              \
    X(msg_closed, RF_CLOSED_FIELDS)                                            \
    X(msg_answer, RF_ANSWER_FIELDS)                                            \
    X(msg_counted, RF_COUNTED_FIELDS)                                          \
    X(msg_network, RF_NETWORK_FIELDS)                                          \
    X(msg_share, RF_SHARE_FIELDS)

/* The messages. LOG is raw bytes. X(TYPE, name, FIELDS) */
#define RF_SCHEMA_MESSAGES(X)                                                  \
    X(BOOT, boot, RF_BOOT_FIELDS)                                              \
    X(HELLO, hello, RF_HELLO_FIELDS)                                           \
    X(WELCOME, welcome, RF_WELCOME_FIELDS)                                     \
    X(INSPECT, inspect, RF_INSPECT_FIELDS)                                     \
    X(HEADERS, headers, RF_HEADERS_FIELDS)                                     \
    X(REACH, reach, RF_REACH_FIELDS)                                           \
    X(REACHED, reached, RF_REACHED_FIELDS)                                     \
    X(START, start, RF_START_FIELDS)                                           \
    X(STEP, step, RF_STEP_FIELDS)                                              \
    X(DONE, done, RF_DONE_FIELDS)                                              \
    X(EXCHANGE, exchange, RF_EXCHANGE_FIELDS)                                  \
    X(EXCHANGED, exchanged, RF_EXCHANGED_FIELDS)                               \
    X(LEASE, lease, RF_LEASE_FIELDS)                                           \
    X(RANK_EXIT, rank_exit, RF_RANK_EXIT_FIELDS)                               \
    X(ABORT, abort, RF_ABORT_FIELDS)                                           \
    X(ABORTED, aborted, RF_ABORTED_FIELDS)                                     \
    X(SHUTDOWN, shutdown, RF_SHUTDOWN_FIELDS)                                  \
    X(ERROR, error, RF_ERROR_FIELDS)

#define X(name, FIELDS) RF_SCHEMA_STRUCT(name, FIELDS)
RF_SCHEMA_PARTS(X)
#undef X
#define X(TYPE, name, FIELDS) RF_SCHEMA_STRUCT(msg_##name, FIELDS)
RF_SCHEMA_MESSAGES(X)
#undef X

/* A message of any type above. */
struct rf_msg {
    enum rf_msg_type type;
    union {
#define X(TYPE, name, FIELDS) struct rf_msg_##name name;
        RF_SCHEMA_MESSAGES(X)
#undef X
    };
};

/* Reads a frame's whole payload; free with rf_msg_free(). RF_ERR_PROTOCOL names
 * the message and the path of the bad member; never quotes a payload that is
 * not JSON, since it may hold a key. Refuses LOG. On refusal all members of
 * *out are absent. */
enum rf_status rf_msg_read(const struct rf_frame *frame, struct rf_msg *out,
                           struct rf_err *err) RF_MUST_CHECK;

/* The same without building JSON values (schema_plain.h); false, with all
 * members absent, if the payload does not allow it. */
bool rf_msg_read_plain(const struct rf_frame *frame, struct rf_msg *out);

/* The same from an object; wipes its secrets. */
enum rf_status rf_msg_decode(enum rf_msg_type type, json_t *payload,
                             struct rf_msg *out,
                             struct rf_err *err) RF_MUST_CHECK;

/* A refused message, as far as known. */
struct rf_msg_bad {
    enum rf_msg_type type;
    uint32_t attempt; /* 0: none, or unreadable */
    const struct rf_err *why;
};
struct rf_msg_bad rf_msg_bad(enum rf_msg_type type, const json_t *payload,
                             const struct rf_err *why);

/* Whether the answer reports success and nothing else. */
bool rf_msg_answer_is_plain(const struct rf_msg_answer *answer);

/* All members absent. */
void rf_msg_init(struct rf_msg *message, enum rf_msg_type type);
/* The payload to send. A new reference. */
json_t *rf_msg_json(const struct rf_msg *message);
void rf_msg_free(struct rf_msg *message);

/* NULL for LOG and unknown types. */
const struct rf_schema *rf_msg_schema(uint8_t type);

#endif
