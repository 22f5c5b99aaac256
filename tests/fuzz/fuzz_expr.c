/*
 * Fuzz target of losses as expressions: whatever the text, it is refused, or has a loss and slopes
 * that are finite, the same each time, or is told not to be finite. Input: byte 0: what the scores
 * are, and in its highest bit whether labels are numbers; the rest is the text.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "engine/model/expr/drps_slopes.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 4 };

static void check_slopes(const struct drps_expr *e, size_t n, unsigned what)
{
    static double work[2 * DRPS_EXPR_NODES * MOST];
    float scores[MOST], own[MOST] = {0.5F, -1}, slopes[2][MOST], owns[2][MOST];
    double loss[2];
    int rc[2];
    for (size_t i = 0; i < MOST; i++)
        scores[i] = ((float)(what % 7) - 3) * (float)(i + 1);
    CHECK(drps_expr_work(e, n) <= sizeof(work) / sizeof(*work));
    for (int k = 0; k < 2; k++) {
        const struct drps_expr_sample s = {scores, 1, own, slopes[k], owns[k]};
        rc[k] = drps_expr_slopes(e, n, &s, work, &loss[k], NULL);
    }
    CHECK(rc[0] == rc[1]);
    CHECK(rc[0] == 0 ? isfinite(loss[0]) && loss[0] == loss[1] : isnan(loss[0]));
    for (size_t i = 0; i < n && rc[0] == 0; i++)
        CHECK(isfinite(slopes[0][i]) && isfinite(owns[0][i]));
    CHECK(rc[0] != 0 || memcmp(slopes[0], slopes[1], n * sizeof(**slopes)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2 * DRPS_EXPR_TEXT] = {0};
    struct drps_expr e;
    if (!size) return 0;
    memcpy(text, data + 1, size - 1 < sizeof(text) - 1 ? size - 1 : sizeof(text) - 1);
    if (drps_expr_parse(&e, text, data[0] >> 7, NULL) < 0) return 0;
    check_slopes(&e, e.vector_scores ? MOST : 1, data[0]);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
