// Calls that name files in unusual ways: message queues, rules of Landlock, options of a file system that is not mounted. In /usr/share.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <mqueue.h>
#include <sys/syscall.h>
#include <unistd.h>

#define call(name, ...) syscall(SYS_##name, __VA_ARGS__)

int main(void)
{
	struct mq_attr attributes = { .mq_maxmsg = 4, .mq_msgsize = 64 };
	struct landlock_ruleset_attr rules = { .handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE };
	struct landlock_path_beneath_attr rule = { .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE };
	int directory = open("/usr/share", O_PATH | O_DIRECTORY);
	int ruleset = call(landlock_create_ruleset, &rules, sizeof(rules), 0);
	int system = call(fsopen, "tmpfs", 0);

	if (directory < 0 || ruleset < 0 || system < 0 || chdir("/usr"))
		return 77;
	int queue = call(mq_open, "sysdock-named", O_RDWR | O_CREAT, 0600, &attributes);
	if (queue < 0)
		return 77;
	call(mq_open, "sysdock-none", O_RDONLY, 0, NULL);
	call(mq_unlink, "sysdock-named");
	call(mq_unlink, "sysdock-none");
	rule.parent_fd = directory;
	call(landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	rule.parent_fd = 77; // not open
	call(landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	call(fsconfig, system, FSCONFIG_SET_STRING, "size", "/1", 0);
	call(fsconfig, system, FSCONFIG_SET_PATH, "option", "dict/words", directory);
	call(fsconfig, system, FSCONFIG_SET_PATH, "option", "lib/none", AT_FDCWD);
	call(fsconfig, system, FSCONFIG_SET_PATH, "option", "/etc/hostname", AT_FDCWD);
	call(fsconfig, system, FSCONFIG_SET_PATH_EMPTY, "option", "", directory);
	call(fsconfig, system, FSCONFIG_SET_FD, "option", NULL, directory);
	return 0;
}
