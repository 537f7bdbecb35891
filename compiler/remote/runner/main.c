/* loopwright-runner: run and time kernels on a device without Python.

   It speaks the protocol of docs/remote_protocol.md, over its standard input and output, or over
   connections to a port of this machine. The code of a kernel comes linked for an address here, so
   this program needs neither a linker nor files. It runs whatever code its client sends: only the
   holder of the token may be that client. */

#include "runner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_millis(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Read exactly so many bytes; false at the end of the stream, or if they take more than `secs`. */
static bool read_all(int fd, uint8_t *at, size_t size, int secs)
{
    int64_t end = now_millis() + 1000 * (int64_t)secs;
    while (size) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left = end - now_millis();
        if (left <= 0) return false;
        int count = poll(&ready, 1, left < INT_MAX ? (int)left : INT_MAX);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        ssize_t got = read(fd, at, size);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const uint8_t *at, size_t size)
{
    while (size) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        int count = poll(&ready, 1, 1000 * FRAME_SECS);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        ssize_t put = write(fd, at, size);
        if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (put <= 0) return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}

struct options {
    const char *token;
    uint64_t memory_bytes;
    int port, idle_secs;
    bool is_emulated;
};

/* Serve one client until its stream ends; return the exit code. */
static int serve(int input_fd, int result_fd, const struct options *options)
{
    static uint8_t header[HEADER_BYTES], body[MAX_BODY_BYTES];
    static struct reply reply;
    static struct session session;
    session = (struct session){.limit_bytes = options->memory_bytes, .token = options->token,
                               .is_emulated = options->is_emulated};
    catch_faults(result_fd);
    while (!session.is_over) {
        /* A client that does not say HELLO soon must not keep others away. */
        int idle_secs = session.is_open ? options->idle_secs : HELLO_SECS;
        if (!read_all(input_fd, header, HEADER_BYTES, idle_secs)) break;
        if (!is_header(header)) {
            put_u32(header + 4, 0); /* an unknown request: the answer says that it is malformed */
            put_u32(header + 12, 0);
        } else {
            int body_secs = session.is_open ? FRAME_SECS : HELLO_SECS;
            if (!read_all(input_fd, body, get_u32(header + 12), body_secs)) return 2;
        }
        answer(&session, header, body, &reply);
        if (!write_all(result_fd, reply.content, HEADER_BYTES + reply.body_bytes)) return 2;
    }
    return 0;
}

static void refuse_busy(int fd)
{
    static struct reply reply;
    refuse(BUSY, &reply);
    finish(&reply, FAILED, 0);
    ssize_t ignored = write(fd, reply.content, HEADER_BYTES + reply.body_bytes);
    (void)ignored;
}

/* Whether a session is over: its client has the last answer a moment before its process ends. */
static bool has_ended(pid_t child)
{
    int64_t end = now_millis() + END_MILLIS;
    while (waitpid(child, NULL, WNOHANG) != child) {
        if (now_millis() > end) return false;
        poll(NULL, 0, 5);
    }
    return true;
}

static int listen_on(const struct options *options)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 8) ||
        getsockname(listener, (struct sockaddr *)&address, &size)) {
        perror("loopwright-runner: cannot listen");
        return 1;
    }
    printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    pid_t child = 0;
    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client < 0) {
            if (errno == EINTR || errno == ECONNABORTED) continue;
            perror("loopwright-runner: cannot accept");
            return 1;
        }
        if (child > 0 && has_ended(child)) child = 0;
        if (child > 0) { /* one session at a time: another one would disturb its times */
            refuse_busy(client);
        } else {
            pid_t parent = getpid();
            child = fork();
            if (child == 0) {
                close(listener);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent) _exit(1);
                setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                _exit(serve(client, client, options));
            }
        }
        close(client);
    }
}

static char *read_token(const char *path)
{
    static char token[260];
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(token, sizeof token, file) == NULL) token[0] = 0;
    if (file != NULL) fclose(file);
    token[strcspn(token, "\r\n")] = 0;
    return strlen(token) < 16 || strlen(token) > 256 ? NULL : token;
}

static int usage(void)
{
    fputs("usage: loopwright-runner [--memory MIB] [--idle SECS] [--emulated]\n"
          "                         [--listen PORT --token-file FILE]\n"
          "It serves its standard input, or clients of this machine: put a proxy with TLS in front\n"
          "for others. The token has 16 to 256 characters.\n",
          stderr);
    return 2;
}

/* The number of an option, or -1. */
static long number_of(const char *text, long least, long most)
{
    char *end = NULL;
    long value = text == NULL || *text == 0 ? -1 : strtol(text, &end, 10);
    return end != NULL && *end == 0 && value >= least && value <= most ? value : -1;
}

int main(int argc, char **argv)
{
    struct options options = {.memory_bytes = UINT64_C(1) << 30, .port = -1, .idle_secs = 600,
                              .is_emulated = is_in_qemu()};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--emulated") == 0) {
            options.is_emulated = true;
            continue;
        }
        if (strcmp(argv[i], "--memory") == 0 && number_of(value, 1, 1 << 20) > 0)
            options.memory_bytes = (uint64_t)number_of(value, 1, 1 << 20) << 20;
        else if (strcmp(argv[i], "--idle") == 0 && number_of(value, 1, 1 << 20) > 0)
            options.idle_secs = (int)number_of(value, 1, 1 << 20);
        else if (strcmp(argv[i], "--listen") == 0 && number_of(value, 0, 65535) >= 0)
            options.port = (int)number_of(value, 0, 65535);
        else if (strcmp(argv[i], "--token-file") == 0 && value != NULL) {
            options.token = read_token(value);
            if (options.token == NULL) return usage();
        } else
            return usage();
        i++;
    }
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    if (options.port >= 0) return options.token == NULL ? usage() : listen_on(&options);
    /* The protocol has descriptors of its own, so that nothing else can write into it. */
    int input_fd = dup(0), result_fd = dup(1);
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, 0);
    dup2(2, 1);
    return serve(input_fd, result_fd, &options);
}
