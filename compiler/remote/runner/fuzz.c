/* libFuzzer's entry. Build: clang -DLW_FUZZ -fsanitize=fuzzer,address,undefined, with all files but
   main.c. */

#include "runner.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input is a stream of frames. Kernels are not called. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reply reply;
    struct session session = {.limit_bytes = 8 << 20, .token = "token", .is_open = size % 2};
    while (size >= HEADER_BYTES && is_header(data) && !session.is_over) {
        size_t body = get_u32(data + 12);
        if (size - HEADER_BYTES < body) break;
        uint8_t *copy = malloc(body ? body : 1); /* so that a sanitizer sees its end */
        memcpy(copy, data + HEADER_BYTES, body);
        answer(&session, data, copy, &reply);
        free(copy);
        data += HEADER_BYTES + body;
        size -= HEADER_BYTES + body;
    }
    release_all(&session);
    return 0;
}
