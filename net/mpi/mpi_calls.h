/*
 * What the transport over MPI asks of MPI: one table. The module drps-mpi.so has it, and is the
 * only thing here that is linked with MPI; it is loaded when a net is opened over MPI. So programs
 * start without MPI's libraries where it is not used, and run where they are not installed. The
 * module needs nothing of libdrps, and may be built for another MPI.
 */
#ifndef DRPS_NET_MPI_MPI_CALLS_H
#define DRPS_NET_MPI_MPI_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_checksum.h"

enum {
    NET_MPI_CALLS_VERSION = 1,
    NET_MPI_TEXT_BYTES = 512,
    NET_MPI_TAGS = 32768, /* as many as every MPI has */
};

/* MPI's own handle of a request or a message: a number or a pointer, as that MPI has it. */
struct net_mpi_handle {
    _Alignas(8) unsigned char bytes[16];
};

/* What MPI says of this process. */
struct net_mpi_place {
    uint32_t rank, count;
    uint32_t nets; /* nets that this process has opened before */
};

/*
 * `ctx` is the caller's of all calls but begin(). Calls come from one thread at a time, with
 * `threads` of begin() from several. A negative return value is a failure, which text() names.
 */
struct net_mpi_calls {
    uint32_t version; /* NET_MPI_CALLS_VERSION */

    /* Start MPI, if that was not done before. It ends with the process. -1: `text` says why not. */
    int (*begin)(int threads, struct net_mpi_place *place_out, char text[NET_MPI_TEXT_BYTES]);

    /* Begin to send the bytes of one or two pieces as one message; they stay until it is done. */
    int (*send)(void *ctx, uint32_t to, int tag, const struct drps_piece *pieces, size_t n,
                struct net_mpi_handle *request_out);
    /* 1: a message has come, which waits to be received; 0: none. Those of one rank in order. */
    int (*probe)(void *ctx, int tag, uint32_t *from_out, size_t *bytes_out,
                 struct net_mpi_handle *message_out);
    /* Begin to receive that message. */
    int (*receive)(void *ctx, struct net_mpi_handle *message, void *to, size_t bytes,
                   struct net_mpi_handle *request_out);
    /* 1: what was begun is done; 0: not yet. */
    int (*is_done)(void *ctx, struct net_mpi_handle *request);

    void (*text)(int failure, char out[NET_MPI_TEXT_BYTES]);
    /* A rank is lost, or something is under way that will never be done: when this process exits,
     * it ends all ranks of the job instead of waiting for them. Nothing can be opened any more. */
    void (*give_up)(void);
};

/* What the module exports. */
extern const struct net_mpi_calls drps_mpi_calls;

#endif
