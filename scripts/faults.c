// Runs a command and makes its n-th system call of a class fail: faults REPORT CLASS N ACTION STENO ROOT... -- COMMAND...
//
// Counts only calls of the program STENO, in all of its threads and children, on files below a ROOT (classes `pipe` and
// `socket`: on those). ACTION is an error number (28 for ENOSPC), with a `+` for that call and all after it, `short` for
// half of the bytes, or `kill`. With N = 0 it only counts. REPORT gets the count and the call that was changed. The exit
// code is the command's own, or 128 and the signal. x86_64 Linux only.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TASKS = 1024, MAX_ROOTS = 8 };

struct task {
    pid_t tid;
    int in_call;
    // The result that the running call gets, or 1 for its own.
    long forced;
};

static struct task tasks[MAX_TASKS];
static const char *roots[MAX_ROOTS];
static int root_count;
static const char *class_name, *action, *program;
static long wanted, counted;
static char changed[PATH_MAX + 64] = "-";

static struct task *find_task(pid_t tid)
{
    struct task *empty = NULL;
    for (int i = 0; i < MAX_TASKS; i++) {
        if (tasks[i].tid == tid)
            return &tasks[i];
        if (!tasks[i].tid && !empty)
            empty = &tasks[i];
    }
    if (!empty) {
        fprintf(stderr, "faults: too many tasks\n");
        exit(125);
    }
    *empty = (struct task){.tid = tid, .forced = 1};
    return empty;
}

static int is_one_of(long number, const long *list)
{
    for (; *list >= 0; list++)
        if (*list == number)
            return 1;
    return 0;
}

static int is_stream_class(void)
{
    return !strcmp(class_name, "pipe") || !strcmp(class_name, "socket");
}

// Whether the class has the call; *descriptor and *path are the numbers of its arguments, or -1.
static int belongs(long number, int *descriptor, int *path)
{
    static const long reads[] = {SYS_read, SYS_pread64, SYS_readv, SYS_preadv, -1};
    static const long writes[] = {SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, -1};
    static const long syncs[] = {SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_sync_file_range, -1};
    static const long pipes[] = {SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_sendto, SYS_recvfrom, -1};
    static const long paths[] = {SYS_rename, SYS_unlink, SYS_mkdir, SYS_rmdir, SYS_link, -1};
    static const long paths_at[] = {SYS_renameat, SYS_renameat2, SYS_unlinkat, SYS_mkdirat, SYS_linkat, -1};
    *descriptor = 0;
    *path = -1;
    if (!strcmp(class_name, "read"))
        return is_one_of(number, reads);
    if (!strcmp(class_name, "sync"))
        return is_one_of(number, syncs);
    if (!strcmp(class_name, "size"))
        return number == SYS_ftruncate || number == SYS_fallocate;
    if (!strcmp(class_name, "lock"))
        return number == SYS_flock;
    // Event loops take a short read of a socket for an empty socket, as epoll(7) allows: no kernel gives one while there
    // is more to read, so a shortened one would only stop the loop.
    if (!strcmp(class_name, "socket") && number == SYS_recvfrom)
        return 0;
    if (is_stream_class()) {
        *descriptor = number == SYS_splice ? 2 : 0;
        return is_one_of(number, pipes) || number == SYS_splice || number == SYS_tee;
    }
    if (!strcmp(class_name, "write")) {
        *descriptor = number == SYS_copy_file_range ? 2 : 0;
        return is_one_of(number, writes) || number == SYS_copy_file_range || number == SYS_sendfile;
    }
    if (!strcmp(class_name, "open")) {
        *path = number == SYS_openat ? 1 : 0;
        return number == SYS_openat || number == SYS_open || number == SYS_creat;
    }
    if (!strcmp(class_name, "name")) {
        *path = is_one_of(number, paths_at) ? 1 : 0;
        return is_one_of(number, paths) || is_one_of(number, paths_at);
    }
    return 0;
}

static unsigned long long argument(struct user_regs_struct *regs, int index)
{
    unsigned long long list[] = {regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9};
    return list[index];
}

static void read_link(const char *format, pid_t tid, int number, char *out)
{
    char name[64];
    snprintf(name, sizeof name, format, tid, number);
    ssize_t length = readlink(name, out, PATH_MAX - 1);
    out[length < 0 ? 0 : length] = 0;
}

static void read_path(pid_t tid, struct user_regs_struct *regs, int path, char *out)
{
    char text[PATH_MAX] = "";
    unsigned long address = argument(regs, path);
    // A string may end close to the end of a page that is the last one.
    for (size_t done = 0; done < sizeof text - 1;) {
        size_t count = 4096 - (address + done) % 4096;
        if (count > sizeof text - 1 - done)
            count = sizeof text - 1 - done;
        struct iovec local = {text + done, count}, remote = {(void *)(address + done), count};
        ssize_t got = process_vm_readv(tid, &local, 1, &remote, 1, 0);
        if (got <= 0 || memchr(text + done, 0, got))
            break;
        done += got;
    }
    if (text[0] == '/') {
        strcpy(out, text);
        return;
    }
    char base[PATH_MAX];
    int folder = path ? (int)argument(regs, 0) : AT_FDCWD;
    if (folder == AT_FDCWD)
        read_link("/proc/%d/cwd", tid, 0, base);
    else
        read_link("/proc/%d/fd/%d", tid, folder, base);
    snprintf(out, PATH_MAX, "%.2000s/%.2000s", base, text);
}

static int is_attacked(pid_t tid, struct user_regs_struct *regs, int descriptor, int path, char *name)
{
    if (path >= 0)
        read_path(tid, regs, path, name);
    else
        read_link("/proc/%d/fd/%d", tid, (int)argument(regs, descriptor), name);
    int found = 0;
    if (is_stream_class())
        found = !strncmp(name, class_name, strlen(class_name)) && name[strlen(class_name)] == ':';
    for (int i = 0; i < root_count && !is_stream_class(); i++)
        found |= !strncmp(name, roots[i], strlen(roots[i]));
    if (!found)
        return 0;
    char image[PATH_MAX];
    read_link("/proc/%d/exe", tid, 0, image);
    return !strcmp(image, program);
}

// Halves the number of bytes, or of buffers; gives whether there was something to halve.
static int shorten(struct user_regs_struct *regs)
{
    unsigned long long *count = &regs->rdx;
    if (regs->orig_rax == SYS_copy_file_range || regs->orig_rax == SYS_splice)
        count = &regs->r8;
    else if (regs->orig_rax == SYS_sendfile)
        count = &regs->r10;
    if (*count < 2)
        return 0;
    *count /= 2;
    return 1;
}

static void enter_call(struct task *task)
{
    struct user_regs_struct regs;
    int descriptor, path;
    char name[PATH_MAX];
    if (ptrace(PTRACE_GETREGS, task->tid, 0, &regs))
        return;
    if (!belongs((long)regs.orig_rax, &descriptor, &path) || !is_attacked(task->tid, &regs, descriptor, path, name))
        return;
    counted++;
    int goes_on = action[strlen(action) - 1] == '+';
    if (!wanted || (goes_on ? counted < wanted : counted != wanted))
        return;
    if (counted == wanted)
        snprintf(changed, sizeof changed, "%lld %s", regs.orig_rax, name);
    if (!strcmp(action, "kill")) {
        kill(task->tid, SIGKILL);
    } else if (!strcmp(action, "short")) {
        if (shorten(&regs))
            ptrace(PTRACE_SETREGS, task->tid, 0, &regs);
        else
            strcpy(changed, "-");
    } else {
        regs.orig_rax = -1;
        ptrace(PTRACE_SETREGS, task->tid, 0, &regs);
        task->forced = -atol(action);
    }
}

static void leave_call(struct task *task)
{
    struct user_regs_struct regs;
    if (task->forced > 0 || ptrace(PTRACE_GETREGS, task->tid, 0, &regs))
        return;
    regs.rax = task->forced;
    ptrace(PTRACE_SETREGS, task->tid, 0, &regs);
    task->forced = 1;
}

// Handles one stop; gives the signal that the task goes on with.
static int handle_stop(struct task *task, int status, int is_new)
{
    int number = WSTOPSIG(status);
    if (number == (SIGTRAP | 0x80)) {
        task->in_call = !task->in_call;
        if (task->in_call)
            enter_call(task);
        else
            leave_call(task);
        return 0;
    }
    if (status >> 16 || (number == SIGSTOP && is_new))
        return 0;
    return number;
}

static int trace(pid_t child)
{
    int code = 125, status;
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    waitpid(child, &status, __WALL);
    ptrace(PTRACE_SETOPTIONS, child, 0, options);
    find_task(child);
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    for (pid_t tid; (tid = waitpid(-1, &status, __WALL)) > 0;) {
        int is_new = 1;
        for (int i = 0; i < MAX_TASKS; i++)
            is_new &= tasks[i].tid != tid;
        struct task *task = find_task(tid);
        if (WIFSTOPPED(status)) {
            int number = handle_stop(task, status, is_new);
            ptrace(PTRACE_SYSCALL, tid, 0, number);
            continue;
        }
        task->tid = 0;
        if (tid == child)
            code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return code;
}

int main(int count, char **words)
{
    if (count < 8)
        return 125;
    const char *report = words[1];
    class_name = words[2];
    wanted = atol(words[3]);
    action = words[4];
    program = words[5];
    int index = 6;
    for (; index < count && strcmp(words[index], "--"); index++)
        if (root_count < MAX_ROOTS)
            roots[root_count++] = words[index];
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(words[index + 1], words + index + 1);
        _exit(127);
    }
    // What the terminal or a test sends is for the command.
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    int code = trace(child);
    FILE *out = fopen(report, "w");
    if (out) {
        fprintf(out, "%ld\n%s\n", counted, changed);
        fclose(out);
    }
    return code;
}
