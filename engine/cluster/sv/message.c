/* What a rank sends all others in a round. */
#include "engine/cluster/sv/message.h"

#include <inttypes.h>
#include <string.h>

#include "index/plan/codec/drps_list.h"

enum { HEAD_BYTES = 16 };

static size_t aligned(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* Where touches, list and body begin. */
struct layout {
    size_t touches, list, body, end;
};

static struct layout layout_of(const struct sv_message *m)
{
    struct layout at;
    at.touches = HEAD_BYTES + aligned((size_t)m->n * m->dim * sizeof(float));
    at.list = at.touches + (m->is_sparse && m->has_touches ? aligned(m->n * sizeof(uint32_t)) : 0);
    at.body = at.list + aligned(m->list.bytes);
    at.end = at.body + aligned(m->body.bytes);
    return at;
}

size_t sv_message_bytes(const struct sv_message *m)
{
    return layout_of(m).end;
}

static void point(struct sv_message *m, unsigned char *data)
{
    m->values = (float *)(void *)(data + HEAD_BYTES);
    m->touches = (uint32_t *)(void *)(data + layout_of(m).touches);
}

/* The bytes that parts are rounded up by are zeros. */
static void put(unsigned char *at, const struct drps_piece *piece)
{
    memcpy(at, piece->data, piece->bytes);
    memset(at + piece->bytes, 0, aligned(piece->bytes) - piece->bytes);
}

void sv_message_begin(struct sv_message *m, void *out)
{
    const struct layout at = layout_of(m);
    const uint32_t head[4] = {m->n, (uint32_t)m->list.bytes, (uint32_t)m->body.bytes, 0};
    unsigned char *data = out;
    memset(data + at.touches - 8, 0, at.list - at.touches + 8); /* the caller fills the rest */
    memcpy(data, head, sizeof(head));
    put(data + at.list, &m->list);
    if (m->body.bytes) put(data + at.body, &m->body);
    point(m, data);
}

int sv_message_read(struct sv_message *m, const struct drps_net_message *from, struct drps_err *err)
{
    uint32_t head[4] = {0};
    unsigned char *data = (unsigned char *)(uintptr_t)from->data;
    if (from->bytes >= HEAD_BYTES) memcpy(head, from->data, sizeof(head));
    m->n = head[0];
    m->list.bytes = head[1];
    m->body.bytes = head[2];
    if (from->bytes < HEAD_BYTES || head[3] || (uint64_t)m->n * m->dim > from->bytes ||
        m->list.bytes > from->bytes || m->body.bytes > from->bytes ||
        sv_message_bytes(m) != from->bytes)
        return drps_err_set(err, DRPS_E_PROTO,
                            "rank %" PRIu32 " sent message %u of %zu bytes, which is not of this "
                            "size",
                            from->from, from->type, from->bytes);
    const struct layout at = layout_of(m);
    m->list.data = data + at.list;
    m->body.data = data + at.body;
    point(m, data);
    return 0;
}

int sv_message_ids(const struct sv_message *m, uint64_t rows, size_t most, uint32_t *ids_out,
                   size_t *n_out, struct drps_err *err)
{
    const size_t n = m->list.bytes >= sizeof(uint32_t) ? drps_list_count(m->list.data) : 0;
    *n_out = n;
    if (n > most)
        return drps_err_set(err, DRPS_E_PROTO, "%zu rows, where at most %zu are due", n, most);
    int rc = drps_list_decode(m->list.data, m->list.bytes, ids_out, NULL, err);
    if (rc < 0) return rc;
    if (n && ids_out[n - 1] >= rows)
        return drps_err_set(err, DRPS_E_PROTO, "row %" PRIu32 " of %" PRIu64, ids_out[n - 1], rows);
    return 0;
}
