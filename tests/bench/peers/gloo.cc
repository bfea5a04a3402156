/* A refit as one writes it with Gloo: unbound buffers over TCP. */
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "tests/bench/peers/peer.h"

namespace {

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

struct by_gloo {
    peer_messages messages;
    std::shared_ptr<gloo::Context> context;
    std::vector<Buffer> sends, receives;
};

bool connect(const peer_env *env, by_gloo *by)
{
    gloo::transport::tcp::attr address;
    address.hostname = "127.0.0.1";
    gloo::rendezvous::FileStore store(env->folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(
        static_cast<int>(env->rank), static_cast<int>(env->n_ranks));
    auto device = gloo::transport::tcp::CreateDevice(address);
    context->connectFullMesh(store, device);
    by->context = context;
    return true;
}

bool open_gloo(const peer_env *env, void **state)
{
    auto by = std::make_unique<by_gloo>();
    peer_messages_make(env, false, &by->messages);
    try {
        connect(env, by.get());
    } catch (const std::exception &error) {
        std::fprintf(stderr, "gloo: %s\n", error.what());
        return false;
    }
    const peer_messages &all = by->messages;
    for (size_t i = 0; i < all.n_sends; i++) {
        by->sends.push_back(by->context->createUnboundBuffer(
            all.sends[i].at, all.sends[i].bytes));
    }
    for (size_t i = 0; i < all.n_receives; i++) {
        by->receives.push_back(by->context->createUnboundBuffer(
            all.receives[i].at, all.receives[i].bytes));
    }
    *state = by.release();
    return true;
}

bool run_gloo(void *state)
{
    auto *by = static_cast<by_gloo *>(state);
    const peer_messages &all = by->messages;
    for (size_t i = 0; i < all.n_receives; i++) {
        by->receives[i]->recv(static_cast<int>(all.receives[i].op->src),
                              all.receives[i].op->id);
    }
    for (size_t i = 0; i < all.n_sends; i++) {
        peer_message_pack(&all, &all.sends[i]);
        by->sends[i]->send(static_cast<int>(all.sends[i].op->dst),
                           all.sends[i].op->id);
    }
    peer_copy_local(&all);
    for (size_t i = 0; i < all.n_receives; i++) {
        by->receives[i]->waitRecv();
        peer_message_unpack(&all, &all.receives[i]);
    }
    for (size_t i = 0; i < all.n_sends; i++) {
        by->sends[i]->waitSend();
    }
    return true;
}

void close_gloo(void *state)
{
    auto *by = static_cast<by_gloo *>(state);
    by->sends.clear();
    by->receives.clear();
    peer_messages_free(&by->messages);
    delete by;
}

} // namespace

extern "C" const struct peer peer_gloo_messages = {
    "gloo-messages", false,
    open_gloo, run_gloo, close_gloo};
