/* What must hold in a fuzz target. */
#ifndef DRPS_TESTS_FUZZ_CHECK_H
#define DRPS_TESTS_FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(ok)                                                                                  \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #ok);                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Check a call whose error is in `err`. */
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        if ((call) < 0) {                                                                          \
            (void)fprintf(stderr, "%s:%d: broken: %s: %s\n", __FILE__, __LINE__, #call, err.text); \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* What came of an input, when DRPS_FUZZ_SHOW is set: for whoever looks into one. */
static inline void fuzz_show(const char *what, int rc, const char *text)
{
    if (getenv("DRPS_FUZZ_SHOW")) (void)fprintf(stderr, "%s: %d %s\n", what, rc, text);
}

#endif
