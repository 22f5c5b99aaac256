/*
 * A buffer that messages are sent from where it lies. Each of them holds it until it is gone; who
 * fills the buffer anew asks for one that no message reads: the same, but for the rare case that
 * one is late. So nobody waits, and a rank that fails leaves nothing that a message still points
 * to. Shared inside net/.
 */
#ifndef DRPS_NET_SHARED_BUFFER_H
#define DRPS_NET_SHARED_BUFFER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "net/drps_net.h"

struct drps_shared_buffer {
    atomic_uint holders; /* the owner, and messages */
    size_t bytes;
    _Alignas(64) unsigned char data[]; /* [bytes] */
};

/* Have *loan (NULL at first) be one of at least so many bytes that its owner alone holds. What it
 * held is lost or not. -ENOMEM: *loan is as before. */
DRPS_MUST_CHECK
int drps_shared_buffer_renew(struct drps_shared_buffer **loan, size_t bytes, struct drps_err *err);

/* Give up one's hold; the last one frees it. NULL-safe; a message's done(). */
void drps_shared_buffer_release(void *loan);

/* drps_net_send() of pieces that lie in `loan`, until they are not needed any more. */
DRPS_MUST_CHECK
int drps_shared_buffer_send(struct drps_shared_buffer *loan, struct drps_net *net,
                            const struct drps_net_send *send, uint32_t timeout_ms,
                            struct drps_err *err);

#endif
