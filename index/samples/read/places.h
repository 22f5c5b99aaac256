/*
 * Where a sample lies in the input. What is drawn for it follows from that alone, so that whoever
 * reads the line draws the same. Private to index/samples/read/.
 */
#ifndef DRPS_INDEX_SAMPLES_READ_PLACES_H
#define DRPS_INDEX_SAMPLES_READ_PLACES_H

#include <assert.h>

#include "base/drps_rng.h"
#include "index/dictionary/drps_dict.h"
#include "index/layers/drps_layers.h"
#include "index/reader/drps_reader.h"

/* The place of a sample of a sequence: the sequence's number from this bit on, and how many samples
 * of it came before. */
enum { DRPS_PLACES_SEQUENCE_BIT = 12 };
static_assert(DRPS_SEQUENCE_MOST <= 1 << DRPS_PLACES_SEQUENCE_BIT,
              "places in a sequence fit their bits");

/* The place of any other sample: its input from this bit on, whether it is the second of its line,
 * and the line. */
enum { DRPS_PLACES_INPUT_BIT = 40, DRPS_PLACES_SECOND_BIT = 39 };

enum { DRPS_PLACES_TIME_SAMPLES = 8 }; /* in given order, of one time */

/* Streams of random numbers that must not be the same. */
#define DRPS_PLACES_ORDER_STREAM 0x6f72646572u /* "order" */
#define DRPS_PLACES_SPLIT_STREAM 0x73706c6974u /* "split" */

struct sample_places {
    uint64_t seed;
    double test_fraction;
    int shuffled;      /* by seed, whether in a grid or not; 0: given */
    uint64_t inputs;   /* before those being read */
    int test_input;    /* the input being read holds evaluation samples */
    int has_header;    /* 1: the first line of each input is one, which is not counted */
    int has_sequences; /* samples are of sequences */
    uint64_t next;     /* the place of the next sample in its sequence, if that goes on */
    uint32_t longest;  /* samples of the longest sequence */
};

/* Returns the place of a sample of a sequence, and expects the next one behind it. */
uint64_t drps_places_next(struct sample_places *p, uint16_t mark);

/* Returns a random number for a sequence's own, of as many bits. Each step of this can be undone,
 * so that no two sequences get the same. */
uint64_t drps_places_shuffle(uint64_t seed, uint64_t number);

/* DRPS_E_CONFIG: tells that sample i of `s` has no place of its own. */
int drps_places_fault(const struct sample_places *p, const struct drps_samples *s, size_t i,
                      struct drps_err *err) __attribute__((cold));

/* The rest is inlined: it is for every sample. */

/* Returns the place of sample i of `s`. Samples are asked for in their order. A line of clicks may
 * have two. */
static inline uint64_t drps_places_of(struct sample_places *p, const struct drps_samples *s,
                                      size_t i)
{
    if (p->has_sequences) return drps_places_next(p, s->fields[s->starts[i]]);
    const uint64_t line = s->lines[i] - 1 - (uint64_t)p->has_header;
    const uint64_t second = i > 0 && s->lines[i] == s->lines[i - 1];
    return (p->inputs + s->input) << DRPS_PLACES_INPUT_BIT | second << DRPS_PLACES_SECOND_BIT |
           line;
}

/* Checks that sample i of `s` has a place of its own. */
DRPS_MUST_CHECK
static inline int drps_places_check(const struct sample_places *p, const struct drps_samples *s,
                                    size_t i, struct drps_err *err)
{
    if (p->has_sequences) return 0; /* 2^52 sequences cannot be read in a lifetime */
    if ((s->lines[i] - 1) >> DRPS_PLACES_SECOND_BIT == 0 &&
        (p->inputs + s->input) >> (64 - DRPS_PLACES_INPUT_BIT) == 0)
        return 0;
    return drps_places_fault(p, s, i, err);
}

/* 1: the sample is for evaluation. */
static inline int drps_places_is_test(const struct sample_places *p, uint64_t place)
{
    if (p->test_input) return 1;
    double share = p->test_fraction;
    const uint64_t drawn = p->has_sequences ? place >> DRPS_PLACES_SEQUENCE_BIT : place;
    return share > 0 &&
           drps_unit_double(drps_rng_at(p->seed ^ DRPS_PLACES_SPLIT_STREAM, drawn)) < share;
}

/* The number that decides where a sample goes in the final order, or in its cell of the grid.
 * Spools of one bucket keep the order of arrival. */
static inline uint64_t drps_places_order(const struct sample_places *p, uint64_t place)
{
    const uint64_t seed = p->seed ^ DRPS_PLACES_ORDER_STREAM;
    if (!p->shuffled) return place;
    if (!p->has_sequences) return drps_rng_at(seed, place);
    return drps_places_shuffle(seed, place >> DRPS_PLACES_SEQUENCE_BIT)
               << DRPS_PLACES_SEQUENCE_BIT |
           (place & ((UINT64_C(1) << DRPS_PLACES_SEQUENCE_BIT) - 1));
}

/* The time of a training sample of this place and order, for the dictionary. */
static inline uint32_t drps_places_time(const struct sample_places *p, uint64_t place,
                                        uint64_t order)
{
    if (p->shuffled) return (uint32_t)(order >> 48);
    if (p->has_sequences) return (uint32_t)((place >> DRPS_PLACES_SEQUENCE_BIT) % DICT_TIMES);
    return (uint32_t)(place / DRPS_PLACES_TIME_SAMPLES % DICT_TIMES);
}

#endif
