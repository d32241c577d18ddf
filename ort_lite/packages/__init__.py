"""Model packages: a variant chosen for this machine, and the checks of a package's files."""
