/*
 * Shared buffers: messages are sent from where the buffer lies. Each message holds the buffer until
 * its receiver has let go. Whoever fills the buffer again first asks for one that no message reads,
 * which is the same one unless a message is late. So nobody waits, and a rank that fails leaves
 * nothing that a message still points to.
 */
#ifndef DRPS_NET_SHARED_BUFFER_H
#define DRPS_NET_SHARED_BUFFER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "net/drps_net.h"

/* Made by drps_shared_buffer_renew(); gone when the last holder has released it. */
struct drps_shared_buffer {
    atomic_uint holders; /* the owner, and messages under way */
    size_t bytes;
    _Alignas(64) unsigned char data[]; /* [bytes] */
};

/* Make *buffer (NULL at first) one of at least `bytes` bytes that its owner alone holds. Its data
 * may be lost. -ENOMEM: *buffer is as before. */
DRPS_MUST_CHECK
int drps_shared_buffer_renew(struct drps_shared_buffer **buffer, size_t bytes,
                             struct drps_err *err);

/* Let go of a buffer; the last holder frees it. NULL-safe. It serves as a message's done(). */
void drps_shared_buffer_release(void *buffer);

/* drps_net_send() of pieces that lie in `buffer`, which the message holds until its receiver has
 * let go. */
DRPS_MUST_CHECK
int drps_shared_buffer_send(struct drps_shared_buffer *buffer, struct drps_net *net,
                            const struct drps_net_send *send, uint32_t timeout_ms,
                            struct drps_err *err);

#endif
