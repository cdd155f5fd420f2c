"""Install the program, and into homes, with nothing but a bare Python's standard library.

command: the commands install, uninstall and new
environment: the private virtual environment with the pinned dependencies
example: an update of a sample or of the person's own sessions, shown before an install
package_checks: the check of `doctor` for strategies and runtimes of other packages
plugin_start: the start of a session where the program is a plugin
program: the installed copy of the program, and the command that runs it
program_checks: the checks of `doctor` on the installed program
templates: homes made from templates
"""
