/*
 * Protocol buffers, as much of the wire format as an export needs: numbers, texts, and messages in
 * messages, into memory. Once memory is gone all further calls do nothing: look at `failed` at the
 * end. Private to engine/export/.
 */
#ifndef DRPS_ENGINE_EXPORT_PROTOBUF_H
#define DRPS_ENGINE_EXPORT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

/* A message being made. Zero is an empty one; free(data). */
struct protobuf {
    char *data; /* own: [n] */
    size_t n, cap;
    int failed;
};

void protobuf_number(struct protobuf *m, unsigned field, uint64_t v);
void protobuf_bytes(struct protobuf *m, unsigned field, const void *data, size_t n);
void protobuf_text(struct protobuf *m, unsigned field, const char *text);

/* Put the message `inner` into m, and empty it: its memory is freed. */
void protobuf_message(struct protobuf *m, unsigned field, struct protobuf *inner);

/* Put the members of `inner` behind those of m, and empty it. */
void protobuf_append(struct protobuf *m, struct protobuf *inner);

/* The head of `n` bytes that the caller writes behind what m has. */
void protobuf_head(struct protobuf *m, unsigned field, uint64_t n);

#endif
