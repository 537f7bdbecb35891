/* Requests and their answers. */

#include "runner.h"

#include <string.h>

static const char RUNNER[] = "loopwright-runner 1";

static bool equals_token(const char *token, const uint8_t *given, size_t size)
{
    size_t length = strlen(token);
    unsigned difference = length != size;
    for (size_t i = 0; i < size; i++) /* in a time that does not tell where they differ */
        difference |= (unsigned)(given[i] ^ (uint8_t)token[length ? i % length : 0]);
    return difference == 0;
}

static enum error hello(struct session *session, struct input *input, struct reply *reply)
{
    uint32_t version = take_u32(input);
    if (input->failed) return MALFORMED;
    if (version != PROTOCOL_VERSION) return WRONG_VERSION;
    if (session->token != NULL && !equals_token(session->token, input->at, input->left))
        return DENIED;
    session->is_open = true;
    add_u32(reply, PROTOCOL_VERSION);
    add_u32(reply, ABI_VERSION);
    add_u32(reply, session->is_emulated);
    add_u32(reply, sizeof(void *));
    add_u32(reply, num_cores());
    add_u32(reply, vector_bits());
    add_u64(reply, session->limit_bytes);
    add_text(reply, architecture());
    add_text(reply, cpu_features());
    add_text(reply, RUNNER);
    return NO_ERROR;
}

static const char *const MESSAGES[] = {
    [NO_ERROR] = "",
    [MALFORMED] = "a malformed request",
    [WRONG_VERSION] = "another version of the protocol: this runner speaks version 1",
    [DENIED] = "the token is wrong",
    [BUSY] = "another session uses the device",
    [UNKNOWN_REGION] = "no such memory, or of another kind",
    [OUT_OF_RANGE] = "a number is out of its range",
    [NO_MEMORY] = "no memory is left under the limit",
    [EMULATED] = "an emulated device reports no times",
    [FAULT] = "the kernel crashed",
    [DEADLINE] = "the deadline passed",
    [REFUSED] = "the system does not let the process load code",
};

static enum error dispatch(struct session *session, uint32_t kind, uint32_t number,
                           struct input *input, struct reply *reply)
{
    if (!session->is_open && kind != HELLO) return DENIED;
    switch (kind) {
    case HELLO: return hello(session, input, reply);
    case RESERVE: return reserve(session, input, reply);
    case RELEASE: return release(session, input);
    case WRITE: return write_region(session, input);
    case READ: return read_region(session, input, reply);
    case RESOLVE: return resolve(input, reply);
    case SEAL: return seal(session, input);
    case RUN: return run(session, input, number, reply);
    case PROTECT: return protect(session, input);
    case BYE: session->is_over = true; return input->left ? MALFORMED : NO_ERROR;
    default: return MALFORMED;
    }
}

/* Make a reply the refusal of a request. */
void refuse(enum error error, struct reply *reply)
{
    reply->body_bytes = 0;
    add_u32(reply, error);
    add_bytes(reply, MESSAGES[error], strlen(MESSAGES[error]));
}

/* Answer one request; after an error of the stream itself, the session is over. */
void answer(struct session *session, const uint8_t *header, const uint8_t *body,
            struct reply *reply)
{
    uint32_t number = get_u32(header + 8);
    struct input input = {.at = body, .left = get_u32(header + 12)};
    reply->body_bytes = 0;
    enum error error = dispatch(session, get_u32(header + 4), number, &input, reply);
    if (error != NO_ERROR) {
        refuse(error, reply);
        session->is_over |= error == MALFORMED || error == WRONG_VERSION || error == DENIED;
    }
    finish(reply, error == NO_ERROR ? DONE : FAILED, number);
}
