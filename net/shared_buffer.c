/* Counting the holders of a buffer; drps_shared_buffer.h has the idea. */
#include "net/drps_shared_buffer.h"

#include <errno.h>

#include "base/drps_alloc.h"

static size_t whole_bytes(size_t bytes)
{
    return sizeof(struct drps_shared_buffer) + bytes;
}

int drps_shared_buffer_renew(struct drps_shared_buffer **buffer, size_t bytes, struct drps_err *err)
{
    struct drps_shared_buffer *old = *buffer;
    /* Acquire: what the messages' readers did before their release. */
    if (old && old->bytes >= bytes &&
        atomic_load_explicit(&old->holders, memory_order_acquire) == 1)
        return 0;
    if (old && bytes < old->bytes) bytes = old->bytes;
    struct drps_shared_buffer *fresh =
        bytes <= SIZE_MAX - sizeof(*fresh) ? drps_pages_new(whole_bytes(bytes)) : NULL;
    if (!fresh) return drps_err_set(err, -ENOMEM, "no memory to send %zu bytes", bytes);
    atomic_init(&fresh->holders, 1);
    fresh->bytes = bytes;
    drps_shared_buffer_release(old);
    *buffer = fresh;
    return 0;
}

void drps_shared_buffer_release(void *buffer)
{
    struct drps_shared_buffer *b = buffer;
    /* Release what this holder read; the last one acquires it, before the pages go. */
    if (b && atomic_fetch_sub_explicit(&b->holders, 1, memory_order_acq_rel) == 1)
        drps_pages_free(b, whole_bytes(b->bytes));
}

int drps_shared_buffer_send(struct drps_shared_buffer *buffer, struct drps_net *net,
                            const struct drps_net_send *send, uint32_t timeout_ms,
                            struct drps_err *err)
{
    struct drps_net_send shared = *send;
    shared.done = drps_shared_buffer_release;
    shared.ctx = buffer;
    atomic_fetch_add_explicit(&buffer->holders, 1, memory_order_relaxed); /* the owner holds it */
    const int rc = drps_net_send(net, &shared, timeout_ms, err);
    if (rc < 0) drps_shared_buffer_release(buffer);
    return rc;
}
