/* What a rank sends all others in a round; message.h has the format. */
#include "engine/cluster/outer/message.h"

#include <string.h>

#define ALL UINT32_MAX /* floats follow */

enum { WORD_BITS = 32, HEAD_WORDS = 2 };

static size_t mark_words(size_t n)
{
    return (n + WORD_BITS - 1) / WORD_BITS;
}

uint64_t outer_message_most(const struct drps_outer_choice *c, uint64_t samples)
{
    uint64_t words = HEAD_WORDS + samples;
    for (uint32_t i = 0; i < c->n; i++)
        words += 2 + samples * ((uint64_t)c->layers[i].w + c->layers[i].N);
    return words * sizeof(uint32_t);
}

/* ---- Writing ---- */

static uint32_t bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

/* Floats whose bits are all 0; -0 is none. */
static size_t count_zeros(const struct outer_matrix *m)
{
    size_t zeros = 0;
    for (size_t i = 0; i < m->n; i++)
        zeros += bits_of(m->floats[i]) == 0;
    return zeros;
}

/* Writes marks and the floats that are not 0, and maybe one of 0 behind them, where there is room
 * for as many floats as the matrix has: so nothing is to be guessed. Returns what follows. */
static uint32_t *write_marked(const struct outer_matrix *m, uint32_t *marks)
{
    uint32_t *to = marks + mark_words(m->n);
    for (size_t i = 0; i < m->n; i += WORD_BITS) {
        const size_t n = m->n - i < WORD_BITS ? m->n - i : WORD_BITS;
        uint32_t word = 0;
        for (size_t k = 0; k < n; k++) {
            const uint32_t bits = bits_of(m->floats[i + k]), is_there = bits != 0;
            word |= is_there << k;
            *to = bits;
            to += is_there;
        }
        marks[i / WORD_BITS] = word;
    }
    return to;
}

static uint32_t *write_matrix(const struct outer_matrix *m, uint32_t *to)
{
    const size_t zeros = count_zeros(m);
    if (zeros > mark_words(m->n)) {
        *to++ = (uint32_t)(m->n - zeros);
        return write_marked(m, to);
    }
    *to++ = ALL;
    if (m->n) memcpy(to, m->floats, m->n * sizeof(*to));
    return to + m->n;
}

size_t outer_message_write(const struct drps_outer_choice *c, const struct outer_message *m,
                           void *out)
{
    uint32_t *to = out;
    *to++ = m->samples;
    *to++ = m->chunks_n;
    if (m->chunks_n) memcpy(to, m->chunks, m->chunks_n * sizeof(*to));
    to += m->chunks_n;
    for (uint32_t i = 0; i < c->n; i++) {
        to = write_matrix(&m->inputs[i], to);
        to = write_matrix(&m->deltas[i], to);
    }
    return (size_t)(to - (uint32_t *)out) * sizeof(*to);
}

/* ---- Reading ---- */

struct reader {
    const uint32_t *at;
    size_t left; /* words */
};

/* Returns the next n words, or NULL: there are not so many. */
static const uint32_t *take(struct reader *r, uint64_t n)
{
    const uint32_t *words = r->at;
    if (n > r->left) return NULL;
    r->at += n;
    r->left -= (size_t)n;
    return words;
}

/* The chunks have all samples; the first one begins a thread's, and so do no more than there may be
 * threads. */
static int read_chunks(struct reader *r, uint64_t most, struct outer_message *out)
{
    const uint32_t *head = take(r, HEAD_WORDS);
    uint64_t samples = 0, threads = 0;
    int fits = 1;
    if (!head || head[0] > most) return 0;
    out->samples = head[0];
    out->chunks_n = head[1];
    out->chunks = take(r, head[1]);
    for (uint32_t k = 0; out->chunks && fits && k < head[1]; k++) {
        const uint32_t n = out->chunks[k] & ~OUTER_BEGINS;
        threads += n != out->chunks[k];
        fits = n > 0 && threads > 0 && threads <= DRPS_TRAIN_THREADS_MAX;
        samples += n;
    }
    return fits && out->chunks && samples == head[0];
}

static size_t count_marks(const uint32_t *marks, size_t n)
{
    size_t marked = 0;
    for (size_t i = 0; i < mark_words(n); i++)
        marked += (size_t)__builtin_popcount(marks[i]);
    return marked;
}

/* 1: no bit is set behind the last of n. */
static int ends_clean(const uint32_t *marks, size_t n)
{
    return n % WORD_BITS == 0 || marks[n / WORD_BITS] >> n % WORD_BITS == 0;
}

static int read_matrix(struct reader *r, uint64_t n, struct outer_matrix *out)
{
    const uint32_t *count = take(r, 1), *floats;
    *out = (struct outer_matrix){.n = (size_t)n};
    if (!count) return 0;
    if (*count == ALL) {
        floats = take(r, n);
    } else {
        out->marks = take(r, mark_words((size_t)n));
        if (!out->marks || !ends_clean(out->marks, (size_t)n) ||
            count_marks(out->marks, (size_t)n) != *count)
            return 0;
        floats = take(r, *count);
    }
    out->floats = (const float *)(const void *)floats;
    return floats != NULL;
}

int outer_message_read(const struct drps_outer_choice *c, uint64_t most, const void *data,
                       size_t bytes, struct outer_message *out, struct drps_err *err)
{
    struct reader r = {data, bytes / sizeof(uint32_t)};
    int fits = bytes % sizeof(uint32_t) == 0 && read_chunks(&r, most, out);
    for (uint32_t i = 0; i < c->n && fits; i++) {
        const uint64_t samples = out->samples; /* 31 bits, and widths have 28 */
        fits = read_matrix(&r, samples * c->layers[i].w, &out->inputs[i]) &&
               read_matrix(&r, samples * c->layers[i].N, &out->deltas[i]);
    }
    if (fits && !r.left) return 0;
    return drps_err_set(err, DRPS_E_PROTO,
                        "vectors of layers, %zu bytes, are not of a batch of at most %llu "
                        "samples",
                        bytes, (unsigned long long)most);
}

const float *outer_matrix_floats(const struct outer_matrix *m, float *room)
{
    const float *from = m->floats;
    if (!m->marks) return from;
    memset(room, 0, m->n * sizeof(*room));
    for (size_t i = 0; i < mark_words(m->n); i++)
        for (uint32_t word = m->marks[i]; word; word &= word - 1)
            room[i * WORD_BITS + (size_t)__builtin_ctz(word)] = *from++;
    return room;
}
