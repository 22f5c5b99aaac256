/*
 * Fuzz target of filtered gradients, which peers send: any bytes give an error, or values and
 * touches of the rows that the message is of; nothing is written beyond the arrays. Input: rows (a
 * byte), dim - 1 and in the highest bit touches (a byte), the message.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/cluster/filters/drps_push_message.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(const struct drps_push_shape *shape, const uint8_t *message, size_t bytes)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_push_reader *reader = drps_push_reader_new(shape);
    const float *grads;
    const uint32_t *touches;
    uint64_t sum = 0;
    CHECK(reader);
    const int rc = drps_push_decode(reader, shape, message, bytes, &grads, &touches, &err);
    CHECK(rc == 0 ? !err.code : rc == DRPS_E_PROTO && err.text[0]);
    for (size_t i = 0; rc == 0 && i < shape->rows * shape->dim; i++)
        sum += grads[i] > 0; /* all of them are there */
    for (size_t i = 0; rc == 0 && shape->touches && i < shape->rows; i++)
        sum += touches[i];
    fuzz_show("push", rc, rc < 0 ? err.text : sum ? "values" : "none");
    drps_push_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const struct drps_push_shape shape = {data[0], 1 + data[1] % 16, data[1] >> 7};
    uint8_t *message = malloc(size); /* where no byte lies behind it */
    CHECK(message);
    for (size_t i = 2; i < size; i++)
        message[i - 2] = data[i];
    check_message(&shape, message, size - 2);
    free(message);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
