/* Random draws, permutations and the hidden models: everything that the kinds of data sets share.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gen/gen.h"

uint64_t gen_stream_seed(uint64_t seed, enum gen_stream stream)
{
    return drps_rng_at(seed, (uint64_t)stream);
}

/* ---- Zipf ---- */

/* An entry stands for itself with probability accept / 2^32, else for its alias. */
struct gen_alias {
    uint32_t accept, alias;
};

enum { ALIAS_MAX = 4096 };

/* H(x) = (x^(1-s) - 1) / (1 - s), or log(x) at s = 1: the integral of h(x) = x^-s. */
static double zipf_h(const struct gen_zipf *z, double x)
{
    double l = log(x);
    return z->inv_1ms == 0 ? l : expm1((1 - z->s) * l) * z->inv_1ms;
}

static double zipf_h_inverse(const struct gen_zipf *z, double u)
{
    if (z->inv_1ms == 0) return exp(u);
    double t = 1 + u * (1 - z->s);
    return t > 0 ? exp(log(t) * z->inv_1ms) : INFINITY; /* rounding beyond the last element */
}

/* Walker's table, by Vose's method. */
static int alias_init(struct gen_zipf *z, struct drps_err *err)
{
    size_t n = (size_t)z->n;
    double sum = 0;
    double *p = malloc(n * sizeof(*p));
    uint32_t *queue =
        malloc(n * sizeof(*queue)); /* poor entries from the front, rich ones from the back */
    struct gen_alias *table = malloc(n * sizeof(*table));
    if (!p || !queue || !table) {
        free(p);
        free(queue);
        free(table);
        return drps_err_set(err, -ENOMEM, "no memory for a table of %zu frequencies", n);
    }
    for (size_t k = 0; k < n; k++)
        sum += p[k] = pow((double)(k + 1), -z->s);
    size_t poor = 0, rich = n;
    for (size_t k = 0; k < n; k++) {
        p[k] *= (double)n / sum;
        queue[p[k] < 1 ? poor++ : --rich] = (uint32_t)k;
    }
    while (poor && rich < n) {
        uint32_t a = queue[--poor];
        uint32_t b = queue[rich];
        table[a] = (struct gen_alias){(uint32_t)(p[a] * 0x1p32), b};
        p[b] -= 1 - p[a];
        if (p[b] < 1) {
            rich++;
            queue[poor++] = b;
        }
    }
    while (poor || rich < n) { /* what rounding left: full entries */
        uint32_t k = poor ? queue[--poor] : queue[rich++];
        table[k] = (struct gen_alias){UINT32_MAX, k};
    }
    free(p);
    free(queue);
    z->table = table;
    return 0;
}

int gen_zipf_init(struct gen_zipf *z, uint64_t n, double s, int with_table, struct drps_err *err)
{
    *z = (struct gen_zipf){.n = n, .s = s};
    if (fabs(1 - s) > 1e-9) z->inv_1ms = 1 / (1 - s);
    z->h_first = zipf_h(z, 1.5) - 1;
    z->h_last = zipf_h(z, (double)n + 0.5);
    z->fast = 2 - zipf_h_inverse(z, zipf_h(z, 2.5) - pow(2, -s));
    return with_table && n <= ALIAS_MAX ? alias_init(z, err) : 0;
}

void gen_zipf_destroy(struct gen_zipf *z)
{
    free(z->table);
    z->table = NULL;
}

/* floor(bits / 2^64 * n) */
static uint64_t scale_bits(uint64_t bits, uint64_t n)
{
    return (uint64_t)((unsigned __int128)bits * n >> 64);
}

uint64_t gen_zipf_draw(const struct gen_zipf *z, uint64_t bits)
{
    if (z->table) {
        uint32_t entry = (uint32_t)((bits >> 32) * z->n >> 32);
        return (uint32_t)bits < z->table[entry].accept ? entry : z->table[entry].alias;
    }
    if (z->s == 0) return scale_bits(bits, z->n);
    for (;;) {
        double u = z->h_last + drps_unit_double(bits) * (z->h_first - z->h_last);
        double x = zipf_h_inverse(z, u);
        uint64_t k = x < (double)z->n ? (uint64_t)(x + 0.5) : z->n;
        if (k < 1) k = 1;
        double kd = (double)k;
        if (kd - x <= z->fast || u >= zipf_h(z, kd + 0.5) - exp(-z->s * log(kd))) return k - 1;
        bits = drps_mix64(bits);
    }
}

/* ---- Shuffled ids ---- */

void gen_shuffle_init(struct gen_shuffle *d, uint64_t n, uint64_t seed)
{
    unsigned bits = 1;
    while (bits < 63 && n > UINT64_C(1) << bits)
        bits++;
    *d = (struct gen_shuffle){.n = n, .mask = (UINT64_C(1) << bits) - 1, .shift = (bits + 1) / 2};
    for (uint64_t i = 0; i < 3; i++)
        d->keys[i] = drps_rng_at(seed, i);
}

/* ---- Hidden models ---- */

void gen_factors(uint64_t seed, uint64_t row, size_t factors, int32_t *out)
{
    uint64_t key = drps_rng_at(seed, row);
    for (size_t r = 0; r < factors; r += 4) { /* out has room for a multiple of four */
        for (size_t k = 0; k < 4; k++)
            out[r + k] = 2 * (int16_t)(key >> 16 * k) + 1;
        key = drps_mix64(key);
    }
}

static double sigmoid(double z)
{
    return 1 / (1 + exp(-z));
}

void gen_calibrate(double *z, size_t n, double spread, double share, double *scale_out,
                   double *bias_out)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += z[i];
        squares += z[i] * z[i];
    }
    double mean = sum / (double)n;
    double variance = squares / (double)n - mean * mean;
    *scale_out = variance > 1e-12 ? spread / sqrt(variance) : 1;
    for (size_t i = 0; i < n; i++)
        z[i] *= *scale_out;

    double low = -mean * *scale_out - 50, high = low + 100;
    for (int turn = 0; turn < 40; turn++) {
        double bias = (low + high) / 2, total = 0;
        for (size_t i = 0; i < n; i++)
            total += sigmoid(z[i] + bias);
        *(total < share * (double)n ? &low : &high) = bias;
    }
    *bias_out = (low + high) / 2;
}

int gen_flip(double z, uint64_t bits)
{
    return drps_unit_double(bits) < sigmoid(z);
}

/* ---- Sorting and digits ---- */

static void sort_short(uint64_t *ids, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t id = ids[i];
        size_t j = i;
        for (; j > 0 && ids[j - 1] > id; j--)
            ids[j] = ids[j - 1];
        ids[j] = id;
    }
}

void gen_sort(uint64_t *ids, uint64_t *spare, size_t n, uint64_t max)
{
    if (n <= 64) {
        sort_short(ids, n);
        return;
    }
    /* Least significant byte first, two passes at a time so that the result is back in ids. */
    for (unsigned shift = 0; shift < 64 && max >> shift; shift += 16)
        for (unsigned half = 0; half < 2; half++) {
            uint64_t *from = half ? spare : ids, *to = half ? ids : spare;
            unsigned s = shift + 8 * half;
            size_t starts[257] = {0};
            for (size_t i = 0; i < n; i++)
                starts[(from[i] >> s & 0xff) + 1]++;
            for (size_t b = 1; b < 257; b++)
                starts[b] += starts[b - 1];
            for (size_t i = 0; i < n; i++)
                to[starts[from[i] >> s & 0xff]++] = from[i];
        }
}

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

char *gen_put_count(char *p, uint64_t v)
{
    size_t n = 1;
    for (uint64_t limit = 10; n < 20 && v >= limit; limit *= 10) /* 10^19 is the last that fits */
        n++;
    char *at = p + n;
    while (v >= 100) {
        uint64_t rest = v / 100;
        at -= 2;
        memcpy(at, digit_pairs + 2 * (v - rest * 100), 2);
        v = rest;
    }
    if (v >= 10)
        memcpy(p, digit_pairs + 2 * v, 2);
    else
        *p = (char)('0' + v);
    return p + n;
}
