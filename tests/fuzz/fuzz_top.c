/*
 * Fuzz target of drps-top: whatever a file or a port says, it is refused, or is drawn within the
 * screen in characters that no terminal obeys. Input: byte 0: columns; byte 1: lines; the rest is
 * what is read, which is seen twice.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_check.h"
#include "tools/top/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_view(const struct view *v)
{
    CHECK(v->n <= v->lines);
    for (size_t i = 0; i < v->n; i++) {
        CHECK(strlen(v->text[i]) <= v->columns);
        for (const char *c = v->text[i]; *c; c++)
            CHECK(isprint((unsigned char)*c));
    }
}

static void draw(struct source *k, size_t columns, size_t lines)
{
    struct sources all = {.list = k, .n = 1};
    struct view *v = calloc(1, sizeof(*v));
    struct curve *c = calloc(1, sizeof(*c));
    CHECK(v && c);
    double loss, test;
    view_losses(&all, &loss, &test);
    for (int i = 0; i < 3; i++)
        curve_add(c, loss, test);
    v->columns = columns;
    v->lines = lines;
    view_draw(v, &all, c, "model");
    check_view(v);
    free(c);
    free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source k = {.path = NULL};
    if (size < 2) return 0;
    for (int i = 1; i >= 0; i--) {
        char *text = calloc(1, size);
        CHECK(text);
        memcpy(text, data + 2, size - 2);
        if (readings_parse(text, 2 - i, &k.past[i], NULL) == 0) k.past_n++;
    }
    CHECK(k.past_n == 0 || k.past_n == 2);
    if (k.past_n) draw(&k, data[0] * 2, data[1]);
    readings_free(&k.past[0]);
    readings_free(&k.past[1]);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
