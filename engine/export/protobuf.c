/* A field is its number and kind, then a number in groups of 7 bits, or a length and bytes. */
#include "engine/export/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { VARINT = 0, BYTES = 2, GROUP_BITS = 7 };

static void append(struct protobuf *m, const void *data, size_t n)
{
    if (m->failed || drps_array_reserve(&m->data, &m->cap, m->n + n, 1)) {
        m->failed = 1;
        return;
    }
    if (n) memcpy(m->data + m->n, data, n);
    m->n += n;
}

static void append_varint(struct protobuf *m, uint64_t v)
{
    do {
        const unsigned char low = (unsigned char)(v & 127);
        v >>= GROUP_BITS;
        append(m, &(unsigned char){(unsigned char)(low | (v ? 128 : 0))}, 1);
    } while (v);
}

void protobuf_number(struct protobuf *m, unsigned field, uint64_t v)
{
    append_varint(m, field << 3 | VARINT);
    append_varint(m, v);
}

void protobuf_head(struct protobuf *m, unsigned field, uint64_t n)
{
    append_varint(m, field << 3 | BYTES);
    append_varint(m, n);
}

void protobuf_bytes(struct protobuf *m, unsigned field, const void *data, size_t n)
{
    protobuf_head(m, field, n);
    append(m, data, n);
}

void protobuf_text(struct protobuf *m, unsigned field, const char *text)
{
    protobuf_bytes(m, field, text, strlen(text));
}

void protobuf_append(struct protobuf *m, struct protobuf *inner)
{
    m->failed |= inner->failed;
    append(m, inner->data, inner->n);
    free(inner->data);
    *inner = (struct protobuf){.data = NULL};
}

void protobuf_message(struct protobuf *m, unsigned field, struct protobuf *inner)
{
    protobuf_head(m, field, inner->n);
    protobuf_append(m, inner);
}
