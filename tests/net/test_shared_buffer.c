/* Buffers that messages are sent from: which one is filled next, and when one goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "net/drps_shared_buffer.h"

enum { TYPE = DRPS_NET_TYPE_FIRST, WAIT_MS = 10000, BYTES = 100 };

static void send(struct drps_shared_buffer *buffer, struct drps_net *net, size_t bytes, int rc)
{
    const struct drps_piece piece = {buffer->data, bytes};
    const struct drps_net_send send = {
        .to = 1, .part = DRPS_NET_SERVER, .type = TYPE, .pieces = &piece, .n = 1};
    assert_int_equal(drps_shared_buffer_send(buffer, net, &send, WAIT_MS, NULL), rc);
}

static void test_a_buffer_on_its_way_is_not_filled_again(void **state)
{
    struct drps_net *nets[2];
    struct drps_net_message *m;
    struct drps_shared_buffer *buffer = NULL, *first;
    (void)state;
    assert_int_equal(
        drps_net_open_inproc(&(struct drps_net_options){.count = 2, .message_bytes = {0, BYTES}},
                             nets, NULL),
        0);
    assert_int_equal(drps_shared_buffer_renew(&buffer, BYTES, NULL), 0);
    first = buffer;
    memset(buffer->data, 1, BYTES);
    send(buffer, nets[0], BYTES, 0);
    assert_int_equal(drps_shared_buffer_renew(&buffer, BYTES, NULL), 0);
    assert_ptr_not_equal(buffer, first);
    memset(buffer->data, 2, BYTES);
    assert_int_equal(drps_net_receive(nets[1], DRPS_NET_SERVER, 0, WAIT_MS, &m, NULL), 0);
    assert_int_equal(((const unsigned char *)m->data)[BYTES - 1], 1);
    drps_net_message_free(m); /* which frees the first buffer */

    first = buffer; /* nobody reads this one, and so it stays */
    assert_int_equal(drps_shared_buffer_renew(&buffer, BYTES, NULL), 0);
    assert_ptr_equal(buffer, first);
    send(buffer, nets[0], BYTES + 1, -EMSGSIZE);
    assert_int_equal(drps_shared_buffer_renew(&buffer, BYTES / 2, NULL), 0);
    assert_ptr_equal(buffer, first);

    send(buffer, nets[0], BYTES, 0); /* it outlives its owner */
    drps_shared_buffer_release(buffer);
    drps_net_close(nets[0], 0, NULL);
    assert_int_equal(drps_net_receive(nets[1], DRPS_NET_SERVER, 0, WAIT_MS, &m, NULL), 0);
    assert_int_equal(((const unsigned char *)m->data)[0], 2);
    drps_net_message_free(m);
    drps_net_close(nets[1], 0, NULL);
}

static void test_a_buffer_grows(void **state)
{
    struct drps_shared_buffer *buffer = NULL;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(drps_shared_buffer_renew(&buffer, 0, NULL), 0);
    assert_int_equal(drps_shared_buffer_renew(&buffer, 5 << 20, NULL), 0);
    assert_true(buffer->bytes >= 5 << 20);
    buffer->data[(5 << 20) - 1] = 7;
    assert_int_equal(drps_shared_buffer_renew(&buffer, SIZE_MAX, &err), -ENOMEM);
    assert_int_equal(buffer->data[(5 << 20) - 1], 7);
    drps_shared_buffer_release(buffer);
    drps_shared_buffer_release(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_buffer_on_its_way_is_not_filled_again),
        cmocka_unit_test(test_a_buffer_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
