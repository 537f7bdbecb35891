/* What the files of loopwright-runner share: the protocol, and a session. */

#ifndef LW_RUNNER_H
#define LW_RUNNER_H

#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROTOCOL_VERSION = 1,
    ABI_VERSION = 1, /* of kernels: one pointer to 64-bit words */
    HEADER_BYTES = 16,
    MAX_BODY_BYTES = 1 << 20,
    MAX_REGIONS = 1024,
    MAX_WORDS = 256,
    MAX_SAMPLES = 1000,
    MAX_CALLS = 1 << 24,
    MAX_DEADLINE_MILLIS = 600 * 1000,
    CODE_ALIGNMENT = 1 << 16, /* the largest page of Linux on AArch64 */
    FRAME_SECS = 60,          /* for the body of a frame */
    HELLO_SECS = 30,          /* for the first request */
    END_MILLIS = 1000,        /* for a session that is over to end; far above a busy host's need */
};

enum kind {
    HELLO = 1,
    RESERVE,
    RELEASE,
    WRITE,
    READ,
    RESOLVE,
    SEAL,
    RUN,
    BYE,
    PROTECT,
    DONE = 0x80,
    FAILED = 0x81
};

/* Errors, as the protocol numbers them. */
enum error {
    NO_ERROR,
    MALFORMED,
    WRONG_VERSION,
    DENIED,
    BUSY,
    UNKNOWN_REGION,
    OUT_OF_RANGE,
    NO_MEMORY,
    EMULATED,
    FAULT,
    DEADLINE,
    REFUSED
};

struct region {
    uint8_t *address;
    uint64_t size; /* without its rounding to pages and the guard behind it */
    uint64_t mapped_bytes;
    void *mapping;
    uint64_t id; /* 0 for an entry that is free */
    bool is_code, is_sealed;
};

struct session {
    struct region regions[MAX_REGIONS];
    uint64_t last_id, used_bytes, limit_bytes;
    const char *token; /* NULL if none is required */
    bool is_open, is_over, is_emulated;
};

/* A reply that grows; `kind` and `error` are set last. */
struct reply {
    uint8_t content[HEADER_BYTES + MAX_BODY_BYTES];
    size_t body_bytes;
};

/* The part of a request that is still to be read. */
struct input {
    const uint8_t *at;
    size_t left;
    bool failed;
};

/* bytes.c: numbers in frames. */
void put_u32(uint8_t *at, uint32_t value);
uint32_t get_u32(const uint8_t *at);
uint32_t take_u32(struct input *input);
uint64_t take_u64(struct input *input);
void add_u32(struct reply *reply, uint32_t value);
void add_u64(struct reply *reply, uint64_t value);
void add_bytes(struct reply *reply, const void *content, size_t size);
void add_text(struct reply *reply, const char *text);
void finish(struct reply *reply, uint32_t kind, uint32_t number);
bool is_header(const uint8_t *header);

/* device.c: what this device is. */
const char *architecture(void);
const char *cpu_features(void);
uint32_t vector_bits(void);
uint32_t num_cores(void);
bool is_in_qemu(void);

/* memory.c: the memory of a session. */
struct region *find_region(struct session *session, uint64_t id);
enum error reserve(struct session *session, struct input *input, struct reply *reply);
enum error release(struct session *session, struct input *input);
enum error write_region(struct session *session, struct input *input);
enum error read_region(struct session *session, struct input *input, struct reply *reply);
enum error seal(struct session *session, struct input *input);
enum error protect(struct session *session, struct input *input);
void release_all(struct session *session);

/* symbols.c: functions of this system that kernels call. */
enum error resolve(struct input *input, struct reply *reply);

/* kernels.c: running kernels. */
void catch_faults(int result_fd);
enum error run(struct session *session, struct input *input, uint32_t number,
               struct reply *reply);

/* session.c: requests and their answers. */
void answer(struct session *session, const uint8_t *header, const uint8_t *body,
            struct reply *reply);
void refuse(enum error error, struct reply *reply);

#endif
