/* Running kernels: with a deadline, timed, and with an answer if they crash. */

#include "runner.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int output_fd;
static volatile sig_atomic_t running_number = -1; /* of the request whose kernel runs; -1: none */

/* End the session: a kernel crashed, or ran too long, and may have changed anything. */
static void on_signal(int signal_number)
{
    static const char fault[] = "the kernel was ended by signal ", late[] = "the deadline passed";
    if (running_number < 0) _exit(1);
    uint8_t frame[HEADER_BYTES + 64] = {0};
    bool is_late = signal_number == SIGALRM;
    size_t size = 4;
    put_u32(frame + HEADER_BYTES, is_late ? DEADLINE : FAULT);
    const char *text = is_late ? late : fault;
    for (const char *c = text; *c; c++) frame[HEADER_BYTES + size++] = (uint8_t)*c;
    if (!is_late) {
        if (signal_number > 9) frame[HEADER_BYTES + size++] = (uint8_t)('0' + signal_number / 10);
        frame[HEADER_BYTES + size++] = (uint8_t)('0' + signal_number % 10);
    }
    memcpy(frame, "LWR1", 4);
    put_u32(frame + 4, FAILED);
    put_u32(frame + 8, (uint32_t)running_number);
    put_u32(frame + 12, (uint32_t)size);
    ssize_t ignored = write(output_fd, frame, HEADER_BYTES + size);
    (void)ignored;
    _exit(3);
}

void catch_faults(int result_fd)
{
    output_fd = result_fd;
    static uint8_t stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigfillset(&action.sa_mask);
    const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGALRM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

static uint64_t nanos(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t preemptions(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (uint32_t)usage.ru_nivcsw;
}

static void set_alarm(uint32_t millis)
{
    struct itimerval timer = {.it_value = {.tv_sec = (time_t)(millis / 1000),
                                           .tv_usec = (suseconds_t)(millis % 1000 * 1000)}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void call_kernel(uintptr_t entry, const uint64_t *words, uint32_t calls)
{
#ifdef LW_FUZZ
    (void)entry, (void)words, (void)calls;
#else
    void (*kernel)(const uint64_t *) = (void (*)(const uint64_t *))entry;
    for (uint32_t i = 0; i < calls; i++) kernel(words);
#endif
}

/* Call a kernel; reply with the wall time, the CPU time of this thread, both in nanoseconds, and
   the number of preemptions of each sample. */
enum error run(struct session *session, struct input *input, uint32_t number,
               struct reply *reply)
{
    uint64_t words[MAX_WORDS];
    struct region *code = find_region(session, take_u64(input));
    uint64_t entry = take_u64(input);
    uint32_t calls = take_u32(input), samples = take_u32(input), deadline = take_u32(input);
    uint32_t num_words = take_u32(input);
    if (input->failed || num_words > MAX_WORDS || input->left != 24 * (size_t)num_words)
        return MALFORMED;
    if (code == NULL || !code->is_sealed) return UNKNOWN_REGION;
    if (entry >= code->size || calls < 1 || calls > MAX_CALLS || samples > MAX_SAMPLES)
        return OUT_OF_RANGE;
    if (deadline < 1 || deadline > MAX_DEADLINE_MILLIS) return OUT_OF_RANGE;
    for (uint32_t i = 0; i < num_words; i++) {
        uint64_t region_id = take_u64(input), offset = take_u64(input);
        bool is_address = take_u64(input) != 0;
        words[i] = offset;
        if (is_address) {
            struct region *region = find_region(session, region_id);
            if (region == NULL || (region->is_code && !region->is_sealed)) return UNKNOWN_REGION;
            if (offset > region->size) return OUT_OF_RANGE;
            words[i] = (uint64_t)(uintptr_t)(region->address + offset);
        }
    }
    if (samples && session->is_emulated) return EMULATED;
    uintptr_t address = (uintptr_t)(code->address + entry);
    running_number = (sig_atomic_t)number;
    set_alarm(deadline);
    if (samples == 0) call_kernel(address, words, calls);
    for (uint32_t i = 0; i < samples; i++) {
        uint32_t switches = preemptions();
        uint64_t cpu = nanos(CLOCK_THREAD_CPUTIME_ID), wall = nanos(CLOCK_MONOTONIC);
        call_kernel(address, words, calls);
        wall = nanos(CLOCK_MONOTONIC) - wall;
        cpu = nanos(CLOCK_THREAD_CPUTIME_ID) - cpu;
        add_u64(reply, wall);
        add_u64(reply, cpu);
        add_u64(reply, preemptions() - switches);
    }
    set_alarm(0);
    running_number = -1;
    return NO_ERROR;
}
