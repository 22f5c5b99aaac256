/*
 * Fuzz target of vectors of layers, which peers send: any bytes give an error, or as many
 * floats as the samples that they say, in chunks that have all of them; nothing is written beyond
 * the arrays, and what is written anew is read alike. Input: most samples (6 bits of a byte); how
 * many layers, less 1 (its other bits); of each w and N (a byte each); the message.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/outer/message.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t check_samples(const struct outer_message *m, uint32_t most)
{
    size_t samples = 0;
    for (uint32_t k = 0; k < m->chunks_n; k++) {
        CHECK(m->chunks[k] & ~OUTER_BEGINS);
        samples += m->chunks[k] & ~OUTER_BEGINS;
    }
    CHECK(samples == m->samples && samples <= most);
    CHECK(!m->chunks_n || m->chunks[0] & OUTER_BEGINS);
    return samples;
}

/* Replaces the matrix by one of all its floats, which are `room`, own. */
static void fill_in(struct outer_matrix *m, size_t n, float **room)
{
    CHECK(m->n == n);
    *room = malloc(n * sizeof(**room) + 1); /* no more: the sanitizer watches */
    CHECK(*room);
    const float *floats = outer_matrix_floats(m, *room);
    if (n && floats != *room) memcpy(*room, floats, n * sizeof(**room));
    *m = (struct outer_matrix){n, NULL, *room};
}

static void check_again(const struct drps_outer_choice *c, struct outer_message *m)
{
    float *rooms[2 * DRPS_LAYERS_MOST];
    struct outer_message again;
    struct drps_err err = DRPS_ERR_INIT;
    for (uint32_t i = 0; i < c->n; i++) {
        fill_in(&m->inputs[i], (size_t)m->samples * c->layers[i].w, &rooms[2 * i]);
        fill_in(&m->deltas[i], (size_t)m->samples * c->layers[i].N, &rooms[2 * i + 1]);
    }
    void *written = malloc((size_t)outer_message_most(c, m->samples));
    CHECK(written);
    const size_t bytes = outer_message_write(c, m, written);
    CHECK_OK(outer_message_read(c, m->samples, written, bytes, &again, &err));
    CHECK(again.samples == m->samples && again.chunks_n == m->chunks_n);
    for (uint32_t i = 0; i < 2 * c->n; i++) {
        const struct outer_matrix *x = i % 2 ? &again.deltas[i / 2] : &again.inputs[i / 2];
        float *room = malloc(x->n * sizeof(*room) + 1);
        CHECK(room);
        CHECK(!x->n || memcmp(outer_matrix_floats(x, room), rooms[i], x->n * sizeof(*room)) == 0);
        free(room);
        free(rooms[i]);
    }
    free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct drps_outer_choice c = {.n = size ? 1 + (data[0] >> 6) : 0};
    const uint32_t most = size ? data[0] % 64 : 0;
    const size_t head = 1 + 2 * (size_t)c.n;
    if (!size || size < head) return 0;
    for (uint32_t i = 0; i < c.n; i++)
        c.layers[i] = (struct drps_outer_layer){
            .layer = i, .w = 1 + data[1 + 2 * i] % 128u, .N = 1 + data[2 + 2 * i] % 128u};
    uint8_t *bytes = malloc(size - head + 1); /* where no word lies behind it */
    struct outer_message m;
    struct drps_err err = DRPS_ERR_INIT;
    CHECK(bytes);
    memcpy(bytes, data + head, size - head);
    const int rc = outer_message_read(&c, most, bytes, size - head, &m, &err);
    CHECK(rc == 0 ? !err.code : rc == DRPS_E_PROTO && err.text[0]);
    fuzz_show("outer", rc, rc < 0 ? err.text : "vectors");
    if (rc == 0 && check_samples(&m, most) <= most) check_again(&c, &m);
    free(bytes);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
